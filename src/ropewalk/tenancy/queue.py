"""Who is next: orders of a queue, and the line of waiting jobs kept in one of them.

Without backfill the head of the line blocks everybody behind it, also where only common spines are missing: that is how
the published numbers were made. A scheduler here looks at the head whenever something has changed; under `fifo` that is
exactly the published rule (a newcomer is tried at once only when nobody waits, and the end of a job starts as many
heads as fit).
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from ropewalk.choices import nearest
from ropewalk.errors import ClusterError


class Queued(Protocol):
    """What a queue knows of a job, of a trace or of a live cluster."""

    @property
    def gpus(self) -> int: ...

    @property
    def arrival_s(self) -> float: ...

    @property
    def deadline_s(self) -> float | None: ...


Expected = Callable[[Any], float]
"""Seconds that a job is expected to run."""
Order = Callable[[Queued, Expected], tuple[float, ...]]
"""A job's place in the line, lowest first; ties go by arrival."""


def fifo(job: Queued, expected: Expected) -> tuple[float, ...]:
    """First come, first served."""
    return ()


def smallest(job: Queued, expected: Expected) -> tuple[float, ...]:
    """Fewest GPUs first."""
    return (job.gpus,)


def earliest_deadline(job: Queued, expected: Expected) -> tuple[float, ...]:
    """Nearest deadline first; jobs without one come last."""
    return (math.inf if job.deadline_s is None else job.deadline_s,)


def shortest(job: Queued, expected: Expected) -> tuple[float, ...]:
    """Shortest expected run first."""
    return (expected(job),)


ORDERS: dict[str, Order] = {"fifo": fifo, "smallest": smallest, "edf": earliest_deadline, "shortest": shortest}
"""By the name people type."""


def order_named(name: str) -> Order:
    if name not in ORDERS:
        raise ClusterError(
            f"there is no queue {name!r}: {nearest(name, list(ORDERS))}choose one of {', '.join(ORDERS)}"
        )
    return ORDERS[name]


@dataclass(eq=False)
class Line:
    """Numbers of waiting jobs in their order; who was thrown out by a failure stands before everybody else."""

    order: Order
    _keys: list[tuple[tuple[float, ...], int]] = field(default_factory=list)
    _key_of: dict[int, tuple[float, ...]] = field(default_factory=dict)

    def add(self, number: int, job: Queued, expected: Expected, *, again: bool = False, priority: float = 0.0) -> None:
        """A job joins; `again`: it ran already and comes back to the front. The highest priority comes first."""
        key = (0.0 if again else 1.0, 0.0 - priority, *self.order(job, expected), job.arrival_s)
        self._key_of[number] = key
        insort(self._keys, (key, number))

    def remove(self, number: int) -> None:
        key = self._key_of.pop(number)
        del self._keys[bisect_left(self._keys, (key, number))]

    def was_thrown_out(self, number: int) -> bool:
        return self._key_of[number][0] == 0.0

    def copy(self) -> Line:
        """The same line, free to change on its own."""
        return Line(self.order, list(self._keys), dict(self._key_of))

    def place(self, number: int) -> int:
        """How many stand before this one."""
        return bisect_left(self._keys, (self._key_of[number], number))

    def first(self, most: int) -> list[int]:
        """The first in the line, at most so many."""
        return [number for _, number in self._keys[:most]]

    @property
    def head(self) -> int | None:
        return self._keys[0][1] if self._keys else None

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, number: int) -> bool:
        return number in self._key_of

    def __iter__(self) -> Iterator[int]:
        return (number for _, number in self._keys)
