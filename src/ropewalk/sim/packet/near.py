"""The near queue: when a packet arrives on a link and when a port is free again, in a wheel of short time slots.

Every link has two events of its own, an arrival and a port, each pending at most once, and none further ahead than
the longest packet and the longest link take. So the queue needs no memory beyond two entries a link, and a wheel that
is as long as that horizon never overflows. Slots hold few events, sorted by (time, sequence); two levels of bits say
which slots are not empty.
"""

from __future__ import annotations

import numpy as np

from ropewalk.pointer import lowest_bit
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.inlined import inlined
from ropewalk.sim.packet.world import BUCKET_SHIFT, CURSOR, World

_ONE = np.uint64(1)
_ALL = np.uint64(2**64 - 1)


@inlined
def arrival_event(link: int) -> int:
    """The event of the packet that comes out of a wire next."""
    return 2 * link


@inlined
def port_event(link: int) -> int:
    """The event of a port that has something to send and is busy. It stands next to the other event of its link."""
    return 2 * link + 1


@kernel
def push_near(world: World, event: int, time: int) -> None:
    """Put an event, which must not be pending, behind all events of its time."""
    slot = (time >> world.knobs[BUCKET_SHIFT]) & (len(world.near_slots) - 1)
    here = world.near_slots[slot]
    world.near[event].time = time
    tail = here.tail
    if tail < 0:
        here.head = event
        here.tail = event
        world.near[event].next = -1
        word = slot >> 6
        world.near_bits[word] |= _ONE << np.uint64(slot & 63)
        world.near_words[word >> 6] |= _ONE << np.uint64(word & 63)
        return
    if world.near[tail].time <= time:
        world.near[tail].next = event
        world.near[event].next = -1
        here.tail = event
        return
    at = here.head
    if world.near[at].time > time:
        world.near[event].next = at
        here.head = event
        return
    while True:
        following = world.near[at].next
        if world.near[following].time > time:
            break
        at = following
    world.near[event].next = following
    world.near[at].next = event


@kernel
def first_near(world: World) -> int:
    """The slot of the earliest event, or -1. Time never runs back: the search starts at the cursor."""
    mask = len(world.near_slots) - 1
    slot = world.clock[CURSOR] & mask
    word = slot >> 6
    bits = world.near_bits[word] & (_ALL << np.uint64(slot & 63))
    if bits != 0:
        return (word << 6) + lowest_bit(bits)
    # Words behind this one, then, round the wheel, those before it, and last the low bits of this word.
    group = word >> 6
    later = world.near_words[group]
    if (word & 63) == 63:
        later = np.uint64(0)
    else:
        later &= _ALL << np.uint64((word & 63) + 1)
    groups = len(world.near_words)
    for _ in range(groups + 1):
        if later != 0:
            found = (group << 6) + lowest_bit(later)
            return (found << 6) + lowest_bit(world.near_bits[found])
        group += 1
        if group == groups:
            group = 0
        later = world.near_words[group]
    return -1


@inlined
def pop_near(world: World, slot: int) -> np.int64:
    """Remove and return the first event of a slot that `first_near` found."""
    here = world.near_slots[slot]
    event = np.int64(here.head)
    following = world.near[event].next
    here.head = following
    if following < 0:
        here.tail = -1
        word = slot >> 6
        world.near_bits[word] &= ~(_ONE << np.uint64(slot & 63))
        if world.near_bits[word] == 0:
            world.near_words[word >> 6] &= ~(_ONE << np.uint64(word & 63))
    world.clock[CURSOR] = world.near[event].time >> world.knobs[BUCKET_SHIFT]
    return event
