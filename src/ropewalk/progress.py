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

from ropewalk.units import show_roughly

Progress = Callable[[int, int | None, str], None]
"""Called with (done, of how many, what is being done now); None where nobody knows of how many."""

Count = Callable[[int, int], None]
"""Called by an engine with (done, of how many)."""

Say = Callable[[str], None]
"""Called below a study with what is being done now."""

T = TypeVar("T")
AGAIN_S = 0.1
"""Loops below studies tell no more often than this."""
PATIENCE_S = 2.0
"""After so long, loops that will go on for longer than `WORTH_SAYING_S` tell how long."""
WORTH_SAYING_S = 10.0


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
    tell, started = watcher(), monotonic()
    last = started - AGAIN_S
    for done, item in enumerate(items):
        here = monotonic()
        if here - last >= AGAIN_S:
            last = here
            tell(done, len(items), now + _left(here - started, done, len(items)))
        yield item


def _left(spent_s: float, done: int, total: int) -> str:
    """How much longer a loop takes that goes on as it began; nothing where that is soon, or not known yet.

    >>> _left(30.0, 10, 30), _left(1.0, 1, 1000)
    (', about 60 s left', '')
    """
    left = spent_s / done * (total - done) if done else 0.0
    return f", about {show_roughly(left)} left" if spent_s >= PATIENCE_S and left >= WORTH_SAYING_S else ""


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
