"""Estimates while somebody moves a slider: the latest question of everybody counts, older ones are let go.

Whoever moves a slider on keeps the place in the queue. The same question of several is worked on once, and one that
differs by its batch alone goes to the process that knows the prices of its network, where that is free.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections import OrderedDict, deque
from functools import partial
from typing import Any

from ropewalk.documents import parse_foreign_json
from ropewalk.errors import InputError
from ropewalk.ui.asked import Asked
from ropewalk.ui.cloud import cloud
from ropewalk.ui.pool import QueueFull
from ropewalk.ui.process import Limits, WorkerLost, WorkerProcess
from ropewalk.ui.worker import BROKEN

MOST_USERS = 200
"""Users that wait for an estimate at once."""
REMEMBERED = 512
RETRY_S = 2.0
Promise = asyncio.Future[dict[str, Any]]


class Superseded(Exception):
    """The same user has asked something newer meanwhile."""


class Estimates:
    """A few processes that run `plan --quick` and keep what models cost."""

    def __init__(self, module: str, workers: int, limits: Limits) -> None:
        self._limits = limits
        self._all = tuple(WorkerProcess(module) for _ in range(workers))
        self._idle = deque(self._all)
        self._waiting: OrderedDict[str, tuple[Asked, Promise]] = OrderedDict()
        self._known: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._running: dict[str, Promise] = {}
        """By question: what a worker is on, which others may wait for, too."""
        self._answered_by: OrderedDict[tuple[str, ...], WorkerProcess] = OrderedDict()
        """By question without its batch: the process that had it last."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        await asyncio.gather(*(one.start() for one in self._all))

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(one.end() for one in self._all))

    async def ask(self, asked: Asked, user: str) -> dict[str, Any]:
        """The estimate; an older question of the same user that still waits is superseded."""
        known = self._known.get(asked.key)
        if known is not None:
            self._known.move_to_end(asked.key)
            return known
        running = self._running.get(asked.key)
        if running is not None:
            return await asyncio.shield(running)
        older = self._waiting.get(user)
        if older is not None and not older[1].done():
            older[1].set_exception(Superseded())
        if older is None and len(self._waiting) >= MOST_USERS:
            raise QueueFull(f"{len(self._waiting)} people wait for estimates", RETRY_S)
        promise: Promise = asyncio.get_running_loop().create_future()
        promise.add_done_callback(lambda done: done.cancelled() or done.exception())  # its asker may have gone
        self._waiting[user] = (asked, promise)  # in the place of the older one
        self._dispatch()
        try:
            return await asyncio.shield(promise)
        except asyncio.CancelledError:
            if self._waiting.get(user) == (asked, promise):
                del self._waiting[user]
            raise

    def _dispatch(self) -> None:
        while self._idle and self._waiting:
            _, (asked, promise) = self._waiting.popitem(last=False)
            if promise.done():
                continue
            if asked.key in self._known:  # by another user, who asked a little earlier
                promise.set_result(self._known[asked.key])
                continue
            if asked.key in self._running:
                self._running[asked.key].add_done_callback(partial(_hand_on, promise))
                continue
            self._running[asked.key] = promise
            task = asyncio.create_task(self._run(self._taken_for(asked), asked, promise))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _taken_for(self, asked: Asked) -> WorkerProcess:
        """An idle process, the one that knows this network if it is idle."""
        network = _without_batch(asked)
        knows = self._answered_by.pop(network, None)
        worker = knows if knows is not None and knows in self._idle else self._idle[0]
        self._idle.remove(worker)
        self._answered_by[network] = worker
        while len(self._answered_by) > REMEMBERED:
            self._answered_by.popitem(last=False)
        return worker

    async def _run(self, worker: WorkerProcess, asked: Asked, promise: asyncio.Future[dict[str, Any]]) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="ropewalk-ui-") as folder:
                for name, content in asked.files.items():
                    with open(f"{folder}/{name}", "wb") as out:
                        out.write(content)
                words = [*asked.command, "--quick", "--json", *asked.arguments]
                request = {"words": words, "folder": folder, "shown": words}
                reply = await worker.ask(request, self._limits, lambda progress: None)
            if reply["code"] == BROKEN:
                await worker.end()
            if reply["code"] != 0:
                raise InputError(reply["err"].strip().removeprefix("ropewalk: ") or "there is no estimate for this")
            estimate = parse_foreign_json(reply["out"], "the estimate", InputError)
            found = {
                **asked.as_document(), "estimate": estimate, "cloud": cloud(estimate), "seconds": reply["seconds"],
                "command_line": Asked(asked.command, ("--quick", *asked.arguments)).command_line,
            }  # fmt: skip
            self._known[asked.key] = found
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            if not promise.done():
                promise.set_result(found)
        except (InputError, WorkerLost) as problem:
            if not promise.done():
                promise.set_exception(problem)
        finally:
            if not promise.done():
                promise.cancel()
            self._running.pop(asked.key, None)
            self._idle.append(worker)
            with contextlib.suppress(OSError):
                await worker.start()
            self._dispatch()


def _without_batch(asked: Asked) -> tuple[str, ...]:
    """What a question has in common with the next one where somebody moves the batch.

    >>> _without_batch(Asked(("plan",), ("--batch", "64", "--seq", "512", "gpt2")))
    ('--seq', '512', 'gpt2')
    """
    words = list(asked.arguments)
    if "--batch" in words:
        at = words.index("--batch")
        del words[at : at + 2]
    return tuple(words)


def _hand_on(promise: Promise, same: Promise) -> None:
    """Whoever waits for the same question is told the same."""
    if promise.done():
        return
    if same.cancelled():
        promise.cancel()
    elif (problem := same.exception()) is not None:
        promise.set_exception(problem)
    else:
        promise.set_result(same.result())
