"""Move from one max-min solution to the next when a few flows come or go, by raising and lowering whole groups.

In a max-min solution every flow is held by one full link, its bottleneck, and all flows that a link holds have the same
rate, the *level* of that link. When a flow ends, most flows keep their bottleneck and only levels shift: a link with
spare capacity r that holds flows of weight n rises by r / n (falls, if r is negative), which changes the spare
capacity of the other links of these flows, and so on. Links are settled in ascending order of level; since a level only
depends on lower ones, each link is settled about once. Three things can go wrong on the way, and each moves flows to
another bottleneck:

* a group rises above the level of another full link on the path of some of its flows: that link holds them now;
* a link falls below the rate of flows that cross it but are held elsewhere: it holds them now;
* a link that held nobody is overloaded: it holds its fastest flows.

When nothing is left to do, every link carries at most its capacity and every flow is the fastest on a full link: that
is the max-min solution, whatever the way to it. Should the way be long, `settle` gives up and the whole is solved
anew. It serves flows of one priority without caps.
"""

from __future__ import annotations

import numpy as np

from ropewalk.sim.flow.groups import (
    ALIVE,
    EVENTS,
    IN_HEAP,
    OVERLOADED,
    PATIENCE,
    STALE,
    LinkGroups,
    add,
    note_overload,
    pop,
    pop_overloaded,
    push,
    remove,
    reweigh,
)
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.flow.resolve import FULL, FlowClasses, Links, PartialSystem
from ropewalk.sim.flow.waterfill import CARRIED, LIVE, RATE, ZERO, Usage, Water, sort_by_key

SETTLED = 2e-14
"""A link is settled when its spare capacity is below this part of it; what is left over is not forgotten."""

SAME_LEVEL = 1e-12
"""Levels this close are one level: whichever of two such links holds a flow makes no difference."""

FEW = 32
"""Changes at once, at most, for which settling is tried."""

PATIENT = 6
"""Settling gives up after visiting each live flow so many times (and a thousand flows more)."""

REFRESH = 4096
"""Events after which all spare capacities are added up anew, so that rounding cannot pile up."""


@kernel
def settle(
    usage: Usage, water: Water, flows: FlowClasses, links: Links, problem: PartialSystem, groups: LinkGroups
) -> int:
    """Bring all rates up to date after the changed classes got their new counts.

    Returns how many classes in `problem.flow` have new rates; or -1 when it gave up, with rates that are possible but
    not yet max-min.
    """
    start, use_link, use_weight = usage.start, usage.link, usage.weight
    state, residual, capacity = flows.state, water.residual, links.capacity
    level, weight, size, member, first = groups.level, groups.weight, groups.size, groups.member, groups.start
    quiet, floor = groups.quiet, groups.floor
    solved, in_flows = problem.flow, problem.in_flows
    groups.counts[STALE] = 1
    n_solved = _take_in_changes(usage, water, flows, links, problem, groups)
    visits = 0
    while True:
        while groups.counts[IN_HEAP]:
            link = pop(groups)
            spare = residual[link]
            if size[link] == 0 or abs(spare) <= SETTLED * capacity[link]:
                continue
            rate = level[link] + spare / weight[link]
            falls = spare < 0.0
            if rate <= 0.0:
                # Far too much: those that are faster have to give way as well.
                rate = _fair_level(usage, flows, link, capacity[link])
            if rate <= 0.0:
                return _give_up(problem, groups, n_solved)
            quiet[link] = False
            more = rate - level[link]
            level[link] = rate
            limit = rate * (1.0 - SAME_LEVEL)
            above = False
            for slot in range(first[link], first[link] + size[link]):
                flow = member[slot]
                if not in_flows[flow]:
                    in_flows[flow] = True
                    solved[n_solved] = flow
                    n_solved += 1
                state[flow, RATE] = rate
                extra = state[flow, LIVE] * more
                state[flow, CARRIED] += extra
                # The innermost loop: its two branches are almost never taken.
                for entry in range(start[flow], start[flow + 1]):
                    used = np.int64(use_link[entry])
                    left = residual[used] - use_weight[entry] * extra
                    residual[used] = left
                    above |= level[used] < limit
                    if quiet[used]:
                        push(groups, used)
                    if left < floor[used]:
                        note_overload(groups, used)
            quiet[link] = size[link] > 0 and not groups.pending[link]
            visits += size[link]
            if above:
                n_solved = _hand_over(usage, water, flows, problem, groups, link, n_solved)
            if falls and size[link] > 0:
                visits += usage.members[link]
                n_solved = _take_faster(usage, water, flows, problem, groups, link, rate, n_solved)
            if visits > groups.counts[PATIENCE] * (groups.counts[ALIVE] + 1000):
                return _give_up(problem, groups, n_solved)
        while groups.counts[OVERLOADED]:
            link = pop_overloaded(groups)
            if size[link] == 0 and residual[link] < floor[link]:
                visits += usage.members[link]
                fair = _fair_level(usage, flows, link, capacity[link])
                level[link] = fair
                n_solved = _take_faster(usage, water, flows, problem, groups, link, fair, n_solved)
                if size[link] == 0:
                    level[link] = np.inf
        if groups.counts[IN_HEAP] == 0:
            break
    for i in range(n_solved):
        in_flows[solved[i]] = False
        flows.bound_by[solved[i]] = groups.link[solved[i]]
    groups.counts[EVENTS] += 1
    if groups.counts[EVENTS] >= REFRESH:
        _refresh(usage, water, flows, links, groups)
    return n_solved


