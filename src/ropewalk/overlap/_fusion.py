"""Kernels of fusion: jobs that a grouping makes, and the search among groupings with the largest tail as the judge.

Tensors stand in the order in which they are ready; a grouping is an array `ends` with the end of each group. Each group
starts up once, when its last member is ready. `held_back` is the share of its bytes that must have moved before its
first tensor can be there: 1 where all arrive together at the end. Otherwise tensors arrive in the order of their tails.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel_ieee as kernel
from ropewalk.overlap._jackson import largest_tail_first


class GroupCosts(NamedTuple):
    """What a group costs on the network."""

    start_up_s: float
    """Once for each group."""
    seconds_per_byte: float
    held_back: float
    rounds_s: float
    """What every tensor behind the first one of a group adds, where tensors move one after the other."""


class FusionScratch(NamedTuple):
    """Arrays that are used again for every grouping that is judged."""

    head: Floats
    seconds: Floats
    tail: Floats
    group: Ints
    tensor: Ints
    heap: Ints
    left: Floats
    end: Floats
    piece_job: Ints
    piece_begin: Floats
    piece_end: Floats


@kernel
def room_for(tensors):  # type: ignore[no-untyped-def]
    return FusionScratch(
        np.zeros(tensors), np.zeros(tensors), np.zeros(tensors), np.zeros(tensors, np.int64),
        np.zeros(tensors, np.int64), np.zeros(tensors, np.int64), np.zeros(tensors), np.zeros(tensors),
        np.zeros(2 * tensors, np.int64), np.zeros(2 * tensors), np.zeros(2 * tensors),
    )  # fmt: skip


@kernel
def jobs_of(head, size, tail, ends, groups, costs, room):  # type: ignore[no-untyped-def]
    """Write the jobs of a grouping into `room`: one for each group, or for each tensor where they arrive in turn."""
    count, first = 0, 0
    for group in range(groups):
        behind = ends[group]
        leader, ready, total = first, 0.0, 0.0
        for tensor in range(first, behind):
            ready = max(ready, head[tensor])
            total += size[tensor]
            if tail[tensor] > tail[leader]:
                leader = tensor
        alone = costs.start_up_s + costs.held_back * total * costs.seconds_per_byte
        share = (1.0 - costs.held_back) * costs.seconds_per_byte
        # The leader comes first: it has the largest tail, so it also carries what has to happen before any arrives.
        room.head[count], room.tail[count], room.group[count], room.tensor[count] = ready, tail[leader], group, leader
        room.seconds[count] = alone + share * size[leader]
        count += 1
        if costs.held_back < 1.0:
            for tensor in range(first, behind):
                if tensor != leader:
                    room.head[count], room.tail[count] = ready, tail[tensor]
                    room.group[count], room.tensor[count] = group, tensor
                    room.seconds[count] = share * size[tensor] + costs.rounds_s
                    count += 1
        first = behind
    return count


@kernel
def judged(head, size, tail, ends, groups, costs, room):  # type: ignore[no-untyped-def]
    """The best that can be made of a grouping: the largest of arrival and tail under the best preemptive order."""
    count = jobs_of(head, size, tail, ends, groups, costs, room)
    value, pieces = largest_tail_first(
        room.head, room.seconds, room.tail, count, room.heap, room.left, room.end,
        room.piece_job, room.piece_begin, room.piece_end,
    )  # fmt: skip
    return value, count, pieces


@kernel
def grown_groups(head, size, tail, widest, floor, costs):  # type: ignore[no-untyped-def]
    """Groupings grown from the first tensor on: for each prefix the best last group, judged with the rest unfused.

    Equal judgements go to the larger group: it starts up less often.
    """
    tensors = len(head)
    room = room_for(tensors)
    best = np.full(tensors + 1, np.inf)
    best[0] = 0.0
    came_from = np.zeros(tensors + 1, np.int64)
    groups_of = np.zeros(tensors + 1, np.int64)
    ends_of = np.zeros((tensors + 1, tensors), np.int64)
    ends = np.zeros(tensors, np.int64)
    for last in range(1, tensors + 1):
        for first in range(max(0, last - widest), last):
            groups = groups_of[first]
            ends[:groups] = ends_of[first, :groups]
            ends[groups] = last
            groups += 1
            for tensor in range(last, tensors):
                ends[groups] = tensor + 1
                groups += 1
            value = max(judged(head, size, tail, ends, groups, costs, room)[0], floor)
            if value < best[last]:
                best[last], came_from[last] = value, first
        before = came_from[last]
        groups_of[last] = groups_of[before] + 1
        ends_of[last, : groups_of[before]] = ends_of[before, : groups_of[before]]
        ends_of[last, groups_of[before]] = last
    return best[tensors], ends_of[tensors, : groups_of[tensors]].copy()
