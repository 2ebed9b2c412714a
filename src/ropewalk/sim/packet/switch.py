"""A switch: store and forward, queues at the way out, marks for what leaves, pauses for those who send too much."""

from __future__ import annotations

import numpy as np

from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.buffer import admit, release, should_pause, should_resume
from ropewalk.sim.packet.helpers import enqueue, free_packet, note_queue, random, ring, take_packet
from ropewalk.sim.packet.inlined import inlined
from ropewalk.sim.packet.wire import dequeue, transmit
from ropewalk.sim.packet.world import (
    CLASSES,
    DATA,
    DROPS,
    ECN,
    MARKS,
    NOW,
    PAUSE,
    PAUSE_FIRST,
    PAUSE_SIZE,
    PFC,
    RESUME,
    TELEMETRY,
    World,
)


@kernel
def forward(world: World, came: int, packet: int) -> np.int64:
    """Take in a packet that has arrived and queue it at its way out. Returns the flow that lost it, or -1."""
    state = world.packets[packet]
    state.hop += 1
    goes = np.int64(world.hops[state.hop])
    lane = np.int64(state.lane)
    if lane > 0:
        if not admit(world, came, goes, lane, state.size):
            world.links[goes].drops += 1
            world.clock[DROPS] += 1
            flow = np.int64(state.flow)
            free_packet(world, packet)
            return flow
        if world.knobs[PFC] == 1 and should_pause(world, came, lane):
            world.queues[came * world.knobs[CLASSES] + lane].pausing = 1
            _send_pause(world, came, lane, PAUSE)
    enqueue(world, goes, lane, packet)
    serve_switch(world, goes)
    note_queue(world, goes)
    return np.int64(-1)


@kernel
def serve_switch(world: World, link: int) -> None:
    """Let a port of a switch send its next packet, if it is free: control first, then the lowest class not paused."""
    port = world.links[link]
    if port.waiting == 0:
        return
    if port.free_at > world.clock[NOW]:
        if port.pending == 0:
            ring(world, link)
        return
    classes = world.knobs[CLASSES]
    first = link * classes
    for lane in range(classes):
        queue = world.queues[first + lane]
        if queue.head >= 0 and (lane == 0 or queue.paused == 0):
            packet = dequeue(world, link, lane)
            if lane > 0:
                _leave(world, link, lane, packet)
            transmit(world, link, packet)
            return


@inlined
def _leave(world: World, link: int, lane: int, packet: int) -> None:
    """What happens to a packet, and to the port it came in by, when it leaves a switch."""
    port = world.links[link]
    state = world.packets[packet]
    came = np.int64(world.hops[state.hop - 1])
    release(world, came, lane, state.size)
    if world.knobs[ECN] == 1 and state.kind == DATA:
        _mark(world, link, lane, packet)
    if world.knobs[TELEMETRY] == 1 and state.kind == DATA and state.passed < world.telemetry.shape[1]:
        seen = world.telemetry[packet, state.passed]
        seen[0] = world.clock[NOW]
        seen[1] = port.sent_bytes
        seen[2] = port.queued_bytes
        seen[3] = port.speed
        state.passed += 1
    if world.knobs[PFC] == 1 and should_resume(world, came, lane):
        world.queues[came * world.knobs[CLASSES] + lane].pausing = 0
        _send_pause(world, came, lane, RESUME)


@inlined
def _mark(world: World, link: int, lane: int, packet: int) -> None:
    """Mark congestion: never up to Kmin, always above Kmax, with a chance that grows to Pmax between them."""
    port = world.links[link]
    queued = world.queues[link * world.knobs[CLASSES] + lane].bytes
    if queued <= port.kmin:
        return
    if queued <= port.kmax and random(world) >= world.pmax[0] * (queued - port.kmin) / (port.kmax - port.kmin):
        return
    world.packets[packet].mark = 1
    port.marks += 1
    world.clock[MARKS] += 1


@kernel
def _send_pause(world: World, came: int, lane: int, kind: int) -> None:
    """Send a pause frame, or the one that ends a pause, to the sender of a link. It waits for the packet being sent."""
    back = np.int64(world.links[came].back)
    packet = take_packet(world)
    state = world.packets[packet]
    state.kind = kind
    state.lane = lane
    state.size = world.knobs[PAUSE_SIZE]
    state.flow = -1
    state.path = -1
    state.hop = 0
    state.last = 0
    if world.knobs[PAUSE_FIRST] == 1:
        queue = world.queues[back * world.knobs[CLASSES]]
        state.next = queue.head
        # A frame that ends a pause must not overtake the one that began it.
        if queue.head >= 0 and world.packets[queue.head].kind >= PAUSE:
            _behind_pauses(world, back, packet)
        else:
            if queue.head < 0:
                queue.tail = packet
            queue.head = packet
            queue.bytes += state.size
            world.links[back].waiting += 1
    else:
        enqueue(world, back, 0, packet)
    serve_switch_control(world, back)


@kernel
def _behind_pauses(world: World, link: int, packet: int) -> None:
    """Insert a pause frame into the control queue behind those that wait already."""
    queue = world.queues[link * world.knobs[CLASSES]]
    at = queue.head
    while world.packets[at].next >= 0 and world.packets[world.packets[at].next].kind >= PAUSE:
        at = world.packets[at].next
    world.packets[packet].next = world.packets[at].next
    world.packets[at].next = packet
    if world.packets[packet].next < 0:
        queue.tail = packet
    queue.bytes += world.packets[packet].size
    world.links[link].waiting += 1


@kernel
def serve_switch_control(world: World, link: int) -> None:
    """Send the first control packet of a port if it is free, otherwise see to it that the port looks when it is."""
    port = world.links[link]
    if port.free_at > world.clock[NOW]:
        if port.pending == 0:
            ring(world, link)
        return
    transmit(world, link, dequeue(world, link, 0))
