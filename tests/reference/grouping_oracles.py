"""What groupings and preemptive orders are worth, by looking at all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ropewalk.errors import GraphError
from ropewalk.overlap._fusion import judged, kernel, room_for
from ropewalk.overlap.fusion import Fusion
from ropewalk.overlap.groups import Arrival, Groups, costs_of
from ropewalk.overlap.heads_tails import Sums
from ropewalk.overlap.link import Link

MOST_SUBSETS = 20
MOST_EXACT = 20
"""Tensors of which all groupings are looked at: half a million."""


def judge(sums: Sums, link: Link, groups: Groups, arrival: Arrival = Arrival.TOGETHER, rounds_s: float = 0.0) -> float:
    """Seconds of a step with this grouping under the best preemptive order, start-ups once for each group.

    >>> from ropewalk.overlap.heads_tails import one_stream_sums
    >>> from ropewalk.overlap.tensors import from_layers
    >>> sums = one_stream_sums(from_layers([1] * 4, backward_s=[1] * 4, forward_s=[1] * 4))
    >>> link = Link(bandwidth=1, start_up_s=1)
    >>> judge(sums, link, Groups.singles(range(4)[::-1])), judge(sums, link, Groups.one(range(4)))
    (10.0, 13.0)
    """
    if groups.tensors != len(sums):
        raise GraphError(f"{groups.tensors} tensors are grouped, but there are {len(sums)}: list every tensor once")
    ordered = groups.by_ready(sums.head_s)
    columns = (sums.head_s[ordered.order], sums.size_bytes[ordered.order], sums.tail_s[ordered.order])
    costs = costs_of(link, arrival, rounds_s)
    value, _, _ = judged(*columns, ordered.ends, len(ordered), costs, room_for(len(sums)))
    return max(float(value), sums.computing_s)


def fuse_exactly(sums: Sums, link: Link, arrival: Arrival = Arrival.TOGETHER, *, rounds_s: float = 0.0) -> Fusion:
    """The best groups of all that keep tensors in the order in which they are ready."""
    if len(sums) > MOST_EXACT:
        raise GraphError(
            f"{len(sums)} tensors have 2^{len(sums) - 1} groupings: use fuse, which judges some of them, "
            f"or give {MOST_EXACT} tensors or fewer"
        )
    order = sums.in_ready_order
    value, ends = best_groups(
        sums.head_s[order],
        sums.size_bytes[order],
        sums.tail_s[order],
        sums.computing_s,
        costs_of(link, arrival, rounds_s),
    )
    return Fusion(Groups.cut(order, ends), float(value))


def largest_subset(head_s: ArrayLike, seconds: ArrayLike, tail_s: ArrayLike) -> float:
    """The same value the slow way, over all sets of jobs: smallest head + all seconds + smallest tail.

    >>> largest_subset([2, 4, 6], [3, 6, 3], [2, 4, 6])
    17.0
    """
    columns = tuple(np.asarray(column, np.float64) for column in (head_s, seconds, tail_s))
    if len(columns[0]) > MOST_SUBSETS:
        raise GraphError(
            f"{len(columns[0])} jobs have too many subsets to look at them all: "
            f"give {MOST_SUBSETS} or fewer, or use preemptive_jobs"
        )
    return float(subset_bound(*columns))


@kernel
def subset_bound(head, seconds, tail):  # type: ignore[no-untyped-def]
    """The largest, over all sets of jobs, of smallest head + all seconds + smallest tail."""
    jobs = len(head)
    best = 0.0
    for chosen in range(1, 1 << jobs):
        first, work, last = np.inf, 0.0, np.inf
        for job in range(jobs):
            if chosen >> job & 1:
                first = min(first, head[job])
                work += seconds[job]
                last = min(last, tail[job])
        best = max(best, first + work + last)
    return best


@kernel
def best_groups(head, size, tail, floor, costs):  # type: ignore[no-untyped-def]
    """The best of all 2^(n-1) groupings; of equals the one with the fewest groups, then the first."""
    tensors = len(head)
    room = room_for(tensors)
    ends, kept = np.zeros(tensors, np.int64), np.zeros(tensors, np.int64)
    best, kept_groups = np.inf, tensors + 1
    for cuts in range(1 << (tensors - 1)):
        groups = 0
        for tensor in range(tensors):
            if tensor == tensors - 1 or cuts >> tensor & 1:
                ends[groups] = tensor + 1
                groups += 1
        value = max(judged(head, size, tail, ends, groups, costs, room)[0], floor)
        if value < best or (value == best and groups < kept_groups):
            best, kept_groups = value, groups
            kept[:groups] = ends[:groups]
    return best, kept[:kept_groups].copy()
