"""Tasks on the packet level: what waits for what, streams that compute one at a time, transfers that become flows."""

from __future__ import annotations

import numpy as np

from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.flow.queues import pop_pile, push_pile
from ropewalk.sim.packet.deliver import begin
from ropewalk.sim.packet.far import drop_far, push_far, task_event, timer_event
from ropewalk.sim.packet.helpers import set_ready, settle
from ropewalk.sim.packet.nic import serve_host
from ropewalk.sim.packet.world import (
    CLASSES,
    DONE,
    ENDED,
    FLOWS_ENDED,
    NOW,
    PICKING,
    RUNNING,
    SENDER_ENDS,
    SENDING,
    STACK,
    STARTING,
    TASKS_DONE,
    TIMERS,
    WAITING,
    World,
)

COMPUTE, TRANSFER, MARKER = 0, 1, 2
"""The kinds of `task.Kind`."""


@kernel
def start_all(world: World) -> None:
    """Start every task that waits for none."""
    for task in range(len(world.tasks)):
        if world.tasks[task].waits_for == 0 and world.tasks[task].state == WAITING:
            start_task(world, task)
            _finish_stacked(world)


@kernel
def start_task(world: World, task: int) -> None:
    """All that a task waits for is done."""
    state = world.tasks[task]
    state.state = RUNNING
    state.start = world.clock[NOW]
    if state.kind == MARKER:
        _stack(world, task)
    elif state.kind == COMPUTE:
        if world.stream_busy[state.place] == 0 and world.pile_root[state.place] < 0:
            _let_pick(world, np.int64(state.place))
        push_pile(
            world.pile_root, world.pile_left, world.pile_right, world.pile_first, world.pile_second,
            state.place, task, state.priority, np.float64(world.clock[NOW]),
        )  # fmt: skip
    elif state.delay > 0:
        state.state = STARTING
        push_far(world, task_event(world, task), world.clock[NOW] + state.delay)
    else:
        start_flows(world, task)


@kernel
def _let_pick(world: World, stream: int) -> None:
    world.picking[world.clock[PICKING]] = stream
    world.clock[PICKING] += 1


@kernel
def pick_work(world: World) -> None:
    """All that happens now has happened: free streams take their most urgent task, of these the one ready first.

    What takes no time runs first, on all streams at once: it may make tasks ready that are more urgent, or listed
    before those that would run otherwise.
    """
    kept = 0
    for at in range(world.clock[PICKING]):
        stream = np.int64(world.picking[at])
        if world.tasks[world.pile_root[stream]].delay == 0:
            _stack(world, _begin(world, stream))
        else:
            world.picking[kept] = stream
            kept += 1
    if world.clock[STACK] > 0:
        world.clock[PICKING] = kept
        _finish_stacked(world)
        return
    world.clock[PICKING] = 0
    for at in range(kept):
        task = _begin(world, np.int64(world.picking[at]))
        push_far(world, task_event(world, task), world.clock[NOW] + world.tasks[task].delay)


@kernel
def _begin(world: World, stream: int) -> np.int64:
    """Let a stream run its next task."""
    task = np.int64(
        pop_pile(world.pile_root, world.pile_left, world.pile_right, world.pile_first, world.pile_second, stream)
    )
    world.tasks[task].start = world.clock[NOW]
    world.stream_busy[stream] = 1
    return task


@kernel
def start_flows(world: World, task: int) -> None:
    """The start-up of a transfer is over: its flows begin."""
    state = world.tasks[task]
    state.state = RUNNING
    first = np.int64(state.flow_first)
    for flow in range(first, first + state.flows):
        begin_flow(world, flow)


@kernel
def begin_flow(world: World, flow: int) -> None:
    """Give a flow a slot in the round robin of its port and let it send."""
    state = world.flows[flow]
    queue = world.queues[state.port * world.knobs[CLASSES] + state.lane]
    if queue.free_slot >= 0:
        state.slot = queue.free_slot
        queue.free_slot = world.slots[queue.slot_first + state.slot]
    else:
        state.slot = queue.slots
        queue.slots += 1
    world.slots[queue.slot_first + state.slot] = flow
    state.state = SENDING
    state.next_send = world.clock[NOW]
    begin(world, flow)
    settle(world, flow)
    serve_host(world, np.int64(state.port))


@kernel
def end_flow(world: World, flow: int) -> None:
    """The sender knows that all has arrived."""
    state = world.flows[flow]
    set_ready(world, flow, 0)
    state.state = ENDED
    state.acked_at = world.clock[NOW]
    queue = world.queues[state.port * world.knobs[CLASSES] + state.lane]
    world.slots[queue.slot_first + state.slot] = queue.free_slot
    queue.free_slot = state.slot
    for which in range(world.knobs[TIMERS]):
        drop_far(world, timer_event(world, flow, which))
    world.clock[FLOWS_ENDED] += 1
    world.tasks[state.task].sent_at = world.clock[NOW]
    if world.knobs[SENDER_ENDS] == 1:
        _count_down(world, np.int64(state.task))


@kernel
def delivered(world: World, flow: int) -> None:
    """The receiver has all of a flow."""
    state = world.flows[flow]
    state.delivered_at = world.clock[NOW]
    if world.knobs[SENDER_ENDS] == 0:
        _count_down(world, np.int64(state.task))


@kernel
def _count_down(world: World, task: int) -> None:
    state = world.tasks[task]
    state.flows_left -= 1
    if state.flows_left == 0:
        finish_task(world, task)


@kernel
def task_due(world: World, task: int) -> None:
    """The event of a task: its start-up is over, or it is done."""
    if world.tasks[task].state == STARTING:
        start_flows(world, task)
    else:
        finish_task(world, task)


@kernel
def finish_task(world: World, task: int) -> None:
    _stack(world, task)
    _finish_stacked(world)


@kernel
def _stack(world: World, task: int) -> None:
    world.stack[world.clock[STACK]] = task
    world.clock[STACK] += 1


@kernel
def _finish_stacked(world: World) -> None:
    """End tasks and start those that waited for them; markers among these end at once, on the same stack."""
    while world.clock[STACK] > 0:
        world.clock[STACK] -= 1
        task = np.int64(world.stack[world.clock[STACK]])
        state = world.tasks[task]
        state.state = DONE
        state.end = world.clock[NOW]
        world.clock[TASKS_DONE] += 1
        if state.kind == COMPUTE:
            world.stream_busy[state.place] = 0
            if world.pile_root[state.place] >= 0:
                _let_pick(world, np.int64(state.place))
        for at in range(world.follow_first[task], world.follow_first[task + 1]):
            follower = np.int64(world.follower[at])
            world.tasks[follower].waits_for -= 1
            if world.tasks[follower].waits_for == 0:
                start_task(world, follower)
