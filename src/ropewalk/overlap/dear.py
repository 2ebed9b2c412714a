"""An all-reduce taken apart: reduce-scatters during the backward pass, all-gathers during the next forward pass.

DeAR (Zhang, Shi, Chu, Wang, Li, Li: DeAR: Accelerating distributed deep learning with fine-grained all-reduce
pipelining, ICDCS 2023). Reduce-scatters follow the backward pass group by group; when it is over, the step waits for
all of them. Then all-gathers follow the order of the forward pass, and the first layer of a group waits for the whole
group. No priorities are needed, but groups trade start-ups against waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.overlap.buckets import buckets
from ropewalk.overlap.groups import Groups, check_one_resource
from ropewalk.overlap.link import Link
from ropewalk.overlap.tensors import Tensors

Array = NDArray[np.float64]

MIB = 1 << 20
THRESHOLDS_MIB = (0.25, 0.5, 1, 2, 4, 8, 16, 25, 32, 64, 128, 256, 512, 1024)
"""Sizes of groups among which `tuned` chooses; 25 MiB is the published default."""


@dataclass(frozen=True, eq=False)
class Dear:
    """Groups, and the step they make."""

    groups: Groups
    step_s: float
    barrier_s: float
    """When all reduce-scatters and the backward pass are over."""
    scatter_s: Array
    """Begin and end of the reduce-scatter of every group."""
    gather_s: Array
    """Begin and end of the all-gather of every group."""
    arrival_s: Array
    """By tensor."""


def dear(tensors: Tensors, link: Link, groups: Groups, rounds_s: float = 0.0) -> Dear:
    """A step with the given groups, which follow the order in which gradients are ready.

    Each half moves half of the bytes and goes through half of the rounds, but is launched on its own: its start-up is
    that of the link less half of `rounds_s`, the part of it that is rounds.
    """
    check_one_resource(link, rounds_s)
    start_up = link.start_up_s - rounds_s / 2
    half = np.array([tensors.size_bytes[list(group)].sum() for group in groups.members]) / link.bandwidth / 2
    scatter, gather = np.zeros((len(groups), 2)), np.zeros((len(groups), 2))
    now = 0.0
    for number, group in enumerate(groups.members):
        now = max(now, float(tensors.ready_s[list(group)].max()))
        scatter[number] = now, now + start_up + half[number]
        now = float(scatter[number, 1])
    barrier = max(now + link.latency_s, tensors.backward_end_s)
    # The forward pass meets the groups in the order of their first layers: the opposite of the backward pass.
    now = barrier
    for number in sorted(range(len(groups)), key=lambda number: min(groups.members[number])):
        gather[number] = now, now + start_up + half[number]
        now = float(gather[number, 1])
    arrival = gather[groups.group_of, 1] + link.latency_s
    return Dear(groups, tensors.step_s(arrival), barrier, scatter, gather, arrival)


def tuned(
    tensors: Tensors, link: Link, rounds_s: float = 0.0, thresholds_mib: Sequence[float] = THRESHOLDS_MIB
) -> Dear:
    """The best of several sizes of groups, as its tuner would find it; of equals the smallest."""
    ways = [dear(tensors, link, buckets(tensors, (size * MIB,)), rounds_s) for size in thresholds_mib]
    return min(ways, key=lambda way: way.step_s)


def gather_phase_s(gather_s: ArrayLike, forward_s: ArrayLike, ends: Sequence[int], start_up_s: float) -> float:
    """All-gathers against a forward pass alone: tensor i is gathered in `gather_s[i]` and used for `forward_s[i]`.

    Groups end behind the positions `ends`; each starts up once and arrives as a whole.

    >>> gather_phase_s([1] * 4, [1] * 4, [1, 3, 4], 1)
    8.0
    """
    gather, forward = np.asarray(gather_s, np.float64), np.asarray(forward_s, np.float64)
    sent = computed = 0.0
    first = 0
    for end in ends:
        sent += start_up_s + float(gather[first:end].sum())
        computed = max(computed, sent) + float(forward[first:end].sum())
        first = end
    return computed


def best_gather_phase(gather_s: ArrayLike, forward_s: ArrayLike, start_up_s: float) -> tuple[float, tuple[int, ...]]:
    """The best groups of such a phase, exactly: seconds, and behind which tensors the groups end.

    How long the network has been busy after j tensors in k groups does not depend on which groups they were, so a
    dynamic program over (j, k) is exact. Of equals the fewest groups.

    >>> best_gather_phase([1] * 4, [1] * 4, 0.5)
    (6.5, (2, 3, 4))
    """
    gather, forward = np.asarray(gather_s, np.float64), np.asarray(forward_s, np.float64)
    count = len(gather)
    sent = np.concatenate([[0.0], np.cumsum(gather)])
    used = np.concatenate([[0.0], np.cumsum(forward)])
    best = np.full((count + 1, count + 1), np.inf)
    best[0, 0] = 0.0
    came_from = np.zeros((count + 1, count + 1), np.int64)
    for groups in range(1, count + 1):
        for last in range(groups, count + 1):
            arrives = groups * start_up_s + sent[last]
            ways = np.maximum(best[:last, groups - 1], arrives) + used[last] - used[:last]
            came_from[last, groups] = int(np.argmin(ways))
            best[last, groups] = ways[came_from[last, groups]]
    groups = int(np.argmin(best[count]))
    ends, last = [], count
    for number in range(groups, 0, -1):
        ends.append(last)
        last = int(came_from[last, number])
    return float(best[count, groups]), tuple(ends[::-1])


def streamed_gather_phase_s(gather_s: ArrayLike, forward_s: ArrayLike, start_up_s: float) -> float:
    """The same phase with all tensors in one launch in which each arrives on its own: one start-up, no waiting.

    >>> streamed_gather_phase_s([1] * 4, [1] * 4, 0.5)
    5.5
    """
    gather, forward = np.asarray(gather_s, np.float64), np.asarray(forward_s, np.float64)
    arrival = start_up_s + np.cumsum(gather)
    behind = np.cumsum(forward[::-1])[::-1]
    return float((arrival + behind).max())
