"""The port of a host: acknowledgements first, then its flows in turn, packet by packet, among those that may send.

A host may also relay packets, as servers of a BCube or a torus do. They wait in the memory of the host, which is never
full and pauses nobody, and take turns with the host's own packets. With `host_queue`, all of them and acknowledgements
wait in one queue in front of the port, into which flows put whatever their windows allow.
"""

from __future__ import annotations

import numpy as np

from ropewalk.pointer import lowest_bit
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.deliver import on_sent
from ropewalk.sim.packet.helpers import enqueue, note_queue, ring, set_ready, settle, take_packet
from ropewalk.sim.packet.inlined import inlined
from ropewalk.sim.packet.wire import dequeue, transmit
from ropewalk.sim.packet.world import ACK, CLASSES, DATA, FREE_COUNT, HEADER, HOST_QUEUE, NACK, NOW, SPRAY, World

_ALL = np.uint64(2**64 - 1)
LEAST_LEFT = 64
"""Packets that a host leaves in the pool when it hands over what its flows may send."""


@kernel
def relay(world: World, packet: int) -> None:
    """Pass a packet on from a host that is not its destination."""
    state = world.packets[packet]
    state.hop += 1
    goes = np.int64(world.hops[state.hop])
    enqueue(world, goes, np.int64(state.lane), packet)
    serve_host(world, goes)
    note_queue(world, goes)


@kernel
def serve_host(world: World, link: int) -> None:
    """Let a port of a host send its next packet, if it is free and has one."""
    port = world.links[link]
    if port.waiting == 0:
        return
    if world.knobs[HOST_QUEUE] == 1:
        _hand_over(world, link)
    if port.free_at > world.clock[NOW]:
        if port.pending == 0:
            ring(world, link)
        return
    classes = world.knobs[CLASSES]
    first = link * classes
    if world.queues[first].head >= 0:
        transmit(world, link, dequeue(world, link, 0))
        return
    for lane in range(1, classes):
        queue = world.queues[first + lane]
        if queue.paused == 1:
            continue
        head = queue.head
        if head >= 0:
            kind = world.packets[head].kind
            if kind in (ACK, NACK) or port.turn == 1 or queue.ready == 0:
                packet = dequeue(world, link, lane)
                port.turn = 0
                transmit(world, link, packet)
                return
        if queue.ready > 0:
            port.turn = 1
            send_of_flow(world, link, next_in_turn(world, first + lane))
            return


@kernel
def next_in_turn(world: World, number: int) -> np.int64:
    """The first flow that may send behind the one that sent last, round the ring of slots."""
    queue = world.queues[number]
    words = (queue.slots + 63) >> 6
    start = queue.last_slot + 1
    word = start >> 6
    if word >= words:
        word = 0
        start = 0
    bits = world.ready[queue.ready_first + word] & (_ALL << np.uint64(start & 63))
    while bits == 0:
        word += 1
        if word == words:
            word = 0
        bits = world.ready[queue.ready_first + word]
    slot = (word << 6) + lowest_bit(bits)
    queue.last_slot = slot
    return np.int64(world.slots[queue.slot_first + slot])


@kernel
def _hand_over(world: World, link: int) -> None:
    """Put everything that flows may send into the queue of their port, as the TCP of a kernel does."""
    classes = world.knobs[CLASSES]
    for lane in range(1, classes):
        number = link * classes + lane
        # What finds no packet in the pool waits until the port looks again.
        while world.queues[number].ready > 0 and world.clock[FREE_COUNT] > LEAST_LEFT:
            flow = next_in_turn(world, number)
            packet = _next_packet(world, flow)
            set_ready(world, flow, 0)
            on_sent(world, flow, packet)
            settle(world, flow)
            enqueue(world, link, lane, packet)
    note_queue(world, link)


@kernel
def send_of_flow(world: World, link: int, flow: int) -> None:
    """Make the next packet of a flow and put it on the wire."""
    packet = _next_packet(world, flow)
    # Taken out of the ring before the port is asked whether anything waits, and entered again by what it may do next.
    set_ready(world, flow, 0)
    world.links[link].free_at = world.clock[NOW] + world.wire[world.links[link].speed_class, world.packets[packet].size]
    on_sent(world, flow, packet)
    settle(world, flow)
    transmit(world, link, packet)


@inlined
def _next_packet(world: World, flow: int) -> int:
    """The next packet of a flow, at the first hop of its path."""
    state = world.flows[flow]
    packet = take_packet(world)
    made = world.packets[packet]
    offset = state.sent
    if state.resend >= 0:
        offset = state.resend
        state.resend = -1
    else:
        state.sent = min(offset + state.payload, state.size)
    payload = min(state.size - offset, state.payload)
    made.again = offset < state.furthest
    state.furthest = max(state.furthest, offset + payload)
    made.kind = DATA
    made.flow = flow
    made.seq = offset
    made.payload = payload
    made.size = payload + world.knobs[HEADER]
    made.lane = state.lane
    made.mark = 0
    made.passed = 0
    made.stamp = world.clock[NOW]
    made.path = state.path
    if world.knobs[SPRAY] == 1 and state.paths > 1:
        state.path += 1
        if state.path == state.path_first + state.paths:
            state.path = state.path_first
    way = world.paths[made.path]
    made.hop = way.first
    made.last = way.last
    return packet
