"""Keep max-min rates up to date while flows come and go, touching only the part of the system that can change.

Two facts bound that part, and both are exact:

* *Below the change nothing moves.* Water-filling runs identically with and without a flow up to that flow's own rate,
  so flows of a higher priority, or slower than the slowest flow that changed, keep their rates.
* *A link with room to spare passes nothing on.* Flows that only share a link which is full neither before nor after
  do not influence each other. Such links are only watched, their other flows stay out; should one of them turn out
  overloaded, it joins and the problem is solved again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Flags, Floats, Ints
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.flow.waterfill import CAP, CARRIED, LIVE, RATE, ZERO, Usage, Water, fill, make_state

FULL = 1e-9
"""A link whose spare capacity is below this part of it counts as full: erring this way only widens the problem."""

OVERLOAD = 1e-12
"""A watched link may exceed its capacity by this part of it, which is rounding."""

MANY = 8
"""With more arrivals than this at once, a floor for the change is not worth computing."""


class FlowClasses(NamedTuple):
    """Flow classes: all live transfers with the same route, priority and cap share one class and one rate."""

    state: Floats
    """One row a class; its columns are named in `waterfill`."""
    priority: Ints
    bound_by: Ints


class Links(NamedTuple):
    """Between two solutions `water.residual` of every link is its capacity less its load."""

    capacity: Floats
    load: Floats
    full: Flags


class PartialSystem(NamedTuple):
    """Work space: the part that is solved again. The links that fill are `link`; the kernel watches the others."""

    changed: Ints
    n_changed: Ints
    is_changed: Flags
    flow: Ints
    in_flows: Flags
    link: Ints
    total: Floats
    """Weight of the problem's flows on each filling link."""
    open_flows: Ints
    room: Floats
    """Capacity of each filling link that flows outside the problem leave."""
    class_flow: Ints


@kernel
def mark_changed(changed: Ints, n_changed: Ints, is_changed: Flags, flow: int) -> None:
    if not is_changed[flow]:
        is_changed[flow] = True
        changed[n_changed[0]] = flow
        n_changed[0] += 1


@kernel
def resolve(usage: Usage, water: Water, flows: FlowClasses, links: Links, problem: PartialSystem) -> int:
    """Bring all rates up to date after the changed classes got their new counts.

    Classes whose count fell to 0 have left the member sets, the others are in them. Returns the number of classes in
    `problem.flow` whose rates were solved again.
    """
    priority, level = _floor_of_change(usage, flows, links, problem)
    start, use_link, use_weight = usage.start, usage.link, usage.weight
    member_start, members, member, member_entry = usage.member_start, usage.members, usage.member, usage.member_entry
    fills, full, capacity, load = water.fills, links.full, links.capacity, links.load
    priorities, state = flows.priority, flows.state
    in_flows, problem_flow, problem_link = problem.in_flows, problem.flow, problem.link
    n_flows, n_links = ZERO, ZERO
    for i in range(problem.n_changed[0]):
        flow = problem.changed[i]
        problem.is_changed[flow] = False
        if state[flow, LIVE] > 0.0:
            in_flows[flow] = True
            problem_flow[n_flows] = flow
            n_flows += 1
            before = n_links
            n_links = _join_full_links(start, use_link, full, fills, problem_link, flow, n_links)
            if n_links == before and state[flow, CAP] == np.inf:
                n_links = _join_tightest(usage, water, links, problem, flow, n_links)
            continue
        for entry in range(start[flow], start[flow + 1]):
            link = use_link[entry]
            load[link] -= use_weight[entry] * state[flow, CARRIED]
            water.residual[link] = capacity[link] - load[link]
        n_links = _join_full_links(start, use_link, full, fills, problem_link, flow, n_links)
        state[flow, CARRIED] = 0.0
        state[flow, RATE] = 0.0
    problem.n_changed[0] = 0

    done = 0
    while True:
        while done < n_links:
            # A link that fills brings all its flows above the change.
            link = problem_link[done]
            done += 1
            room, total, open_flows = capacity[link], 0.0, 0
            for slot in range(member_start[link], member_start[link] + members[link]):
                flow = np.int64(member[slot])
                weight = use_weight[member_entry[slot]]
                if not in_flows[flow]:
                    if priorities[flow] < priority or (priorities[flow] == priority and state[flow, RATE] < level):
                        room -= weight * state[flow, CARRIED]
                        continue
                    in_flows[flow] = True
                    problem_flow[n_flows] = flow
                    n_flows += 1
                    n_links = _join_full_links(start, use_link, full, fills, problem_link, flow, n_links)
                total += weight * state[flow, LIVE]
                open_flows += 1
            problem.room[link], problem.total[link], problem.open_flows[link] = room, total, open_flows
        if n_flows == 0:
            break
        _solve(usage, water, flows, problem, n_flows, n_links)
        with_overloaded = _keep_watch(water, links, problem, n_links)
        if with_overloaded == n_links:
            break
        n_links = with_overloaded

    for i in range(n_links):
        link = problem_link[i]
        fills[link] = False
        if n_flows == 0:
            water.residual[link] = problem.room[link]
        load[link] = capacity[link] - water.residual[link]
        full[link] = water.residual[link] <= FULL * capacity[link]
    for i in range(n_flows):
        flow = problem_flow[i]
        in_flows[flow] = False
        state[flow, CARRIED] = state[flow, LIVE] * state[flow, RATE]
    return n_flows


@kernel
def _join_full_links(
    start: Ints, use_link: NDArray[np.uint32], full: Flags, fills: Flags, joined: Ints, flow: int, n_links: int
) -> int:
    """Full links on the path of a flow join the problem."""
    for entry in range(start[flow], start[flow + 1]):
        link = use_link[entry]
        if full[link] and not fills[link]:
            fills[link] = True
            joined[n_links] = link
            n_links += 1
    return n_links


