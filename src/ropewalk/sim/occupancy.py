"""When each rank was busy, and with what: the operations of a step laid out in time, rank by rank.

A computation occupies its rank, a send both its ends, a collective all its members from the moment the last of them has
arrived until it is done. Everything is array operations: a million operations take about a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.ragged import ranges
from ropewalk.sim.trace import Trace
from ropewalk.task import Kind
from ropewalk.task.step import Act, Step

ROUNDING = 1e-12
"""Part of a step that sums of its spans may be off by."""

Seconds = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class OperationTimes:
    """When each operation was in flight; an operation without a task, or of no length, ends when it starts."""

    start: Seconds
    end: Seconds


@dataclass(frozen=True, eq=False)
class Occupancy:
    """One entry for each operation that occupied a rank, and each rank that it occupied."""

    rank: Ids
    operation: Ids
    start: Seconds
    end: Seconds


@dataclass(frozen=True, eq=False)
class RankTimes:
    """How each rank spent the step: compute + exposed communication + bubble is the step time, for every rank."""

    compute_s: Seconds
    communication_s: Seconds
    """Seconds in which at least one operation of communication was in flight for the rank, hidden or not."""
    exposed_communication_s: Seconds
    """Those of them in which the rank computed nothing."""
    bubble_s: Seconds
    exposed_by_purpose_s: dict[str, Seconds]
    """The exposed seconds by stream; where several streams are in flight at once, each has an equal part."""


def operation_times(step: Step, trace: Trace, operation_of_task: NDArray[np.int32]) -> OperationTimes:
    """From the first byte or instruction of an operation to its last; waiting for members is not part of it."""
    start, end = np.full(step.operations, np.inf), np.full(step.operations, -np.inf)
    worked = (trace.graph.kind != Kind.MARKER) & (operation_of_task >= 0)
    owner = operation_of_task[worked]
    np.minimum.at(start, owner, trace.start[worked])
    np.maximum.at(end, owner, trace.end[worked])
    idle = ~np.isfinite(start)
    start[idle] = end[idle] = 0.0
    return OperationTimes(start, end)


def occupancy(step: Step, times: OperationTimes) -> Occupancy:
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
    return Occupancy(rank.astype(np.int64), operation, times.start[operation], times.end[operation])


def rank_times(step: Step, occupied: Occupancy, step_time_s: float) -> RankTimes:
    """One sweep over the starts and ends of everything, rank by rank."""
    rank = np.concatenate([occupied.rank, occupied.rank])
    time = np.concatenate([occupied.start, occupied.end])
    order = np.lexsort((time, rank))
    rank, time = rank[order], time[order]
    change = np.repeat(np.array([1, -1], np.int32), len(occupied.rank))[order]
    same = np.diff(rank, append=-1) == 0
    length = np.where(same, np.diff(time, append=0.0), 0.0)
    operation = np.concatenate([occupied.operation, occupied.operation])[order]
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

    def by_rank(seconds: Seconds) -> Seconds:
        return np.bincount(rank, seconds, minlength=step.ranks).astype(np.float64)

    compute_s, exposed_s = by_rank(length * computing), by_rank(exposed)
    share = exposed / np.maximum(purposes, 1)
    return RankTimes(
        compute_s,
        by_rank(length * (purposes > 0)),
        exposed_s,
        _rest(step_time_s, compute_s + exposed_s),
        {step.streams[stream]: by_rank(share * flying) for stream, flying in in_flight.items()},
    )


def _rest(whole_s: float, spent_s: Seconds) -> Seconds:
    """What is left of the step; what rounding leaves of it is nothing."""
    rest = whole_s - spent_s
    return np.where(rest > ROUNDING * whole_s, rest, 0.0)
