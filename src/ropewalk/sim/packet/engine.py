"""The event loop: the next arrival, port, timer or task, and what it means.

Ties break by (time, far before near, sequence).
"""

from __future__ import annotations

import numpy as np

from ropewalk.pointer import point_at
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.deliver import on_ack, on_data, on_loss, on_timer
from ropewalk.sim.packet.far import drop_far
from ropewalk.sim.packet.helpers import enqueue, free_packet, settle, turn_round
from ropewalk.sim.packet.inlined import inlined
from ropewalk.sim.packet.near import arrival_event, first_near, pop_near
from ropewalk.sim.packet.nic import relay, serve_host
from ropewalk.sim.packet.switch import forward, serve_switch
from ropewalk.sim.packet.tasks import delivered, end_flow, pick_work, start_all, task_due
from ropewalk.sim.packet.transport import REPLY
from ropewalk.sim.packet.wire import take_arrival
from ropewalk.sim.packet.world import (
    BUCKET_SHIFT,
    CLASSES,
    CURSOR,
    DATA,
    EVENTS,
    FAR_SIZE,
    FLOWS_ENDED,
    FREE_COUNT,
    NEVER,
    NOW,
    PAUSE,
    PICKING,
    RESUME,
    SENDING,
    TASK_EVENTS,
    TASKS_DONE,
    TIMERS,
    World,
)

FINISHED, SLICE_OVER, TIME_REACHED, POOL_LOW, NOTHING_DUE = range(5)
"""Why `run` came back."""


@kernel
def start(owned: World) -> None:
    """Start every task that waits for none, at time zero."""
    start_all(point_at(owned))


@kernel
def run(owned: World, until: int, most_events: int, least_free: int) -> int:
    """Run until all tasks are done and all flows acknowledged, or until one of the limits is met.

    `until`: no event later than this is run. `least_free`: packets that one event may need.
    """
    world = point_at(owned)
    tasks, flows = len(world.tasks), len(world.flows)
    for _ in range(most_events):
        if world.clock[TASKS_DONE] == tasks and world.clock[FLOWS_ENDED] == flows:
            return FINISHED
        if world.clock[FREE_COUNT] < least_free:
            return POOL_LOW
        slot = first_near(world)
        near = NEVER if slot < 0 else world.near[world.near_slots[slot].head].time
        far = NEVER if world.clock[FAR_SIZE] == 0 else world.far_time[world.far_heap[0]]
        time = min(near, far)
        if world.clock[PICKING] > 0 and time > world.clock[NOW]:
            pick_work(world)
            continue
        if time > until:
            return NOTHING_DUE if time == NEVER else TIME_REACHED
        world.clock[NOW] = time
        world.clock[EVENTS] += 1
        if far <= near:
            world.clock[CURSOR] = time >> world.knobs[BUCKET_SHIFT]
            _far_event(world, np.int64(world.far_heap[0]))
            continue
        event = pop_near(world, slot)
        link = event >> 1
        if event == arrival_event(link):
            _arrive(world, link)
        else:
            world.links[link].pending = 0
            _serve(world, link)
    return SLICE_OVER


@inlined
def _serve(world: World, link: int) -> None:
    if world.switches[world.links[link].src].is_switch == 1:
        serve_switch(world, link)
    else:
        serve_host(world, link)


@kernel
def _far_event(world: World, event: int) -> None:
    drop_far(world, event)
    if event >= world.knobs[TASK_EVENTS]:
        task_due(world, event - world.knobs[TASK_EVENTS])
        return
    flow = event // world.knobs[TIMERS]
    which = event - flow * world.knobs[TIMERS]
    if which > 0:
        on_timer(world, flow, which - 1)
    settle(world, flow)
    serve_host(world, np.int64(world.flows[flow].port))


@kernel
def _arrive(world: World, link: int) -> None:
    """A packet has come out of a wire: a pause frame, or one to pass on, or one that is where it wants to be."""
    packet = take_arrival(world, link)
    state = world.packets[packet]
    if state.kind >= PAUSE:
        _pause(world, np.int64(world.links[link].back), np.int64(state.lane), np.int64(state.kind))
        free_packet(world, packet)
    elif state.hop != state.last:
        if world.switches[world.links[link].dst].is_switch == 1:
            loser = forward(world, link, packet)
            if loser >= 0:
                on_loss(world, loser)
        else:
            relay(world, packet)
    elif state.kind == DATA:
        _reach_receiver(world, packet)
    else:
        _reach_sender(world, packet)


@kernel
def _pause(world: World, link: int, lane: int, kind: int) -> None:
    """Stop a class on a link, or let it go on; a packet that is being sent is finished."""
    port = world.links[link]
    queue = world.queues[link * world.knobs[CLASSES] + lane]
    if kind == RESUME:
        queue.paused = 0
        port.paused_classes -= 1
        if port.paused_classes == 0:
            port.paused_time += world.clock[NOW] - port.paused_since
        _serve(world, link)
        return
    queue.paused = 1
    port.pauses += 1
    if port.paused_classes == 0:
        port.paused_since = world.clock[NOW]
    port.paused_classes += 1


@kernel
def _reach_receiver(world: World, packet: int) -> None:
    """A data packet is at its destination; it may go back as an acknowledgement."""
    flow = np.int64(world.packets[packet].flow)
    state = world.flows[flow]
    had = state.received
    if on_data(world, flow, packet) == REPLY:
        link = turn_round(world, packet)
        enqueue(world, link, np.int64(world.packets[packet].lane), packet)
        serve_host(world, link)
    else:
        free_packet(world, packet)
    if state.received > had:
        world.received[world.links[world.hops[world.paths[state.path_first].last]].dst] += state.received - had
        if state.received >= state.size > had:
            delivered(world, flow)


@kernel
def _reach_sender(world: World, packet: int) -> None:
    """An acknowledgement is back; it may end its flow or let it send."""
    flow = np.int64(world.packets[packet].flow)
    state = world.flows[flow]
    if state.state == SENDING:
        on_ack(world, flow, packet)
        free_packet(world, packet)
        if state.acked >= state.size:
            end_flow(world, flow)
        else:
            settle(world, flow)
            serve_host(world, np.int64(state.port))
    else:
        free_packet(world, packet)