@kernel
def _join_tightest(usage: Usage, water: Water, links: Links, problem: PartialSystem, flow: int, n_links: int) -> int:
    """A flow that no link of the problem holds yet brings the link that will hold it first."""
    tightest, least = -1, np.inf
    for entry in range(usage.start[flow], usage.start[flow + 1]):
        link = usage.link[entry]
        if water.fills[link]:
            return n_links
        spare = (links.capacity[link] - links.load[link]) / usage.weight[entry]
        if spare < least:
            tightest, least = link, spare
    water.fills[tightest] = True
    problem.link[n_links] = tightest
    return n_links + 1


@kernel
def _keep_watch(water: Water, links: Links, problem: PartialSystem, n_links: int) -> int:
    """Watched links that were overloaded join the problem; if there are none, the loads of all of them are final."""
    found = n_links
    for i in range(water.n_watched[0]):
        link = water.watched[i]
        if water.residual[link] < -OVERLOAD * links.capacity[link]:
            water.fills[link] = True
            problem.link[found] = link
            found += 1
    for i in range(water.n_watched[0]):
        link = water.watched[i]
        water.is_watched[link] = False
        if found > n_links:
            water.residual[link] = links.capacity[link] - links.load[link]
        else:
            links.load[link] = links.capacity[link] - water.residual[link]
            links.full[link] = water.residual[link] <= FULL * links.capacity[link]
    water.n_watched[0] = 0
    return found


@kernel
def _floor_of_change(usage: Usage, flows: FlowClasses, links: Links, problem: PartialSystem) -> tuple[int, float]:
    """The least (priority, rate) that any changed flow has, before or after: below it nothing moves."""
    priorities, state, changed, n_changed = flows.priority, flows.state, problem.changed, problem.n_changed[0]
    priority = priorities[changed[0]]
    for i in range(n_changed):
        priority = min(priority, priorities[changed[i]])
    level = np.inf
    for i in range(n_changed):
        flow = changed[i]
        if priorities[flow] != priority:
            continue
        if state[flow, CARRIED] > 0.0:
            level = min(level, state[flow, RATE])
        if state[flow, LIVE] > 0.0:
            if n_changed > MANY:
                return priority, -1.0
            level = min(level, _least_share(usage, flows, links, flow))
    return priority, level * (1.0 - FULL)


@kernel
def _least_share(usage: Usage, flows: FlowClasses, links: Links, flow: int) -> float:
    """A rate that the flow is sure of: an equal part of its tightest link, nothing beside more urgent flows."""
    priorities, state = flows.priority, flows.state
    share = state[flow, CAP]
    for entry in range(usage.start[flow], usage.start[flow + 1]):
        link = usage.link[entry]
        total = 0.0
        first = usage.member_start[link]
        for slot in range(first, first + usage.members[link]):
            other = usage.member[slot]
            if priorities[other] < priorities[flow]:
                return -1.0
            if priorities[other] == priorities[flow]:
                total += usage.weight[usage.member_entry[slot]] * state[other, LIVE]
        share = min(share, links.capacity[link] / total)
    return share


@kernel
def _solve(usage: Usage, water: Water, flows: FlowClasses, problem: PartialSystem, n_flows: int, n_links: int) -> None:
    """Fill class after class of strict priority."""
    priority, solved, is_open = flows.priority, problem.flow, water.is_open
    current, last = priority[solved[0]], priority[solved[0]]
    for i in range(n_flows):
        current = min(current, priority[solved[i]])
        last = max(last, priority[solved[i]])
        is_open[solved[i]] = True
    for i in range(n_links):
        link = problem.link[i]
        water.residual[link] = problem.room[link]
        water.total[link] = problem.total[link]
        water.open_flows[link] = problem.open_flows[link]
    if current == last:
        fill(usage, water, problem.link, n_links, problem.flow, n_flows, flows.state, flows.bound_by)
        return
    is_open[solved[:n_flows]] = False
    while True:
        water.total[problem.link[:n_links]] = 0.0
        water.open_flows[problem.link[:n_links]] = 0
        n_class = ZERO
        following = last
        for i in range(n_flows):
            flow = solved[i]
            if priority[flow] > current:
                following = min(following, priority[flow])
            elif priority[flow] == current:
                problem.class_flow[n_class] = flow
                n_class += 1
                is_open[flow] = True
                for entry in range(usage.start[flow], usage.start[flow + 1]):
                    if water.fills[usage.link[entry]]:
                        water.total[usage.link[entry]] += usage.weight[entry] * flows.state[flow, LIVE]
                        water.open_flows[usage.link[entry]] += 1
        fill(usage, water, problem.link, n_links, problem.class_flow, n_class, flows.state, flows.bound_by)
        if current == last:
            return
        current = following


def make_problem(flows: int, links: int) -> PartialSystem:
    return PartialSystem(
        np.zeros(flows, np.int64),
        np.zeros(1, np.int64),
        np.zeros(flows, bool),
        np.zeros(flows, np.int64),
        np.zeros(flows, bool),
        np.zeros(links, np.int64),
        np.zeros(links),
        np.zeros(links, np.int64),
        np.zeros(links),
        np.zeros(flows, np.int64),
    )


def make_flows(priority: Ints, cap: Floats) -> FlowClasses:
    return FlowClasses(make_state(cap), priority.astype(np.int64), np.full(len(priority), -1, np.int64))


def make_links(capacity: Floats) -> Links:
    return Links(capacity.astype(np.float64), np.zeros(len(capacity)), np.zeros(len(capacity), bool))
