"""Max-min fair rates by water-filling: the kernel, alone, knowing only flows, links and weights.

All flows grow at one common level until a link is full or a flow reaches its cap; what is full freezes, the rest grows
on. Freezing a flow at level λ never lowers the level at which another link fills up, so the heap of fill levels may
hold stale (too low) keys and corrects them only when they come to the top: no decrease-key, a few pops per link.

A flow uses `weight` of a link for each unit of its rate. Weights carry multipath shares (1/2 on each of two paths),
numbers of equal flows, and the multiplicities of a symmetric quotient: one kernel serves all three.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints, Ints32
from ropewalk.errors import GraphError
from ropewalk.sim.flow.kernel import kernel

IDS = NDArray[np.uint32]
"""Unsigned: compiled code need not ask whether an index counts from the end."""


ZERO: int = np.int64(0)  # type: ignore[assignment]
"""Counters start here and not at a plain 0, for which every function they are passed to would be compiled once more."""

RATE, CARRIED, LIVE, CAP, SERVED, SINCE, PACE, MARK = range(8)
"""Columns of the state of a flow: its rate, live · rate as links know it, transfers in it, its cap; and what the engine
keeps beside them. One row is one cache line: whoever needs one of them needs most of them."""


class Usage(NamedTuple):
    """What each flow uses, as CSR by flow, and the live flows of each link, as a sparse set by link.

    Entry e of flow f says: link `link[e]` is used with `weight[e]` for each unit of rate. The live flows of link l
    are `member[member_start[l] : member_start[l] + members[l]]`, their entries stand beside them in `member_entry`;
    `place[e]` is where entry e stands there.
    """

    start: Ints
    link: IDS
    weight: Floats
    member_start: Ints
    members: Ints
    member: IDS
    member_entry: IDS
    place: NDArray[np.int32]


class Water(NamedTuple):
    """Work space of one filling; links and flows keep their own ids."""

    residual: Floats
    """Capacity of each link that the open flows may still take."""
    total: Floats
    """Weight of the open flows on each filling link."""
    open_flows: Ints
    """Number of open flows on each filling link."""
    is_open: NDArray[np.bool_]
    """Which flows still grow."""
    fills: NDArray[np.bool_]
    """Links that stop their flows when they are full. The others are only watched: their residual is kept up."""
    watched: Ints
    """The watched links that were met."""
    n_watched: Ints
    is_watched: NDArray[np.bool_]
    heap_key: Floats
    heap_link: Ints


@kernel
def join(
    start: Ints,
    use_link: IDS,
    members: Ints,
    member_start: Ints,
    member: IDS,
    member_entry: IDS,
    place: Ints32,
    flow: int,
) -> None:
    """Enter a flow in the member sets of its links.

    The columns of `Usage` come one by one here and in `leave`: handing a record over means counting a reference to each
    of its arrays, and these two run for every transfer.
    """
    for entry in range(start[flow], start[flow + 1]):
        link = use_link[entry]
        slot = member_start[link] + members[link]
        member[slot], member_entry[slot] = flow, entry
        place[entry] = slot
        members[link] += 1


@kernel
def leave(
    start: Ints,
    use_link: IDS,
    members: Ints,
    member_start: Ints,
    member: IDS,
    member_entry: IDS,
    place: Ints32,
    flow: int,
) -> None:
    """Take a flow out of the member sets of its links."""
    for entry in range(start[flow], start[flow + 1]):
        link = use_link[entry]
        members[link] -= 1
        last, slot = member_start[link] + members[link], place[entry]
        member[slot], member_entry[slot] = member[last], member_entry[last]
        place[member_entry[slot]] = slot


@kernel
def fill(
    usage: Usage,
    water: Water,
    links: Ints,
    n_links: int,
    flows: Ints,
    n_flows: int,
    state: Floats,
    bound_by: Ints,
) -> None:
    """Give every flow of `flows[:n_flows]` its max-min rate within the residual capacity of `links[:n_links]`.

    These links fill; their `residual`, `total` and `open_flows` stand ready for these flows, all of which are open and
    have a cap or cross one of these links. `bound_by[f]` becomes the link that stopped flow f, or -1 where its cap
    did. Links that are only watched lose what a flow gets beyond what it carried, which their residual already lacks.
    """
    # Fields of a record are counted references in compiled code: take them out of the records before the loops.
    start, use_link, use_weight = usage.start, usage.link, usage.weight
    member_start, members, member = usage.member_start, usage.members, usage.member
    residual, total, open_flows, is_open = water.residual, water.total, water.open_flows, water.is_open
    fills, watched, is_watched = water.fills, water.watched, water.is_watched
    heap_key, heap_link = water.heap_key, water.heap_link
    n_watched = water.n_watched[0]
    by_cap = _capped_flows(flows, n_flows, state)
    capped = len(by_cap)
    size = ZERO
    for i in range(n_links):
        link = links[i]
        if open_flows[link] > 0:
            heap_key[size] = max(residual[link], 0.0) / total[link]
            heap_link[size] = link
            size += 1
    for i in range(size // 2 - 1, -1, -1):
        sift_down(heap_key, heap_link, i, size)

    next_cap = 0
    while True:
        while size and open_flows[heap_link[0]] == 0:
            size = drop_top(heap_key, heap_link, size)
        while next_cap < capped and not is_open[by_cap[next_cap]]:
            next_cap += 1
        if size == 0 and next_cap == capped:
            break
        if size:
            actual = max(residual[heap_link[0]], 0.0) / total[heap_link[0]]
            if actual > heap_key[0]:
                heap_key[0] = actual
                sift_down(heap_key, heap_link, ZERO, size)
                continue
        # What stops now: one flow at its cap, or all open flows of the link on top.
        at_cap = next_cap < capped and (size == 0 or state[by_cap[next_cap], CAP] <= heap_key[0])
        link = np.int64(-1) if at_cap else heap_link[0]
        level = state[by_cap[next_cap], CAP] if at_cap else heap_key[0]
        first = np.int64(0) if at_cap else member_start[link]
        stop = np.int64(1) if at_cap else member_start[link] + members[link]
        for slot in range(first, stop):
            flow = by_cap[next_cap] if at_cap else np.int64(member[slot])
            if not is_open[flow]:
                continue
            is_open[flow] = False
            bound_by[flow] = link
            state[flow, RATE] = level
            live = state[flow, LIVE]
            more = live * level - state[flow, CARRIED]
            for entry in range(start[flow], start[flow + 1]):
                used = use_link[entry]
                if fills[used]:
                    weight = use_weight[entry] * live
                    residual[used] -= weight * level
                    total[used] -= weight
                    open_flows[used] -= 1
                else:
                    residual[used] -= use_weight[entry] * more
                    if not is_watched[used]:
                        is_watched[used] = True
                        watched[n_watched] = used
                        n_watched += 1
        if not at_cap:
            size = drop_top(heap_key, heap_link, size)
    water.n_watched[0] = n_watched


@kernel
def _capped_flows(flows: Ints, n_flows: int, state: Floats) -> Ints:
    """The flows that have a cap, lowest cap first."""
    capped = ZERO
    for i in range(n_flows):
        if state[flows[i], CAP] < np.inf:
            capped += 1
    found, cap = np.empty(capped, np.int64), np.empty(capped)
    at = 0
    for i in range(n_flows):
        if state[flows[i], CAP] < np.inf:
            found[at], cap[at] = flows[i], state[flows[i], CAP]
            at += 1
    sort_by_key(cap, found)
    return found


@kernel
def sort_by_key(key: Floats, item: Ints) -> None:
    """Sort both by key, then item, in place (Shell's sort: short to compile, quick for what is nearly sorted)."""
    gap = len(key) // 2
    while gap:
        for i in range(gap, len(key)):
            k, x = key[i], item[i]
            at = i
            while at >= gap and (key[at - gap] > k or (key[at - gap] == k and item[at - gap] > x)):
                key[at], item[at] = key[at - gap], item[at - gap]
                at -= gap
            key[at], item[at] = k, x
        gap //= 2


@kernel
def sift_down(heap_key: Floats, heap_link: Ints, at: int, size: int) -> None:
    key, link = heap_key[at], heap_link[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap_key[child + 1] < heap_key[child]:
            child += 1
        if heap_key[child] >= key:
            break
        heap_key[at], heap_link[at] = heap_key[child], heap_link[child]
        at = child
    heap_key[at], heap_link[at] = key, link


@kernel
def drop_top(heap_key: Floats, heap_link: Ints, size: int) -> int:
    size -= 1
    heap_key[0], heap_link[0] = heap_key[size], heap_link[size]
    if size > 1:
        sift_down(heap_key, heap_link, ZERO, size)
    return size


def make_usage(start: Ints, link: NDArray[np.int32], weight: Floats, links: int) -> Usage:
    """Usage with empty member sets."""
    entries = len(link)
    if entries > np.iinfo(np.int32).max:
        raise GraphError(f"the transfers use {entries:.3g} links in all, more than fit: use fewer or symmetry")
    member_start = np.zeros(links + 1, np.int64)
    np.cumsum(np.bincount(link, minlength=links), out=member_start[1:])
    return Usage(
        start.astype(np.int64),
        link.astype(np.uint32),
        weight.astype(np.float64),
        member_start[:-1].copy(),
        np.zeros(links, np.int64),
        np.zeros(entries, np.uint32),
        np.zeros(entries, np.uint32),
        np.zeros(entries, np.int32),
    )


def make_water(capacity: Floats, flows: int) -> Water:
    links = len(capacity)
    return Water(
        capacity.astype(np.float64).copy(),
        np.zeros(links),
        np.zeros(links, np.int64),
        np.zeros(flows, bool),
        np.zeros(links, bool),
        np.zeros(links, np.int64),
        np.zeros(1, np.int64),
        np.zeros(links, bool),
        np.zeros(links),
        np.zeros(links, np.int64),
    )


def make_state(cap: Floats) -> Floats:
    """Flows at rest, each with its cap."""
    state = np.zeros((len(cap), 8))
    state[:, CAP] = cap
    return state
