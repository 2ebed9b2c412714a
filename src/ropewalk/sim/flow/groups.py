"""Which link holds which flows, at which level; and which links have to be looked at again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Flags, Floats, Ints
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.flow.resolve import OVERLOAD, FlowClasses, PartialSystem
from ropewalk.sim.flow.waterfill import LIVE, RATE, Usage, drop_top


class LinkGroups(NamedTuple):
    """Which link holds which flows. The flows of link l are `member[start[l] : start[l] + size[l]]`."""

    level: Floats
    """Rate of the flows that a link holds; infinite where it holds nobody."""
    weight: Floats
    """How much a link is used when all flows it holds go at rate 1."""
    start: Ints
    size: Ints
    member: NDArray[np.uint32]
    place: Ints
    """Where a flow stands in `member`, -1 where nothing holds it."""
    link: Ints
    """The link that holds a flow."""
    own_weight: Floats
    """What a flow has added to the weight of that link."""
    pending: Flags
    """Links that wait in the heap to be settled."""
    quiet: Flags
    """Links that hold flows and do not wait."""
    floor: Floats
    """Spare capacity below which a link that holds nobody is overloaded; -inf for the others."""
    least_spare: Floats
    """That spare capacity, for every link."""
    heap_key: Floats
    heap_link: Ints
    counts: Ints
    """Links in the heap; overloaded links; events since the last refresh; live flows; whether loads and full flags are
    out of date; whether flows have one priority and no caps; how often each flow may be visited before giving up."""
    overloaded: Ints
    is_noted: Flags
    """Links that stand in `overloaded`."""


IN_HEAP, OVERLOADED, EVENTS, ALIVE, STALE, EASY, PATIENCE = range(7)


@kernel
def add(usage: Usage, groups: LinkGroups, flow: int, link: int, live: float) -> None:
    slot = groups.start[link] + groups.size[link]
    groups.member[slot] = flow
    groups.place[flow] = slot
    groups.link[flow] = link
    groups.size[link] += 1
    if groups.size[link] == 1:
        groups.quiet[link] = not groups.pending[link]
        groups.floor[link] = -np.inf
    groups.own_weight[flow] = 0.0
    reweigh(usage, groups, flow, live)


@kernel
def reweigh(usage: Usage, groups: LinkGroups, flow: int, live: float) -> None:
    """A flow counts for as many transfers as it has."""
    link = groups.link[flow]
    own = 0.0
    for entry in range(usage.start[flow], usage.start[flow + 1]):
        if usage.link[entry] == link:
            own += usage.weight[entry] * live
    groups.weight[link] += own - groups.own_weight[flow]
    groups.own_weight[flow] = own


@kernel
def remove(groups: LinkGroups, flow: int) -> None:
    link, slot = groups.link[flow], groups.place[flow]
    groups.size[link] -= 1
    last = groups.member[groups.start[link] + groups.size[link]]
    groups.member[slot] = last
    groups.place[last] = slot
    groups.place[flow] = -1
    groups.link[flow] = -1
    groups.weight[link] -= groups.own_weight[flow]
    if groups.size[link] == 0:
        groups.weight[link] = 0.0
        groups.level[link] = np.inf
        groups.quiet[link] = False
        groups.floor[link] = groups.least_spare[link]


@kernel
def regroup(usage: Usage, flows: FlowClasses, problem: PartialSystem, groups: LinkGroups, n_solved: int) -> None:
    """After the whole was solved anew: every flow to the link that holds it now."""
    for i in range(n_solved):
        flow = problem.flow[i]
        live, link = flows.state[flow, LIVE], flows.bound_by[flow]
        if groups.place[flow] < 0:
            groups.counts[ALIVE] += 1
            add(usage, groups, flow, link, live)
        elif groups.link[flow] != link:
            remove(groups, flow)
            add(usage, groups, flow, link, live)
        else:
            reweigh(usage, groups, flow, live)
    for i in range(n_solved):
        groups.level[flows.bound_by[problem.flow[i]]] = flows.state[problem.flow[i], RATE]


@kernel
def note_overload(groups: LinkGroups, link: int) -> None:
    groups.floor[link] = -np.inf
    if not groups.is_noted[link]:
        groups.is_noted[link] = True
        groups.overloaded[groups.counts[OVERLOADED]] = link
        groups.counts[OVERLOADED] += 1


@kernel
def pop_overloaded(groups: LinkGroups) -> int:
    groups.counts[OVERLOADED] -= 1
    link = groups.overloaded[groups.counts[OVERLOADED]]
    groups.is_noted[link] = False
    if groups.size[link] == 0:
        groups.floor[link] = groups.least_spare[link]
    return link


@kernel
def push(groups: LinkGroups, link: int) -> None:
    key, heap_key, heap_link = groups.level[link], groups.heap_key, groups.heap_link
    groups.pending[link] = True
    groups.quiet[link] = False
    at = groups.counts[IN_HEAP]
    groups.counts[IN_HEAP] += 1
    while at > 0:
        parent = (at - 1) >> 1
        if heap_key[parent] <= key:
            break
        heap_key[at], heap_link[at] = heap_key[parent], heap_link[parent]
        at = parent
    heap_key[at], heap_link[at] = key, link


@kernel
def pop(groups: LinkGroups) -> int:
    top = groups.heap_link[0]
    groups.counts[IN_HEAP] = drop_top(groups.heap_key, groups.heap_link, groups.counts[IN_HEAP])
    groups.pending[top] = False
    groups.quiet[top] = groups.size[top] > 0
    return top


def make_groups(usage: Usage, capacity: Floats, flows: int, easy: bool, patience: int) -> LinkGroups:
    links = len(capacity)
    return LinkGroups(
        np.full(links, np.inf),
        np.zeros(links),
        usage.member_start,
        np.zeros(links, np.int64),
        np.zeros(len(usage.link), np.uint32),
        np.full(flows, -1, np.int64),
        np.full(flows, -1, np.int64),
        np.zeros(flows),
        np.zeros(links, bool),
        np.zeros(links, bool),
        -OVERLOAD * capacity,
        -OVERLOAD * capacity,
        np.zeros(links),
        np.zeros(links, np.int64),
        np.array([0, 0, 0, 0, 0, easy, patience], np.int64),
        np.zeros(links, np.int64),
        np.zeros(links, bool),
    )
