"""When each rank was busy, and with what: the operations of a step laid out in time, rank by rank.

A computation occupies its rank, a send both its ends, a collective all its members from the moment the last of them has
arrived until it is done. Everything is array operations: a million operations take about a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.ragged import ranges
from ropewalk.sim.trace import Trace
from ropewalk.task import TaskKind
from ropewalk.task.step import Act, Step

ROUNDING = 1e-12
"""Part of a step that sums of its spans may be off by."""
BLOCK = 1 << 17
"""Entries that are swept at once: what is worked out about them stays in the cache."""


class TimedOperations(Protocol):
    """Operations of all ranks or of some, as far as their times are told: a `Step` has these columns."""

    @property
    def ranks(self) -> int: ...
    @property
    def act(self) -> NDArray[np.int8]: ...
    @property
    def stream(self) -> NDArray[np.int16]: ...
    @property
    def streams(self) -> tuple[str, ...]: ...
    @property
    def label(self) -> NDArray[np.int32]: ...
    @property
    def labels(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, eq=False)
class OperationTimes:
    """When each operation was in flight; an operation without a task, or of no length, ends when it starts."""

    start: Floats
    end: Floats


@dataclass(frozen=True, eq=False)
class RankOccupancy:
    """One entry for each operation that occupied a rank, and each rank that it occupied."""

    rank: Ints
    operation: Ints
    start: Floats
    end: Floats


@dataclass(frozen=True, eq=False)
class RankTimes:
    """How each rank spent the step: compute + exposed communication + bubble is the step time, for every rank."""

    compute_s: Floats
    communication_s: Floats
    """Seconds in which at least one operation of communication was in flight for the rank, hidden or not."""
    exposed_communication_s: Floats
    """Those of them in which the rank computed nothing."""
    bubble_s: Floats
    exposed_by_purpose_s: dict[str, Floats]
    """The exposed seconds by stream; where several streams are in flight at once, each has an equal part."""


def operation_times(step: Step, trace: Trace, operation_of_task: NDArray[np.int32]) -> OperationTimes:
    """From the first byte or instruction of an operation to its last; waiting for members is not part of it."""
    start, end = np.full(step.operations, np.inf), np.full(step.operations, -np.inf)
    worked = (trace.graph.kind != TaskKind.MARKER) & (operation_of_task >= 0)
    owner = operation_of_task[worked]
    np.minimum.at(start, owner, trace.start[worked])
    np.maximum.at(end, owner, trace.end[worked])
    idle = ~np.isfinite(start)
    start[idle] = end[idle] = 0.0
    return OperationTimes(start, end)


def occupancy(step: Step, times: OperationTimes) -> RankOccupancy:
    """Who was occupied by what and when, in the order of operations for each sort of them."""
    lasting = times.end > times.start
    own = np.flatnonzero(lasting & (step.rank >= 0))
    received = np.flatnonzero(lasting & (step.act == Act.SEND))
    met = np.flatnonzero(lasting & (step.group >= 0))
    size = np.array([len(members) for members in step.groups], np.int64)
    members = np.concatenate([*step.groups, np.zeros(0, np.int32)]).astype(np.int64)
    group = step.group[met]
    member = members[ranges((size.cumsum() - size)[group], size[group])]
    rank = np.concatenate([step.rank[own], step.peer[received], member])
    operation = np.concatenate([own, received, np.repeat(met, size[group])])
    return RankOccupancy(rank.astype(np.int64), operation, times.start[operation], times.end[operation])


def rank_times(step: TimedOperations, occupied: RankOccupancy, step_time_s: float) -> RankTimes:
    """One sweep over the starts and ends of everything, rank by rank."""
    # Small whole numbers are sorted by their digits, which takes a tenth of the time of comparing them.
    order = np.argsort(occupied.rank.astype(np.min_scalar_type(step.ranks)), kind="stable")
    streams = np.unique(step.stream[step.act != Act.COMPUTE]).tolist()
    total = _Totals(step.ranks, streams)
    for first, last in _blocks(np.bincount(occupied.rank, minlength=step.ranks)):
        _sweep(step, occupied, order[first:last], total)
    communicated = {stream: seconds for stream, seconds in total.by_stream.items() if stream in total.seen}
    return RankTimes(
        total.compute,
        total.communication,
        total.exposed,
        _rest(step_time_s, total.compute + total.exposed),
        {step.streams[stream]: seconds for stream, seconds in communicated.items()},
    )


class _Totals:
    """Seconds of every rank, filled block by block."""

    def __init__(self, ranks: int, streams: list[int]) -> None:
        self.compute, self.communication, self.exposed = (np.zeros(ranks) for _ in range(3))
        self.by_stream = {stream: np.zeros(ranks) for stream in streams}
        self.seen: set[int] = set()
        """Streams on which something was in flight."""


def _blocks(entries: Ints) -> Iterator[tuple[int, int]]:
    """Spans of whole ranks with about `BLOCK` entries each, ranks one behind the other."""
    ends = np.cumsum(entries)
    first = 0
    while len(ends) and first < ends[-1]:
        full = min(int(np.searchsorted(ends, first + BLOCK)), len(ends) - 1)
        yield first, int(ends[full])
        first = int(ends[full])


def _sweep(step: TimedOperations, occupied: RankOccupancy, entry: Ints, total: _Totals) -> None:
    """Add up the seconds of the ranks of these entries, of which there are all."""
    rank = np.tile(occupied.rank[entry], 2)
    time = np.concatenate([occupied.start[entry], occupied.end[entry]])
    order = np.lexsort((time, rank))
    rank, time = rank[order], time[order]
    change = np.repeat(np.array([1, -1], np.int32), len(entry))[order]
    same = np.diff(rank, append=-1) == 0
    length = np.where(same, np.diff(time, append=0.0), 0.0)
    operation = np.tile(occupied.operation[entry], 2)[order]
    computes = step.act[operation] == Act.COMPUTE
    computing = np.cumsum(np.where(computes, change, 0)) > 0
    purpose = np.where(computes, -1, step.stream[operation])
    # Purposes in flight are told apart so that each instant is shared out among them.
    in_flight = {
        int(stream): np.cumsum(np.where(purpose == stream, change, 0)) > 0
        for stream in np.unique(purpose[purpose >= 0])
    }
    purposes = np.zeros(len(rank), np.int32)
    for flying in in_flight.values():
        purposes += flying
    exposed = length * (~computing & (purposes > 0))
    share = exposed / np.maximum(purposes, 1)
    lowest = int(rank[0])

    def add(to: Floats, seconds: Floats) -> None:
        found = np.bincount(rank - lowest, seconds)
        to[lowest : lowest + len(found)] += found

    add(total.compute, length * computing)
    add(total.communication, length * (purposes > 0))
    add(total.exposed, exposed)
    for stream, flying in in_flight.items():
        add(total.by_stream[stream], share * flying)
    total.seen.update(in_flight)


def _rest(whole_s: float, spent_s: Floats) -> Floats:
    """What is left of the step; what rounding leaves of it is nothing."""
    rest = whole_s - spent_s
    return np.where(rest > ROUNDING * whole_s, rest, 0.0)
