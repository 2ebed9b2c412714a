"""How far work is: one kind of callback for all studies, and a plain count for the engines below them.

>>> seen = []
>>> count = counting(lambda done, total, now: seen.append(f"{now}: {done} of {total}"), "tasks done")
>>> count(3, 8)
>>> seen
['tasks done: 3 of 8']
"""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int | None, str], None]
"""Called with (done, of how many, what is being done now); None where nobody knows of how many."""

Count = Callable[[int, int], None]
"""Called by an engine with (done, of how many)."""


def silent(done: int, total: int | None, now: str) -> None:
    """For those who do not watch."""


def counting(progress: Progress | None, now: str) -> Count | None:
    """What an engine is given, so that those who watch a study see how far it is with one thing."""
    return None if progress is None else lambda done, total: progress(done, total, now)