@kernel
def _take_in_changes(
    usage: Usage, water: Water, flows: FlowClasses, links: Links, problem: PartialSystem, groups: LinkGroups
) -> int:
    """Flows that ended leave their group, flows whose count changed weigh more or less, new ones join a group."""
    state, level = flows.state, groups.level
    n_solved = ZERO
    for i in range(problem.n_changed[0]):
        flow = problem.changed[i]
        problem.is_changed[flow] = False
        live = state[flow, LIVE]
        link, opens = np.int64(-1), False
        if groups.place[flow] >= 0:
            rate = state[flow, RATE]
            if live == 0.0:
                remove(groups, flow)
                groups.counts[ALIVE] -= 1
                rate = 0.0
            else:
                reweigh(usage, groups, flow, live)
        else:
            link = _tightest(usage, water, groups, flow, live)
            rate = level[link]
            if level[link] == np.inf:
                # What the link can give if it also holds back those of its flows that are faster.
                state[flow, RATE] = np.inf
                fair = _fair_level(usage, flows, link, links.capacity[link])
                lowest = _lowest(usage, groups, flow)
                opens = lowest < 0 or fair < level[lowest]
                if opens:
                    level[link] = fair
                else:
                    link = lowest
                rate = level[link]
            add(usage, groups, flow, link, live)
            groups.counts[ALIVE] += 1
        n_solved = _set_rate(usage, water, flows, problem, groups, flow, rate, n_solved)
        if opens:
            n_solved = _take_faster(usage, water, flows, problem, groups, link, rate, n_solved)
    problem.n_changed[0] = 0
    return n_solved


@kernel
def _tightest(usage: Usage, water: Water, groups: LinkGroups, flow: int, live: float) -> np.int64:
    """The link on the path of a new flow with the least capacity left."""
    tightest, least = np.int64(-1), np.inf
    for entry in range(usage.start[flow], usage.start[flow + 1]):
        link = np.int64(usage.link[entry])
        rate = groups.level[link]
        if rate == np.inf:
            rate = max(water.residual[link], 0.0) / (usage.weight[entry] * live)
        if rate < least or tightest < 0:
            tightest, least = link, rate
    return tightest


@kernel
def _lowest(usage: Usage, groups: LinkGroups, flow: int) -> np.int64:
    """The link with the lowest level on the path of a flow, -1 if none holds flows."""
    lowest, least = np.int64(-1), np.inf
    for entry in range(usage.start[flow], usage.start[flow + 1]):
        if groups.level[usage.link[entry]] < least:
            lowest, least = np.int64(usage.link[entry]), groups.level[usage.link[entry]]
    return lowest


@kernel
def _set_rate(
    usage: Usage,
    water: Water,
    flows: FlowClasses,
    problem: PartialSystem,
    groups: LinkGroups,
    flow: int,
    rate: float,
    n_solved: int,
) -> int:
    """Give a flow a rate, its links what follows from it, and have those that hold flows looked at."""
    state, residual = flows.state, water.residual
    carried = state[flow, LIVE] * rate
    more = carried - state[flow, CARRIED]
    state[flow, RATE] = rate
    state[flow, CARRIED] = carried
    for entry in range(usage.start[flow], usage.start[flow + 1]):
        used = np.int64(usage.link[entry])
        residual[used] -= usage.weight[entry] * more
        if groups.quiet[used]:
            push(groups, used)
        if residual[used] < groups.floor[used]:
            note_overload(groups, used)
    if state[flow, LIVE] > 0.0 and not problem.in_flows[flow]:
        problem.in_flows[flow] = True
        problem.flow[n_solved] = flow
        n_solved += 1
    return n_solved


