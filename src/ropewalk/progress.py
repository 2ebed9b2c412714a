"""How far work is: one kind of callback for all studies, and a plain count for the engines below them.

>>> seen = []
>>> count = counting(lambda done, total, now: seen.append(f"{now}: {done} of {total}"), "tasks done")
>>> count(3, 8)
>>> seen
['tasks done: 3 of 8']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

Progress = Callable[[int, int | None, str], None]
"""Called with (done, of how many, what is being done now); None where nobody knows of how many."""

Count = Callable[[int, int], None]
"""Called by an engine with (done, of how many)."""

T = TypeVar("T")
AGAIN_S = 0.1
"""Loops below studies tell no more often than this."""


def silent(done: int, total: int | None, now: str) -> None:
    """For those who do not watch."""


def counting(progress: Progress | None, now: str) -> Count | None:
    """What an engine is given, so that those who watch a study see how far it is with one thing."""
    return None if progress is None else lambda done, total: progress(done, total, now)


_WATCHER: ContextVar[Progress] = ContextVar("watcher", default=silent)


def watcher() -> Progress:
    """Who is told how far a command is: its bar, and whoever else follows it."""
    return _WATCHER.get()


def counted(items: Sequence[T], now: str) -> Iterator[T]:
    """The items of a long loop below a study, while whoever watches the command sees how many are done.

    >>> with watched_by(lambda done, total, now: print(f"{now}: {done} of {total}")):
    ...     list(counted([3, 4], "growing trees"))
    growing trees: 0 of 2
    [3, 4]
    """
    tell, last = watcher(), -AGAIN_S
    for done, item in enumerate(items):
        if monotonic() - last >= AGAIN_S:
            tell(done, len(items), now)
            last = monotonic()
        yield item


@contextmanager
def watched_by(progress: Progress) -> Iterator[None]:
    """While the block runs, `progress` is told how far commands are.

    >>> with watched_by(lambda done, total, now: print(now)):
    ...     watcher()(0, None, "reading")
    reading
    """
    before = _WATCHER.set(progress)
    try:
        yield
    finally:
        _WATCHER.reset(before)
