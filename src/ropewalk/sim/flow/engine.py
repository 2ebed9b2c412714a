"""The event loop: tasks become ready, wait their delay, run on a stream or share the network, and finish.

Between two events all rates are constant, so nothing is advanced in small steps. A flow class keeps the bytes that
each of its transfers has been served since the class was last empty; a transfer is done when that counter reaches the
mark it was given on arrival. A change of rate therefore costs O(1) for the class, however many transfers are in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.pointer import point_at
from ropewalk.sim.flow.groups import EASY, LinkGroups, regroup
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.flow.queues import (
    EventHeap,
    FinishTree,
    Piles,
    finished_by,
    pop_event,
    pop_pile,
    push_event,
    push_pile,
    rebuild,
    set_finish,
)
from ropewalk.sim.flow.resolve import FlowClasses, Links, PartialSystem, mark_changed, resolve
from ropewalk.sim.flow.settle import FEW, change_all, make_current, settle
from ropewalk.sim.flow.waterfill import (
    CARRIED,
    LIVE,
    MARK,
    PACE,
    RATE,
    SERVED,
    SINCE,
    ZERO,
    Usage,
    Water,
    join,
    leave,
)

COMPUTE, TRANSFER, MARKER = 0, 1, 2

SAME_TIME = 1e-12
"""Events this close, relative to the time, are one event: they differ by rounding only."""

MANY_LEAVES = 8
"""When more than one finish time in so many changes, rebuilding the whole tree is cheaper than single updates."""


class Tasks(NamedTuple):
    kind: NDArray[np.int8]
    place: Ints
    """The flow class of a transfer, the stream of a compute task."""
    amount: Floats
    """Bytes of a transfer, seconds of a compute task."""
    delay: Floats
    """Seconds between being ready and the first byte."""
    priority: Floats
    waits: NDArray[np.int32]
    """Predecessors that are not done yet."""
    next_start: Ints
    next: NDArray[np.int32]
    start: Floats
    end: Floats
    bound_by: NDArray[np.int32]


class Clock(NamedTuple):
    """Streams, and lists that an instant needs."""

    busy: NDArray[np.bool_]
    """Streams that run a task."""
    free: Ints
    """Streams that may start a task at the end of this instant."""
    ready: Ints
    """Stack of tasks whose predecessors are all done."""
    finished: Ints


class RateLog(NamedTuple):
    """Rate changes, where asked: class `flow[i]` runs at `rate[i]` in total from `time[i]` on."""

    time: Floats
    flow: NDArray[np.int32]
    rate: Floats


@kernel
def run(
    tasks: Tasks,
    usage: Usage,
    water: Water,
    flows: FlowClasses,
    links: Links,
    problem: PartialSystem,
    groups: LinkGroups,
    clock: Clock,
    events: EventHeap,
    streams: Piles,
    marks: Piles,
    tree: FinishTree,
    now: float,
    until_steps: int,
    log: RateLog,
    logged: int,
    keep_log: bool,
) -> tuple[float, int, int, int, bool]:
    """Run until nothing is left to happen, `until_steps` time steps have passed, or the rate log may overflow.

    Returns (time, finished tasks in these steps, time steps, length of the rate log, is nothing left to happen).
    """
    # Records behind pointers compile in two thirds of the time and run in two thirds: nobody counts references.
    tasks, usage, water, flows = point_at(tasks), point_at(usage), point_at(water), point_at(flows)
    links, problem, groups, clock = point_at(links), point_at(problem), point_at(groups), point_at(clock)
    events, streams, marks, tree = point_at(events), point_at(streams), point_at(marks), point_at(tree)
    log = point_at(log)
    # What the loop needs all the time is taken out of the records once.
    kind, place, amount, delay = tasks.kind, tasks.place, tasks.amount, tasks.delay
    start, end, bound_by, priority = tasks.start, tasks.end, tasks.bound_by, tasks.priority
    waits, next_start, following = tasks.waits, tasks.next_start, tasks.next
    ready, finished, busy, free, stream_root = clock.ready, clock.finished, clock.busy, clock.free, streams.root
    state = flows.state
    changed, n_changed, is_changed = problem.changed, problem.n_changed, problem.is_changed
    use_link, members, member_start = usage.link, usage.members, usage.member_start
    member, member_entry, member_place = usage.member, usage.member_entry, usage.place
    left, right, second = marks.left, marks.right, marks.second
    event_time, event_task, n_events = events.time, events.task, events.size
    least, leaves = tree.least, tree.leaves[0]
    root, mark, flow_bound_by, use_start = marks.root, marks.first, flows.bound_by, usage.start

    done, steps = ZERO, ZERO
    while steps < until_steps and (not keep_log or logged + 2 * len(state) <= len(log.time)):
        n_ready, n_free = ZERO, ZERO
        if now < 0.0:
            now = 0.0
            for task in range(len(kind) - 1, -1, -1):
                if waits[task] == 0:
                    ready[n_ready] = task
                    n_ready += 1
        else:
            coming = least[1]
            if n_events[0]:
                coming = min(coming, event_time[0])
            if coming == np.inf:
                return now, done, steps, logged, True
            now = max(now, coming)
            horizon = now * (1.0 + SAME_TIME)
            # Delays and compute tasks that run out now ...
            while n_events[0] and event_time[0] <= horizon:
                task = pop_event(event_time, event_task, n_events)
                if kind[task] == TRANSFER:
                    ready[n_ready] = -1 - task
                    n_ready += 1
                else:
                    busy[place[task]] = False
                    if stream_root[place[task]] >= 0:
                        free[n_free] = place[task]
                        n_free += 1
                    n_ready, done = _finish(end, waits, next_start, following, ready, task, now, n_ready, done)
            # ... and transfers that have reached their mark.
            for i in range(finished_by(least, leaves, horizon, finished)):
                flow = finished[i]
                task = root[flow]
                state[flow, SERVED] = mark[task]
                state[flow, SINCE] = now
                while task >= 0 and mark[task] <= state[flow, SERVED] * (1.0 + SAME_TIME):
                    pop_pile(root, left, right, mark, second, flow)
                    state[flow, LIVE] -= 1.0
                    bound_by[task] = flow_bound_by[flow]
                    n_ready, done = _finish(end, waits, next_start, following, ready, task, now, n_ready, done)
                    task = root[flow]
                if task < 0:
                    leave(use_start, use_link, members, member_start, member, member_entry, member_place, flow)
                else:
                    state[flow, MARK] = mark[task]
                set_finish(least, leaves, flow, np.inf)
                mark_changed(changed, n_changed, is_changed, flow)
        # Work the stack of ready tasks; a transfer whose delay is over stands there as -1 - task.
        while n_ready or n_free:
            if n_ready == 0:
                # All that ends now has ended. What takes no time runs first, on all free streams at once: it may make
                # tasks ready that are more urgent, or listed before those that would run otherwise.
                ended, n_ready, n_free = _run_what_takes_no_time(tasks, streams, free, ready, now, n_free)
                done += ended
                if ended == 0:
                    break
                continue
            n_ready -= 1
            task = ready[n_ready]
            if task >= 0 and kind[task] == COMPUTE:
                if not busy[place[task]] and stream_root[place[task]] < 0:
                    free[n_free] = place[task]
                    n_free += 1
                push_pile(
                    stream_root,
                    streams.left,
                    streams.right,
                    streams.first,
                    streams.second,
                    place[task],
                    task,
                    priority[task],
                    now,
                )
                continue
            if task >= 0:
                start[task] = now
                if kind[task] == TRANSFER and delay[task] > 0.0:
                    push_event(event_time, event_task, n_events, now + delay[task], task)
                    continue
            else:
                task = -1 - task
            flow = place[task]
            if kind[task] == MARKER or amount[task] <= 0.0 or use_start[flow] == use_start[flow + 1]:
                n_ready, done = _finish(end, waits, next_start, following, ready, task, now, n_ready, done)
                continue
            # The first byte enters the network.
            if state[flow, LIVE] == 0.0:
                join(use_start, use_link, members, member_start, member, member_entry, member_place, flow)
                state[flow, SERVED] = 0.0
            else:
                state[flow, SERVED] += state[flow, PACE] * (now - state[flow, SINCE])
            state[flow, SINCE] = now
            state[flow, LIVE] += 1.0
            push_pile(root, left, right, mark, second, flow, task, state[flow, SERVED] + amount[task], 0.0)
            state[flow, MARK] = mark[root[flow]]
            mark_changed(changed, n_changed, is_changed, flow)
        # A free stream takes its most urgent ready task; among equals the one that was ready first.
        for i in range(n_free):
            stream = free[i]
            task = pop_pile(stream_root, streams.left, streams.right, streams.first, streams.second, stream)
            busy[stream] = True
            start[task] = now
            push_event(event_time, event_task, n_events, now + amount[task], task)
        if problem.n_changed[0]:
            if keep_log:
                logged = _note_emptied(log, logged, flows, problem, now)
            n_solved = _update_rates(usage, water, flows, links, problem, groups, tree, now)
            if keep_log:
                logged = _note_rates(log, logged, flows, problem, n_solved, now)
        steps += 1
    return now, done, steps, logged, False


@kernel
def _run_what_takes_no_time(
    tasks: Tasks, streams: Piles, free: Ints, ready: Ints, now: float, n_free: int
) -> tuple[int, int, int]:
    """Start and end the next task of every free stream where it takes no time; (how many, ready, still free)."""
    amount, start, root = tasks.amount, tasks.start, streams.root
    ended, n_ready, kept = ZERO, ZERO, ZERO
    for i in range(n_free):
        stream = free[i]
        if amount[root[stream]] <= 0.0:
            task = pop_pile(root, streams.left, streams.right, streams.first, streams.second, stream)
            start[task] = now
            n_ready, ended = _finish(
                tasks.end, tasks.waits, tasks.next_start, tasks.next, ready, task, now, n_ready, ended
            )
        if root[stream] >= 0:
            free[kept] = stream
            kept += 1
    return ended, n_ready, kept


@kernel
def _finish(
    end: Floats, waits: Ints, next_start: Ints, following: NDArray[np.int32], ready: Ints,
    task: int, now: float, n_ready: int, done: int,
) -> tuple[int, int]:  # fmt: skip
    """A task is done: whoever waited only for it becomes ready."""
    end[task] = now
    for i in range(next_start[task], next_start[task + 1]):
        follower = following[i]
        waits[follower] -= 1
        if waits[follower] == 0:
            ready[n_ready] = follower
            n_ready += 1
    return n_ready, done + 1


@kernel
def _update_rates(
    usage: Usage,
    water: Water,
    flows: FlowClasses,
    links: Links,
    problem: PartialSystem,
    groups: LinkGroups,
    tree: FinishTree,
    now: float,
) -> int:
    """Solve for the new rates, book what was served at the old ones, and set the new finish times."""
    if groups.counts[EASY] and problem.n_changed[0] <= FEW:
        n_solved = settle(usage, water, flows, links, problem, groups)
        if n_solved < 0:
            change_all(flows, problem)
    else:
        n_solved = -1
    if n_solved < 0:
        make_current(water, flows, links, problem, groups)
        n_solved = resolve(usage, water, flows, links, problem)
        if groups.counts[EASY]:
            regroup(usage, flows, problem, groups, n_solved)
    solved, state, least, leaves = problem.flow, flows.state, tree.least, tree.leaves[0]
    many = n_solved * MANY_LEAVES > leaves
    for i in range(n_solved):
        flow = solved[i]
        rate = state[flow, RATE]
        served = state[flow, SERVED] + state[flow, PACE] * (now - state[flow, SINCE])
        state[flow, SERVED] = served
        state[flow, SINCE] = now
        state[flow, PACE] = rate
        finish = now + max(state[flow, MARK] - served, 0.0) / rate if rate > 0.0 else np.inf
        if many:
            least[leaves + flow] = finish
        else:
            set_finish(least, leaves, flow, finish)
    if many:
        rebuild(least, leaves)
    return n_solved


@kernel
def _note_rates(
    log: RateLog, logged: int, flows: FlowClasses, problem: PartialSystem, n_solved: int, now: float
) -> int:
    """Append the total rate of every class that was solved again."""
    for i in range(n_solved):
        flow = problem.flow[i]
        log.time[logged], log.flow[logged], log.rate[logged] = now, flow, flows.state[flow, CARRIED]
        logged += 1
    return logged


@kernel
def _note_emptied(log: RateLog, logged: int, flows: FlowClasses, problem: PartialSystem, now: float) -> int:
    """Append the classes that have just lost their last transfer."""
    for i in range(problem.n_changed[0]):
        flow = problem.changed[i]
        if flows.state[flow, LIVE] == 0.0:
            log.time[logged], log.flow[logged], log.rate[logged] = now, flow, 0.0
            logged += 1
    return logged


def make_rate_log(room: int, so_far: RateLog | None = None) -> RateLog:
    """A log with room for so many entries more."""
    log = RateLog(np.zeros(room), np.zeros(room, np.int32), np.zeros(room))
    if so_far is None:
        return log
    return RateLog(*(np.concatenate([old, new]) for old, new in zip(so_far, log, strict=True)))
