"""Queues whose flows take turns: self-clocked fair queueing (Golestani, 1994).

A packet gets a tag: its size more than that of the packet of its flow before it, and no less than that of the packet
which its port has sent last. The packet with the smallest tag leaves first, so that flows with packets waiting share a
port byte by byte. While a packet waits, its tag stands in the place of its arrival.
"""

from __future__ import annotations

from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.world import DATA, World


@kernel
def _place(world: World, packet: int) -> int:
    """Which of the ports on its way there and back a packet waits at."""
    state = world.packets[packet]
    path = world.paths[state.path]
    if state.kind == DATA:
        return int(state.hop - path.first)
    return int(path.last - path.first + 1 + state.hop - path.back_first)


@kernel
def insert_in_turn(world: World, number: int, link: int, packet: int) -> None:
    """Put a packet into queue `number`, the one of a class of a port, where its tag belongs."""
    queue, state = world.queues[number], world.packets[packet]
    place = _place(world, packet)
    tag = max(world.links[link].virtual, world.tags[state.flow, place]) + state.size
    world.tags[state.flow, place] = tag
    state.arrival = tag
    state.next = -1
    if queue.head < 0:
        queue.head = queue.tail = packet
    elif world.packets[queue.tail].arrival <= tag:
        world.packets[queue.tail].next = packet
        queue.tail = packet
    elif world.packets[queue.head].arrival > tag:
        state.next = queue.head
        queue.head = packet
    else:
        before = queue.head
        while world.packets[world.packets[before].next].arrival <= tag:
            before = world.packets[before].next
        state.next = world.packets[before].next
        world.packets[before].next = packet
