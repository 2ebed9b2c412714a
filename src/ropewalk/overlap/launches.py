"""A plan for a library that works strictly in order: pieces of tensors, handed over in the planned order.

Libraries like NCCL cannot put a sum aside, and every rank must hand over the same operations in the same order. So the
best preemptive schedule is cut into pieces beforehand, and these are launched in its order, once and for all: nothing
is decided while the step runs, so no two ranks can decide differently. Every launch starts up anew. A cut that costs
more than it gains is taken back (`without_useless_cuts`), and the plan is timed as it will run: each launch waits for
its own gradients and for the launch before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel_ieee
from ropewalk.overlap._fusion import judged, room_for
from ropewalk.overlap.groups import Arrival, Groups, costs_of
from ropewalk.overlap.heads_tails import Sums
from ropewalk.overlap.link import Link


@dataclass(frozen=True, eq=False)
class Launches:
    """Pieces in the order in which they are handed over; neighbours of one group are one launch.

    Piece i moves `size_bytes[i]` bytes for tensor `tensor[i]` of group `group[i]`. Where all tensors of a group arrive
    together, its pieces belong to its most urgent tensor and stand for all of them.
    """

    groups: Groups
    arrival: Arrival
    group: Ints
    tensor: Ints
    size_bytes: Floats

    @cached_property
    def begins(self) -> NDArray[np.bool_]:
        """Does a launch begin with this piece?"""
        return np.concatenate([[True], self.group[1:] != self.group[:-1]])

    @property
    def count(self) -> int:
        """Launches of a step."""
        return int(self.begins.sum())

    def listed(self, names: tuple[str, ...]) -> list[dict[str, object]]:
        """Launch by launch what is in it, for files and other programs."""
        numbers = np.cumsum(self.begins) - 1
        return [
            {
                "tensors": [names[tensor] for tensor in self._tensors(np.flatnonzero(numbers == number))],
                "size_bytes": float(self.size_bytes[numbers == number].sum()),
            }
            for number in range(self.count)
        ]

    def _tensors(self, pieces: Ints) -> list[int]:
        if self.arrival is Arrival.TOGETHER:
            return list(self.groups.members[self.group[pieces[0]]])
        return list(dict.fromkeys(self.tensor[pieces].tolist()))


@dataclass(frozen=True, eq=False)
class LaunchTimes:
    """A plan as it runs."""

    launches: Launches
    begin_s: Floats
    """By piece."""
    end_s: Floats
    arrival_s: Floats
    """By tensor."""
    step_s: float


def in_ready_order(
    sums: Sums, groups: Groups, arrival: Arrival = Arrival.TOGETHER, held_back: float | None = None
) -> Launches:
    """Every group in one launch, in the order of the groups; what streams does so in the order of the tails.

    `held_back` is the share of its time that a group takes before its first tensor can be there, where that is not the
    one of the `arrival`: reductions whose adding takes longer than their sending.
    """
    held_back = float(arrival.value) if held_back is None else held_back
    group, tensor, size = [], [], []
    for number, members in enumerate(groups.members):
        urgent = sorted(members, key=lambda member: -float(sums.tail_s[member]))
        total = float(sums.size_bytes[list(members)].sum())
        for at, member in enumerate(urgent if arrival is not Arrival.TOGETHER else urgent[:1]):
            group.append(number)
            tensor.append(member)
            size.append((1 - held_back) * float(sums.size_bytes[member]) + (held_back * total if at == 0 else 0.0))
    return Launches(groups, arrival, np.array(group, np.int64), np.array(tensor, np.int64), np.array(size))


def cut_as_planned(sums: Sums, link: Link, groups: Groups, arrival: Arrival, rounds_s: float = 0.0) -> Launches:
    """The best preemptive schedule of the groups, cut where it puts one aside for another."""
    groups = groups.by_ready(sums.head_s)
    order, costs = groups.order, costs_of(link, arrival, rounds_s)
    columns = (sums.head_s[order], sums.size_bytes[order], sums.tail_s[order])
    room = room_for(len(sums))
    _, jobs, pieces = judged(*columns, groups.ends, len(groups), costs, room)
    job = room.piece_job[:pieces]
    seconds = room.piece_end[:pieces] - room.piece_begin[:pieces]
    # The first job of a group starts up, the others pass through their rounds: what is left of a piece is bytes.
    overhead = np.where(_firsts(room.group[:jobs]), costs.start_up_s, costs.rounds_s)
    size = np.zeros(pieces)
    for piece in range(pieces):
        paid = min(overhead[job[piece]], seconds[piece])
        overhead[job[piece]] -= paid
        size[piece] = (seconds[piece] - paid) / costs.seconds_per_byte
    # A piece that was put aside before its first byte moved need not be launched; one that has no bytes at all must.
    total = np.zeros(jobs)
    np.add.at(total, job, size)
    last = np.zeros(pieces, bool)
    last[pieces - 1 - np.unique(job[::-1], return_index=True)[1]] = True
    kept = (size > 1e-9 * total[job]) | last
    return Launches(
        groups, arrival, room.group[:jobs][job[kept]].copy(), order[room.tensor[:jobs][job[kept]]], size[kept]
    )


def timed(
    sums: Sums, link: Link, launches: Launches, rounds_s: float = 0.0, collectives: Sequence[int] = ()
) -> LaunchTimes:
    """Run a plan on a library that works in order, every launch with its start-up.

    `collectives` says by group how many operations its launches are, where they are more than one.
    """
    costs = costs_of(link, launches.arrival, rounds_s)
    groups = launches.groups
    start_up = costs.start_up_s * np.array(collectives or [1] * len(groups), np.float64)
    ready = np.zeros(len(groups))
    np.maximum.at(ready, groups.group_of, sums.head_s)
    begin, end = _in_order(
        launches.group, launches.tensor, launches.size_bytes, ready, start_up, costs.rounds_s,
        costs.seconds_per_byte,
    )  # fmt: skip
    arrival = np.zeros(len(sums))
    if launches.arrival is Arrival.TOGETHER:
        done = np.zeros(len(groups))
        np.maximum.at(done, launches.group, end)
        arrival = done[groups.group_of]
    else:
        np.maximum.at(arrival, launches.tensor, end)
    arrival = arrival + link.latency_s
    return LaunchTimes(launches, begin, end, arrival, sums.step_s(arrival))


def without_useless_cuts(sums: Sums, link: Link, launches: Launches, rounds_s: float = 0.0) -> Launches:
    """Take back cuts that do not pay: a later launch of a group joins the one before where no step gets longer."""
    best = timed(sums, link, launches, rounds_s).step_s
    at = 0
    while at < launches.count:
        joined = _joined(launches, at)
        if joined is not None:
            step = timed(sums, link, joined, rounds_s).step_s
            if step <= best:
                launches, best = joined, step
                continue
        at += 1
    return launches


def planned(
    sums: Sums, link: Link, groups: Groups, arrival: Arrival = Arrival.TOGETHER, rounds_s: float = 0.0
) -> LaunchTimes:
    """The better of two plans for the groups: the preemptive schedule with the cuts that pay, and no cuts at all."""
    tries = [in_ready_order(sums, groups, arrival, costs_of(link, arrival, rounds_s).held_back)]
    if arrival is not Arrival.GATHERED:
        # What is scattered as a whole and gathered tensor by tensor cannot be put aside in the middle.
        tries.insert(
            0, without_useless_cuts(sums, link, cut_as_planned(sums, link, groups, arrival, rounds_s), rounds_s)
        )
    return min(
        (timed(sums, link, launches, rounds_s) for launches in tries), key=lambda run: (run.step_s, run.launches.count)
    )


def _firsts(values: Ints) -> NDArray[np.bool_]:
    firsts = np.zeros(len(values), bool)
    firsts[np.unique(values, return_index=True)[1]] = True
    return firsts


def _joined(launches: Launches, number: int) -> Launches | None:
    """The plan in which launch `number` is followed at once by the next launch of the same group, if there is one."""
    numbers = np.cumsum(launches.begins) - 1
    here = numbers == number
    group = launches.group[here][0]
    later = np.flatnonzero((launches.group == group) & (numbers > number))
    if not len(later):
        return None
    moved = numbers == numbers[later[0]]
    order = np.concatenate([
        np.flatnonzero(numbers <= number), np.flatnonzero(moved), np.flatnonzero((numbers > number) & ~moved)
    ])  # fmt: skip
    tensor, size = launches.tensor[order], launches.size_bytes[order].copy()
    # A tensor that had been cut between the two launches is in one piece again.
    seam = int((numbers <= number).sum())
    if seam < len(order) and tensor[seam] == tensor[seam - 1]:
        size[seam] += size[seam - 1]
        keep = np.arange(len(order)) != seam - 1
        return Launches(launches.groups, launches.arrival, launches.group[order][keep], tensor[keep], size[keep])
    return Launches(launches.groups, launches.arrival, launches.group[order], tensor, size)


@kernel_ieee
def _in_order(group, tensor, size, ready, start_up, rounds, seconds_per_byte):  # type: ignore[no-untyped-def]
    pieces = len(group)
    begin, end = np.zeros(pieces), np.zeros(pieces)
    now = 0.0
    for piece in range(pieces):
        new = piece == 0 or group[piece] != group[piece - 1]
        if new:
            now = max(now, ready[group[piece]])
        begin[piece] = now
        now += (start_up[group[piece]] if new else rounds) + size[piece] * seconds_per_byte
        end[piece] = now
    return begin, end
