"""Parts of the packet engine called one by one: each function here runs a compiled function on a world from Python.

All of them go through one compiled door. Handing a world over costs a second of compilation wherever it is done.
"""

from __future__ import annotations

import numpy as np

from ropewalk.pointer import point_at
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet import buffer, dcqcn, dcqcn_paper
from ropewalk.sim.packet.far import drop_far, push_far
from ropewalk.sim.packet.near import first_near, pop_near, push_near
from ropewalk.sim.packet.world import CURSOR, FAR_SIZE, NOW, World

NEAR_PUSH, NEAR_POP, MOVE_CURSOR, FAR_PUSH, FAR_DROP, FAR_POP = range(6)
TAKE_IN, LET_OUT, WANTS_PAUSE, WANTS_RESUME, THRESHOLD = range(6, 11)
DCQCN_MARK, DCQCN_RATE, PAPER_MARK, PAPER_RATE, PAPER_ECHO = range(11, 16)


@kernel
def _do(owned: World, what: int, a: int, b: int, c: int) -> float:
    world = point_at(owned)
    if what <= FAR_POP:
        return float(_in_queues(world, what, a, b))
    if what <= THRESHOLD:
        return float(_in_buffer(world, what, a, b, c))
    return _in_dcqcn(world, what, a, b)


@kernel
def _in_queues(world: World, what: int, event: int, time: int) -> int:
    if what == NEAR_PUSH:
        push_near(world, event, time)
    elif what == NEAR_POP:
        slot = first_near(world)
        return np.int64(-1) if slot < 0 else pop_near(world, slot)
    elif what == MOVE_CURSOR:
        world.clock[CURSOR] = event
    elif what == FAR_PUSH:
        push_far(world, event, time)
    elif what == FAR_DROP:
        drop_far(world, event)
    else:
        if world.clock[FAR_SIZE] == 0:
            return np.int64(-1)
        first = np.int64(world.far_heap[0])
        drop_far(world, first)
        return first
    return np.int64(0)


@kernel
def _in_buffer(world: World, what: int, came: int, goes: int, size: int) -> int:
    if what == TAKE_IN:
        return np.int64(buffer.admit(world, came, goes, 1, size))
    if what == LET_OUT:
        buffer.release(world, came, 1, size)
        return np.int64(0)
    if what == WANTS_PAUSE:
        return np.int64(buffer.should_pause(world, came, 1))
    if what == WANTS_RESUME:
        return np.int64(buffer.should_resume(world, came, 1))
    return np.int64(buffer.threshold(world, came))


@kernel
def _in_dcqcn(world: World, what: int, time: int, size: int) -> float:
    """Marks for flow 0, and the rate that a packet of it finds which is sent now."""
    world.clock[NOW] = time
    world.packets[0].mark = 1
    world.packets[0].size = size
    if what == DCQCN_MARK:
        dcqcn.on_ack(world, 0, 0)
    elif what == DCQCN_RATE:
        dcqcn.on_sent(world, 0)
    elif what == PAPER_MARK:
        dcqcn_paper.on_ack(world, 0, 0)
    elif what == PAPER_RATE:
        dcqcn_paper.on_sent(world, 0, 0)
    else:
        dcqcn_paper.on_data(world, 0, 0)
        return float(world.packets[0].mark)
    return float(world.flows[0].rate)


def near_push(world: World, event: int, time: int) -> None:
    _do(world, NEAR_PUSH, event, time, 0)


def near_pop(world: World) -> int:
    return int(_do(world, NEAR_POP, 0, 0, 0))


def move_cursor(world: World, slot: int) -> None:
    _do(world, MOVE_CURSOR, slot, 0, 0)


def far_push(world: World, event: int, time: int) -> None:
    _do(world, FAR_PUSH, event, time, 0)


def far_drop(world: World, event: int) -> None:
    _do(world, FAR_DROP, event, 0, 0)


def far_pop(world: World) -> int:
    return int(_do(world, FAR_POP, 0, 0, 0))


def take_in(world: World, came: int, goes: int, size: int) -> bool:
    return bool(_do(world, TAKE_IN, came, goes, size))


def let_out(world: World, came: int, size: int) -> None:
    _do(world, LET_OUT, came, 0, size)


def wants_pause(world: World, came: int) -> bool:
    return bool(_do(world, WANTS_PAUSE, came, 0, 0))


def wants_resume(world: World, came: int) -> bool:
    return bool(_do(world, WANTS_RESUME, came, 0, 0))


def threshold_of(world: World, came: int) -> int:
    return int(_do(world, THRESHOLD, came, 0, 0))


def dcqcn_mark(world: World, time: int) -> None:
    """An acknowledgement with a mark reaches the sender of flow 0."""
    _do(world, DCQCN_MARK, time, 0, 0)


def dcqcn_rate(world: World, time: int) -> float:
    """The rate of flow 0, as a packet that is sent now finds it."""
    return float(_do(world, DCQCN_RATE, time, 0, 0))


def paper_mark(world: World, time: int) -> None:
    _do(world, PAPER_MARK, time, 0, 0)


def paper_rate(world: World, time: int, size: int) -> float:
    return float(_do(world, PAPER_RATE, time, size, 0))


def paper_echo(world: World, time: int) -> int:
    """Whether a marked packet that reaches the receiver now is notified to the sender."""
    return int(_do(world, PAPER_ECHO, time, 0, 0))
