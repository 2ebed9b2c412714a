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

from ropewalk.errors import ClusterError
from ropewalk.tenancy.job import Job

Expected = Callable[[Job], float]
"""Seconds that a job is expected to run."""
Order = Callable[[Job, Expected], tuple[float, ...]]
"""A job's place in the line, lowest first; ties go by arrival."""


def fifo(job: Job, expected: Expected) -> tuple[float, ...]:
    """First come, first served."""
    return ()


def smallest(job: Job, expected: Expected) -> tuple[float, ...]:
    """Fewest GPUs first."""
    return (job.gpus,)


def earliest_deadline(job: Job, expected: Expected) -> tuple[float, ...]:
    """Nearest deadline first; jobs without one come last."""
    return (math.inf if job.deadline_s is None else job.deadline_s,)


def shortest(job: Job, expected: Expected) -> tuple[float, ...]:
    """Shortest expected run first."""
    return (expected(job),)


ORDERS: dict[str, Order] = {"fifo": fifo, "smallest": smallest, "edf": earliest_deadline, "shortest": shortest}
"""By the name people type."""


def order_named(name: str) -> Order:
    if name not in ORDERS:
        raise ClusterError(f"there is no queue {name!r}: choose one of {', '.join(ORDERS)}")
    return ORDERS[name]


@dataclass(eq=False)
class Line:
    """Numbers of waiting jobs in their order; who was thrown out by a failure stands before everybody else."""

    order: Order
    _keys: list[tuple[tuple[float, ...], int]] = field(default_factory=list)
    _key_of: dict[int, tuple[float, ...]] = field(default_factory=dict)

    def add(self, number: int, job: Job, expected: Expected, *, again: bool = False) -> None:
        """A job joins; `again`: it ran already and comes back to the front."""
        key = (0.0 if again else 1.0, *self.order(job, expected), job.arrival_s)
        self._key_of[number] = key
        insort(self._keys, (key, number))

    def remove(self, number: int) -> None:
        key = self._key_of.pop(number)
        del self._keys[bisect_left(self._keys, (key, number))]

    def was_thrown_out(self, number: int) -> bool:
        return self._key_of[number][0] == 0.0

    @property
    def head(self) -> int | None:
        return self._keys[0][1] if self._keys else None

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[int]:
        return (number for _, number in self._keys)
