"""The far queue: timers, paced sends and tasks, in a 4-ary heap that knows where each event stands.

Event numbers are fixed (`timer_event`, `task_event`), each is pending at most once and can be moved or taken out.
Ordered by (time, sequence).
"""

from __future__ import annotations

import numpy as np

from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.world import FAR_SIZE, SEQUENCE, TASK_EVENTS, TIMERS, World


@kernel
def timer_event(world: World, flow: int, which: int) -> int:
    """The event of a flow's timer; number 0 is the engine's own, for paced sends."""
    return flow * world.knobs[TIMERS] + which


@kernel
def task_event(world: World, task: int) -> int:
    return world.knobs[TASK_EVENTS] + task


@kernel
def push_far(world: World, event: int, time: int) -> None:
    """Put an event, or move it if it is pending."""
    world.clock[SEQUENCE] += 1
    place = np.int64(world.far_place[event])
    earlier = True
    if place < 0:
        place = world.clock[FAR_SIZE]
        world.clock[FAR_SIZE] = place + 1
    else:
        earlier = time < world.far_time[event]
    world.far_time[event] = time
    world.far_order[event] = world.clock[SEQUENCE]
    if earlier:
        _rise(world, event, place)
    else:
        _sink(world, event, place)


@kernel
def drop_far(world: World, event: int) -> None:
    """Take an event out, if it is pending."""
    place = np.int64(world.far_place[event])
    if place < 0:
        return
    world.far_place[event] = -1
    size = world.clock[FAR_SIZE] - 1
    world.clock[FAR_SIZE] = size
    moved = np.int64(world.far_heap[size])
    if moved == event:
        return
    if place > 0 and _before(world, moved, np.int64(world.far_heap[(place - 1) >> 2])):
        _rise(world, moved, place)
    else:
        _sink(world, moved, place)


@kernel
def _before(world: World, a: int, b: int) -> bool:
    if world.far_time[a] != world.far_time[b]:
        return bool(world.far_time[a] < world.far_time[b])
    return bool(world.far_order[a] < world.far_order[b])


@kernel
def _rise(world: World, event: int, place: int) -> None:
    while place > 0:
        parent = (place - 1) >> 2
        above = np.int64(world.far_heap[parent])
        if _before(world, above, event):
            break
        world.far_heap[place] = above
        world.far_place[above] = place
        place = parent
    world.far_heap[place] = event
    world.far_place[event] = place


@kernel
def _sink(world: World, event: int, place: int) -> None:
    size = world.clock[FAR_SIZE]
    while True:
        child = 4 * place + 1
        if child >= size:
            break
        least = np.int64(world.far_heap[child])
        at = child
        for other in range(child + 1, min(child + 4, size)):
            rival = np.int64(world.far_heap[other])
            if _before(world, rival, least):
                least = rival
                at = other
        if _before(world, event, least):
            break
        world.far_heap[place] = least
        world.far_place[least] = place
        place = at
    world.far_heap[place] = event
    world.far_place[event] = place
