"""Jobs that may start before the head of the line because they do not make it wait longer.

Both rules go by expected run times; a job that runs longer than expected, for instance because others slow it down,
makes a promise slip, as it does on real clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ropewalk.choices import nearest
from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.policy import Allocate

DEPTH = 100
"""Waiting jobs that are looked at, from the head on."""


@dataclass(frozen=True)
class Waiter:
    number: int
    name: str
    gpus: int
    expected_s: float


@dataclass(frozen=True, eq=False)
class QueueMoment:
    """What a scheduler sees: the state, who waits in which order, and when running jobs are expected to end."""

    now_s: float
    state: Occupancy
    allocate: Allocate
    waiting: Sequence[Waiter]
    ends: Sequence[tuple[float, str]]
    """(expected end, name) of running jobs, the earliest first."""


Backfill = Callable[[QueueMoment], tuple[int, Allocation] | None]
"""A waiting job behind the head that may start now, with what it gets, or None."""


def easy(moment: QueueMoment) -> tuple[int, Allocation] | None:
    """Whoever does not delay the head alone (Lifka, The ANL/IBM SP scheduling system, 1995).

    The head is promised the moment at which it could be placed if running jobs end as expected. Another job may start
    when it is done by then, or when the head could be placed at that moment beside it. Both are tried on the real
    state, so the promise holds for servers and spines as well as for numbers of GPUs.
    """
    if len(moment.waiting) < 2:
        return None
    head, *others = moment.waiting[:DEPTH]
    promised_s, then = _promise(moment, head)
    for waiter in others:
        found = _fits_now(moment, waiter)
        if found is None:
            continue
        if moment.now_s + waiter.expected_s <= promised_s:
            return waiter.number, found
        if then is not None:
            beside = then.copy()
            beside.place(found)
            if isinstance(moment.allocate(beside, head.name, head.gpus), Allocation):
                return waiter.number, found
    return None


def conservative(moment: QueueMoment) -> tuple[int, Allocation] | None:
    """Whoever delays nobody before it (Mu'alem and Feitelson, 2001).

    Every waiting job in turn is promised the earliest stretch with enough GPUs by number; a job whose stretch begins
    now starts if it can also be placed now.
    """
    free = _Free(moment)
    for waiter in moment.waiting[:DEPTH]:
        begin_s = free.earliest(waiter.gpus, waiter.expected_s, moment.now_s)
        if begin_s == moment.now_s:
            found = _fits_now(moment, waiter)
            if found is not None:
                return waiter.number, found
            begin_s = free.earliest(waiter.gpus, waiter.expected_s, free.next_change(moment.now_s))
        free.take(waiter.gpus, begin_s, begin_s + waiter.expected_s)
    return None


BACKFILLS: dict[str, Backfill | None] = {"none": None, "easy": easy, "conservative": conservative}
"""By the name people type; none is how the published numbers were made."""


def backfill_named(name: str) -> Backfill | None:
    if name not in BACKFILLS:
        raise ClusterError(
            f"there is no backfill {name!r}: {nearest(name, list(BACKFILLS))}choose one of {', '.join(BACKFILLS)}"
        )
    return BACKFILLS[name]


def _fits_now(moment: QueueMoment, waiter: Waiter) -> Allocation | None:
    if waiter.gpus > moment.state.free:
        return None
    found = moment.allocate(moment.state, waiter.name, waiter.gpus)
    return found if isinstance(found, Allocation) else None


def _promise(moment: QueueMoment, head: Waiter) -> tuple[float, Occupancy | None]:
    """When the head could be placed as running jobs end, and the state then; never where that would not be enough."""
    then = moment.state.copy()
    for end_s, name in moment.ends:
        then.release(name)
        if then.free >= head.gpus and isinstance(moment.allocate(then, head.name, head.gpus), Allocation):
            return max(end_s, moment.now_s), then
    return math.inf, None


class _Free:
    """Free GPUs by number over the time to come, as steps."""

    def __init__(self, moment: QueueMoment) -> None:
        change: dict[float, int] = {moment.now_s: moment.state.free}
        for end_s, name in moment.ends:
            at = max(end_s, moment.now_s)
            change[at] = change.get(at, 0) + moment.state.jobs[name].size
        self.change = change

    def _steps(self) -> list[tuple[float, float, int]]:
        """(from, to, free) in order of time."""
        times, free, steps = [*sorted(self.change), math.inf], 0, []
        for begin, end in pairwise(times):
            free += self.change[begin]
            steps.append((begin, end, free))
        return steps

    def next_change(self, after_s: float) -> float:
        return min((time for time in self.change if time > after_s), default=after_s)

    def earliest(self, gpus: int, length_s: float, from_s: float) -> float:
        """The first moment from which so many are free for so long; otherwise the end of everything."""
        begin: float | None = None
        for start, end, free in self._steps():
            if end <= from_s:
                continue
            if free < gpus:
                begin = None
                continue
            begin = max(start, from_s) if begin is None else begin
            if end - begin >= length_s:
                return begin
        return math.inf

    def take(self, gpus: int, begin_s: float, end_s: float) -> None:
        if begin_s == math.inf:
            return
        self.change[begin_s] = self.change.get(begin_s, 0) - gpus
        self.change[end_s] = self.change.get(end_s, 0) + gpus