@kernel
def _move(
    usage: Usage,
    water: Water,
    flows: FlowClasses,
    problem: PartialSystem,
    groups: LinkGroups,
    flow: int,
    link: int,
    n_solved: int,
) -> int:
    """A flow is held by another link from now on, at that link's level."""
    remove(groups, flow)
    add(usage, groups, flow, link, flows.state[flow, LIVE])
    return _set_rate(usage, water, flows, problem, groups, flow, groups.level[link], n_solved)


@kernel
def _hand_over(
    usage: Usage, water: Water, flows: FlowClasses, problem: PartialSystem, groups: LinkGroups, link: int, n_solved: int
) -> int:
    """Flows of a group that has risen above another full link on their way go to the lowest such link."""
    level = groups.level
    limit = level[link] * (1.0 - SAME_LEVEL)
    slot = groups.start[link] + groups.size[link] - 1
    while slot >= groups.start[link]:
        flow = np.int64(groups.member[slot])
        lowest = _lowest(usage, groups, flow)
        if level[lowest] < limit:
            n_solved = _move(usage, water, flows, problem, groups, flow, lowest, n_solved)
        slot -= 1
    return n_solved


@kernel
def _take_faster(
    usage: Usage,
    water: Water,
    flows: FlowClasses,
    problem: PartialSystem,
    groups: LinkGroups,
    link: int,
    rate: float,
    n_solved: int,
) -> int:
    """Flows that cross a full link faster than its level are held by it from now on."""
    limit = rate * (1.0 + SAME_LEVEL)
    state, holder = flows.state, groups.link
    for slot in range(usage.member_start[link], usage.member_start[link] + usage.members[link]):
        flow = np.int64(usage.member[slot])
        if state[flow, RATE] > limit and holder[flow] != link:
            n_solved = _move(usage, water, flows, problem, groups, flow, link, n_solved)
    return n_solved


@kernel
def _fair_level(usage: Usage, flows: FlowClasses, link: int, capacity: float) -> float:
    """The level at which a link is just full when its flows go at most at their present rates."""
    first, count = usage.member_start[link], usage.members[link]
    rate, slots = np.empty(count), np.empty(count, np.int64)
    room, total = capacity, 0.0
    for i in range(count):
        flow = usage.member[first + i]
        rate[i], slots[i] = flows.state[flow, RATE], first + i
        total += usage.weight[usage.member_entry[first + i]] * flows.state[flow, LIVE]
    sort_by_key(rate, slots)
    for i in range(count):
        if rate[i] * total >= room:
            break
        weight = usage.weight[usage.member_entry[slots[i]]] * flows.state[usage.member[slots[i]], LIVE]
        room -= rate[i] * weight
        total -= weight
    return max(room, 0.0) / total if total > 0.0 else np.inf


@kernel
def _give_up(problem: PartialSystem, groups: LinkGroups, n_solved: int) -> int:
    for i in range(n_solved):
        problem.in_flows[problem.flow[i]] = False
    while groups.counts[OVERLOADED]:
        pop_overloaded(groups)
    while groups.counts[IN_HEAP]:
        pop(groups)
    return -1


@kernel
def _refresh(usage: Usage, water: Water, flows: FlowClasses, links: Links, groups: LinkGroups) -> None:
    """Spare capacities from scratch."""
    groups.counts[EVENTS] = 0
    for link in range(len(links.capacity)):
        spare = links.capacity[link]
        first = usage.member_start[link]
        for slot in range(first, first + usage.members[link]):
            spare -= usage.weight[usage.member_entry[slot]] * flows.state[usage.member[slot], CARRIED]
        water.residual[link] = spare
        held = 0.0
        for slot in range(groups.start[link], groups.start[link] + groups.size[link]):
            held += groups.own_weight[groups.member[slot]]
        groups.weight[link] = held


@kernel
def make_current(water: Water, flows: FlowClasses, links: Links, problem: PartialSystem, groups: LinkGroups) -> None:
    """Before the whole is solved anew: bring up to date what settling leaves alone, and take out flows that ended."""
    if groups.counts[STALE]:
        groups.counts[STALE] = 0
        for link in range(len(links.capacity)):
            links.load[link] = links.capacity[link] - water.residual[link]
            links.full[link] = groups.level[link] < np.inf or water.residual[link] <= FULL * links.capacity[link]
    for i in range(problem.n_changed[0]):
        flow = problem.changed[i]
        if flows.state[flow, LIVE] == 0.0 and groups.place[flow] >= 0:
            remove(groups, flow)
            groups.counts[ALIVE] -= 1


@kernel
def change_all(flows: FlowClasses, problem: PartialSystem) -> None:
    """Mark every live flow as changed."""
    for flow in range(len(flows.priority)):
        if flows.state[flow, LIVE] > 0.0:
            problem.is_changed[flow] = True
            problem.changed[problem.n_changed[0]] = flow
            problem.n_changed[0] += 1
