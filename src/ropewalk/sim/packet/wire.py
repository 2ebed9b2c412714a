"""Ports and wires: a port sends one packet at a time, a wire delivers packets in the order they were sent."""

from __future__ import annotations

import numpy as np

from ropewalk.pointer import prefetch
from ropewalk.sim.packet.inlined import inlined
from ropewalk.sim.packet.near import arrival_event, port_event, push_near
from ropewalk.sim.packet.world import CLASSES, FAIR, HOPS, NOW, TOKENS, World


@inlined
def transmit(world: World, link: int, packet: int) -> None:
    """Put a packet on the wire of a port that is free now."""
    port = world.links[link]
    state = world.packets[packet]
    time = world.clock[NOW]
    done = time + world.wire[port.speed_class, state.size]
    port.free_at = done
    port.sent_bytes += state.size
    world.clock[HOPS] += 1
    state.arrival = (time if world.knobs[TOKENS] == 1 else done) + port.latency
    state.next = -1
    if port.flight_head < 0:
        port.flight_head = packet
        push_near(world, arrival_event(link), state.arrival)
    else:
        world.packets[port.flight_tail].next = packet
    port.flight_tail = packet
    # Where nothing waits, nobody needs to know when the port is free: the next packet looks at `free_at`.
    if port.waiting > 0 and port.pending == 0:
        port.pending = 1
        push_near(world, port_event(link), done)


@inlined
def take_arrival(world: World, link: int) -> np.int64:
    """The packet whose last bit has just come out of a wire."""
    port = world.links[link]
    packet = np.int64(port.flight_head)
    following = world.packets[packet].next
    port.flight_head = following
    if following >= 0:
        push_near(world, arrival_event(link), world.packets[following].arrival)
        prefetch(world.packets, world.packets[following].next)
    return packet


@inlined
def dequeue(world: World, link: int, lane: int) -> np.int64:
    """Take the first packet out of a queue that has one."""
    queue = world.queues[link * world.knobs[CLASSES] + lane]
    packet = np.int64(queue.head)
    queue.head = world.packets[packet].next
    prefetch(world.packets, queue.head)
    queue.bytes -= world.packets[packet].size
    port = world.links[link]
    port.waiting -= 1
    if lane > 0:
        if world.knobs[FAIR] == 1:
            port.virtual = world.packets[packet].arrival
        port.queued_bytes -= world.packets[packet].size
    return packet
