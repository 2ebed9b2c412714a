"""What every part of the engine, and every transport, may call: the time, timers, chance, packets, ports."""

from __future__ import annotations

import numpy as np

from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.fair import insert_in_turn
from ropewalk.sim.packet.far import push_far, timer_event
from ropewalk.sim.packet.inlined import inlined
from ropewalk.sim.packet.near import port_event, push_near
from ropewalk.sim.packet.world import (
    ACK,
    ACK_LANE,
    ACK_SIZE,
    CLASSES,
    FAIR,
    FREE,
    FREE_COUNT,
    NOW,
    RANDOM,
    SENDING,
    World,
)

_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_STEP = np.uint64(0x9E3779B97F4A7C15)


@inlined
def now(world: World) -> int:
    return world.clock[NOW]


@kernel
def arm(world: World, flow: int, which: int, time: int) -> None:
    """Set a timer of a transport, or move it."""
    push_far(world, timer_event(world, flow, which + 1), time)


@kernel
def random(world: World) -> float:
    """A number in [0, 1): SplitMix64 (Steele, Lea and Flood, 2014)."""
    state = np.uint64(world.clock[RANDOM]) + _STEP
    world.clock[RANDOM] = np.int64(state)
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    state = state ^ (state >> np.uint64(31))
    return float(state >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined
def take_packet(world: World) -> int:
    """A packet out of the pool. The engine has made sure that there is one."""
    packet = world.clock[FREE]
    world.clock[FREE] = world.packets[packet].next
    world.clock[FREE_COUNT] -= 1
    return packet


@inlined
def free_packet(world: World, packet: int) -> None:
    world.packets[packet].next = world.clock[FREE]
    world.clock[FREE] = packet
    world.clock[FREE_COUNT] += 1


@inlined
def ring(world: World, link: int) -> None:
    """Have a port look for something to send as soon as it is free."""
    port = world.links[link]
    if port.pending == 0:
        port.pending = 1
        push_near(world, port_event(link), max(world.clock[NOW], port.free_at))


@inlined
def enqueue(world: World, link: int, lane: int, packet: int) -> None:
    """Append a packet to a queue of a port."""
    queue = world.queues[link * world.knobs[CLASSES] + lane]
    if world.knobs[FAIR] == 1 and lane > 0:
        insert_in_turn(world, link * world.knobs[CLASSES] + lane, link, packet)
    else:
        world.packets[packet].next = -1
        if queue.head < 0:
            queue.head = packet
        else:
            world.packets[queue.tail].next = packet
        queue.tail = packet
    queue.bytes += world.packets[packet].size
    port = world.links[link]
    port.waiting += 1
    if lane > 0:
        port.queued_bytes += world.packets[packet].size


@inlined
def note_queue(world: World, link: int) -> None:
    """Remember the longest queue of a port; asked after a packet came and the port had its chance to send."""
    port = world.links[link]
    if port.queued_bytes > port.most_queued:
        port.most_queued = port.queued_bytes


@inlined
def may_send(world: World, flow: int) -> bool:
    """Whether a flow has something to send that its window lets out; its time may still have to come."""
    state = world.flows[flow]
    if state.state != SENDING:
        return False
    if state.resend >= 0:
        return True
    return bool(state.sent < state.size and state.sent - state.acked < state.window)


@inlined
def set_ready(world: World, flow: int, ready: int) -> None:
    """Enter a flow into, or take it out of, the round robin of its port."""
    state = world.flows[flow]
    if state.is_ready == ready:
        return
    state.is_ready = ready
    queue = world.queues[state.port * world.knobs[CLASSES] + state.lane]
    word = queue.ready_first + (state.slot >> 6)
    bit = np.uint64(1) << np.uint64(state.slot & 63)
    if ready == 1:
        world.ready[word] |= bit
        queue.ready += 1
        world.links[state.port].waiting += 1
    else:
        world.ready[word] &= ~bit
        queue.ready -= 1
        world.links[state.port].waiting -= 1


@kernel
def settle(world: World, flow: int) -> None:
    """Bring the round robin up to date with what a flow may do now; a flow whose time has not come gets an event."""
    if not may_send(world, flow):
        set_ready(world, flow, 0)
        return
    state = world.flows[flow]
    # A port that is busy until then asks no earlier: pacing at line rate costs no events.
    if state.next_send <= max(world.clock[NOW], world.links[state.port].free_at):
        set_ready(world, flow, 1)
        return
    set_ready(world, flow, 0)
    push_far(world, timer_event(world, flow, 0), state.next_send)


@kernel
def ack_lane(world: World, flow: int) -> np.int64:
    """The class in which the acknowledgements of a flow travel."""
    if world.knobs[ACK_LANE] == 0:
        return np.int64(0)
    return np.int64(world.flows[flow].lane)


@kernel
def turn_round(world: World, packet: int) -> np.int64:
    """Make a data packet that has arrived an acknowledgement on its way back; returns the port it leaves by."""
    state = world.packets[packet]
    path = world.paths[state.path]
    state.hop = path.back_first
    state.last = path.back_last
    state.size = world.knobs[ACK_SIZE]
    state.lane = ack_lane(world, np.int64(state.flow))
    return np.int64(world.hops[state.hop])


@kernel
def reply(world: World, flow: int) -> int:
    """Send an acknowledgement from the receiver of a flow, over the flow's latest path; returns the packet."""
    packet = take_packet(world)
    state = world.packets[packet]
    state.flow = flow
    state.path = world.flows[flow].path
    state.kind = ACK
    state.seq = world.flows[flow].received
    state.payload = 0
    state.mark = 0
    state.again = 0
    state.passed = 0
    state.stamp = world.clock[NOW]
    link = turn_round(world, packet)
    enqueue(world, link, np.int64(state.lane), packet)
    ring(world, link)
    return packet
