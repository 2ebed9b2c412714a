"""Work that takes longer than a request: a few processes, a queue that is fair between users, and an end to each.

Users take turns: whoever asks ten things waits for the second until everybody else had one. The same question asked
twice is worked on once. A full queue refuses with the time after which it is worth asking again.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ropewalk.ui.asked import Asked
from ropewalk.ui.process import Limits, WorkerLost, WorkerProcess
from ropewalk.ui.worker import BROKEN

MOST_WAITING = 64
MOST_OF_ONE = 8
"""Questions of one user that wait."""
NICE = 10
"""Searches leave the processor to estimates, for which somebody waits."""
KEPT = 256
"""Questions that are remembered after their end."""
USUAL_S = 20.0
"""What a question is taken to need until some have been answered."""

Finish = Callable[["QueuedQuestion", dict[str, Any], Path], None]
"""Called with the work, what the worker replied and the folder in which it ran, before the folder is removed."""


class QueueFull(Exception):
    """Too much is waiting; `retry_s` says when to ask again."""

    def __init__(self, message: str, retry_s: float) -> None:
        super().__init__(message)
        self.retry_s = retry_s


@dataclass(eq=False)
class QueuedQuestion:
    """A question on its way: waiting, running, done, failed or cancelled."""

    asked: Asked
    extra: tuple[str, ...]
    """Options that the server adds: which files to write."""
    users: set[str]
    state: str = "waiting"
    progress: dict[str, Any] = field(default_factory=dict)
    failure: str = ""
    began: float = 0.0
    seconds: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    def tell(self, progress: dict[str, Any]) -> None:
        self.progress = progress
        self.news()

    def news(self) -> None:
        """Wake everybody who waits for a change."""
        self.changed.set()
        self.changed = asyncio.Event()

    def as_document(self) -> dict[str, Any]:
        taken = time.monotonic() - self.began if self.state == "running" else self.seconds
        return {
            "id": self.asked.key, "state": self.state, "progress": self.progress, "failure": self.failure or None,
            "seconds": round(taken, 3), **self.asked.as_document(),
        }  # fmt: skip


class WorkerPool:
    """Worker processes and the questions that wait for them."""

    def __init__(self, module: str, workers: int, limits: Limits, finish: Finish) -> None:
        self._limits, self._finish = limits, finish
        self._idle: deque[WorkerProcess] = deque(WorkerProcess(module, NICE) for _ in range(workers))
        self._all = tuple(self._idle)
        self._waiting: OrderedDict[str, deque[QueuedQuestion]] = OrderedDict()
        """By user; the first user is next."""
        self._known: OrderedDict[str, QueuedQuestion] = OrderedDict()
        self._recent: deque[float] = deque(maxlen=32)

    async def start(self) -> None:
        """Start the processes ahead of the first question."""
        await asyncio.gather(*(one.start() for one in self._all))

    async def stop(self) -> None:
        """End everything."""
        for work in list(self._known.values()):
            if work.task is not None:
                work.task.cancel()
        tasks = [work.task for work in self._known.values() if work.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(one.end() for one in self._all))

    def work(self, key: str) -> QueuedQuestion | None:
        return self._known.get(key)

    def ask(self, asked: Asked, user: str, extra: tuple[str, ...] = ()) -> QueuedQuestion:
        """Queue a question, unless the same one was answered or is on its way and wanted: not about to be ended."""
        known = self._known.get(asked.key)
        if known is not None and known.users and known.state in ("waiting", "running", "done"):
            known.users.add(user)
            return known
        self._check_room(user)
        work = QueuedQuestion(asked, extra, {user})
        self._known[asked.key] = work
        self._known.move_to_end(asked.key)
        self._waiting.setdefault(user, deque()).append(work)
        self._forget()
        self._dispatch()
        return work

    def cancel(self, key: str, user: str) -> bool:
        """One user no longer wants it; when nobody does, it ends. False where there is nothing to cancel."""
        work = self._known.get(key)
        if work is None or work.ended or user not in work.users:
            return False
        work.users.discard(user)
        if work.users:
            return True
        if work.task is not None:
            # Not before it has begun: it would end without giving its worker back.
            asyncio.get_running_loop().call_soon(work.task.cancel)
        else:
            for line in self._waiting.values():
                if work in line:
                    line.remove(work)
            self._end(work, "cancelled")
        return True

    @property
    def waiting(self) -> int:
        return sum(len(line) for line in self._waiting.values())

    def _check_room(self, user: str) -> None:
        each = sum(self._recent) / len(self._recent) if self._recent else USUAL_S
        retry_s = max(1.0, each * (1 + self.waiting / len(self._all)) / 2)
        if self.waiting >= MOST_WAITING:
            raise QueueFull(f"{self.waiting} questions wait already", retry_s)
        if len(self._waiting.get(user, ())) >= MOST_OF_ONE:
            raise QueueFull(f"{MOST_OF_ONE} of your questions wait already", retry_s)

    def _dispatch(self) -> None:
        """Give idle workers to users in turn."""
        while self._idle and self.waiting:
            user, line = self._waiting.popitem(last=False)
            if not line:
                continue
            work = line.popleft()
            if line:
                self._waiting[user] = line  # to the end: others are next
            worker = self._idle.popleft()
            work.state, work.began = "running", time.monotonic()
            work.task = asyncio.create_task(self._run(work, worker))
            work.news()

    async def _run(self, work: QueuedQuestion, worker: WorkerProcess) -> None:
        folder = Path(tempfile.mkdtemp(prefix="ropewalk-ui-"))
        try:
            for name, content in work.asked.files.items():
                (folder / name).write_bytes(content)
            shown = [*work.asked.command, *work.asked.arguments]
            words = [*work.asked.command, *work.extra, *work.asked.arguments]
            request = {"words": words, "folder": str(folder), "shown": shown}
            reply = await worker.ask(request, self._limits, work.tell)
            self._finish(work, reply, folder)
            if reply["code"] == BROKEN:
                await worker.end()
            self._recent.append(time.monotonic() - work.began)
            self._end(work, "done" if reply["code"] == 0 else "failed", reply["err"] if reply["code"] else "")
        except WorkerLost as problem:
            self._end(work, "failed", str(problem))
        except asyncio.CancelledError:
            self._end(work, "cancelled")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._idle.append(worker)
            with contextlib.suppress(OSError):
                await worker.start()
            self._dispatch()

    def _end(self, work: QueuedQuestion, state: str, failure: str = "") -> None:
        work.state, work.failure = state, failure.strip().removeprefix("ropewalk: ")
        work.seconds = time.monotonic() - work.began if work.began else 0.0
        work.task = None
        work.news()

    def _forget(self) -> None:
        for key in [key for key, work in self._known.items() if work.ended][: max(0, len(self._known) - KEPT)]:
            del self._known[key]
