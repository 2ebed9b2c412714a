"""The one thread that changes anything: it takes operations in batches, commits each batch once, then acknowledges.

Nobody is told of a change before it is on disk. A commit that fails ends the process, because what is in memory is then
ahead of what is on disk; a restart begins with what is on disk.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from hashlib import sha256
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from ropewalk.serve import failpoints
from ropewalk.serve.controller import Controller
from ropewalk.serve.core import Answer as Answer
from ropewalk.serve.core import Core, PendingOperation
from ropewalk.serve.encoding import encode
from ropewalk.serve.operation import Expire, Operation, as_document
from ropewalk.serve.outcome import Refused
from ropewalk.serve.state import Counters
from ropewalk.serve.store.retention import Retention
from ropewalk.serve.store.store import Changes, Store
from ropewalk.serve.subscription import News, Subscription

MOST_IN_A_BATCH = 64
SPACING_S = 0.002
"""From the beginning of a batch to the next: under load two or three operations share a commit, which costs as much as
they do; whoever asks after a pause waits for nobody."""
TICK_S = 0.25
"""How often the thread looks at the clock when nobody asks for anything."""
SWEEP_S = 60.0
"""How often history is looked through for what is too old."""
EXIT_FAILED_COMMIT = 70

Read = TypeVar("Read")


@dataclass(eq=False, slots=True)
class _Read:
    function: Callable[[Controller], Any]
    future: Future[Any]


class Writer:
    """Operations from any thread, in the order in which they come."""

    def __init__(
        self,
        store: Store,
        controller: Controller,
        counters: Counters,
        *,
        clock: Callable[[], float] = time.time,
        fatal: Callable[[BaseException], None] | None = None,
        retention: Retention | None = None,
    ) -> None:
        self.store = store
        self.on_batch: Callable[[int], None] | None = None
        """Told after every commit how many operations it was for."""
        self.news = News(store, counters.next_event - 1)
        self._core = Core(store, controller, counters)
        self._clock = clock
        self._fatal = fatal or _leave
        self._retention = retention or Retention()
        self._swept = time.monotonic()
        self._began = 0.0
        self._asked: SimpleQueue[PendingOperation | _Read | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="ropewalk-writer", daemon=True)

    def start(self) -> Writer:
        self._thread.start()
        return self

    def submit(
        self,
        operation: Operation,
        *,
        idempotency_key: str | None = None,
        if_match: int | None = None,
        actor: str = "",
        own_only: bool = False,
    ) -> Future[Answer]:
        """Ask for an operation; the answer comes when it is committed, a `Refused` when nothing has changed.

        The same key with the same request gives the answer that was given first. With `own_only` a job of somebody
        else than `actor` is not changed.
        """
        request_hash = "" if idempotency_key is None else _hash(operation, if_match)
        asked = PendingOperation(operation, idempotency_key, request_hash, if_match, actor, Future(), own_only)
        self._asked.put(asked)
        return asked.future

    def read(self, function: Callable[[Controller], Read]) -> Future[Read]:
        """Ask something of the controller between two batches; it never sees what is not committed."""
        future: Future[Read] = Future()
        self._asked.put(_Read(function, future))
        return future

    def subscribe(self, after_seq: int) -> Subscription:
        """Committed events in their order, from the one after `after_seq` on."""
        return self.news.subscribe(after_seq)

    @property
    def waiting(self) -> int:
        """Requests that the thread has not taken yet."""
        return self._asked.qsize()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        """Answer what was asked so far, then stop."""
        self._asked.put(None)
        self._thread.join()
        self.news.close()

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except BaseException as problem:
            self._fatal(problem)

    def _turn(self) -> bool:
        """One batch; False where it is the last."""
        taken = self._take()
        self._keep_house()
        if taken is None:
            return True
        reads = [one for one in taken if isinstance(one, _Read)]
        asked = [one for one in taken if isinstance(one, PendingOperation)]
        for read in reads:
            _answer_read(read, self._core.controller)
        if asked:
            self._write(asked)
        return None not in taken

    def _take(self) -> list[PendingOperation | _Read | None] | None:
        """What has been asked, at most a batch; whoever has gone away meanwhile is left out."""
        taken: list[PendingOperation | _Read | None] = []
        try:
            one = self._asked.get(timeout=TICK_S)
            self._space_out()
            while True:
                if one is None or one.future.set_running_or_notify_cancel():
                    taken.append(one)
                if one is None or len(taken) >= MOST_IN_A_BATCH:
                    break
                one = self._asked.get_nowait()
        except Empty:
            pass
        return taken or None

    def _space_out(self) -> None:
        wait_s = self._began + SPACING_S - time.monotonic()
        if wait_s > 0:
            time.sleep(wait_s)
        self._began = time.monotonic()

    def _keep_house(self) -> None:
        """End reservations that ran out, and delete history that is too old, a little at a time."""
        due = self._core.controller.next_expiry
        if due is not None and due <= self._clock():
            self._write([PendingOperation(Expire(), None, "", None, "controller", Future())])
        if time.monotonic() - self._swept >= SWEEP_S and not self.store.forget(self._retention, self._clock()):
            self._swept = time.monotonic()

    def _write(self, batch: list[PendingOperation]) -> None:
        """Carry out a batch in memory, commit it, then acknowledge all of it."""
        with self.store.transaction() as transaction:
            known = transaction.answers({one.key for one in batch if one.key is not None})
            changes, results = self._core.carry_out(batch, known, self._clock())
            transaction.write(changes)
        failpoints.reach("after-commit")
        self._publish(changes, batch)
        _acknowledge(batch, results)

    def _publish(self, changes: Changes, batch: list[PendingOperation]) -> None:
        self.news.publish(changes.events)
        if self.on_batch is not None:
            self.on_batch(len(batch))


def _acknowledge(batch: list[PendingOperation], results: list[Answer | Refused]) -> None:
    for one, result in zip(batch, results, strict=True):
        if isinstance(result, Refused):
            one.future.set_exception(result)
        else:
            one.future.set_result(result)
        failpoints.reach("mid-answer")


def _answer_read(read: _Read, controller: Controller) -> None:
    try:
        read.future.set_result(read.function(controller))
    except Exception as problem:
        read.future.set_exception(problem)


def _hash(operation: Operation, if_match: int | None) -> str:
    """Of what a request says; what it leaves open is not in it, so that a later version hashes it to the same."""
    said = {name: value for name, value in as_document(operation).items() if value is not None}
    return sha256(encode([said, if_match])).hexdigest()


def _leave(problem: BaseException) -> None:
    """What is in memory is ahead of what is on disk: only a new process can go on."""
    traceback.print_exception(problem, file=sys.stderr)
    sys.stderr.flush()
    os._exit(EXIT_FAILED_COMMIT)
