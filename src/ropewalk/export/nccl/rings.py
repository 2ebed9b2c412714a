"""Rings inside a program: which Hamiltonian cycles its chunks travel around, if they do.

NCCL's ring algorithm sends every chunk around one cycle of all ranks, and gives every channel an equal part of the
buffer. A program is such a set of rings when each chunk keeps to one cycle; the chunks of a cycle are its share.
"""

from __future__ import annotations

from collections import Counter
from math import gcd

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives import Program
from ropewalk.collectives.schedule import Schedule
from ropewalk.errors import ProgramError

MOST_CHANNELS = 64
"""Channels that NCCL can have."""

Order = tuple[int, ...]


def ring_orders(program: Program) -> list[Order]:
    """The rings of a program, one for each channel, each from rank 0 on; a ring with twice the chunks is there twice.

    >>> from ropewalk.collectives import ring_all_reduce
    >>> ring_orders(ring_all_reduce([[0, 1, 3, 2]], both_ways=True))
    [(0, 1, 3, 2), (0, 2, 3, 1)]
    """
    chunks, src, dst = _moves(program)
    begins = np.searchsorted(chunks, np.arange(program.chunks + 1))
    share: Counter[Order] = Counter()
    for chunk in range(program.chunks):
        mine = slice(begins[chunk], begins[chunk + 1])
        share[_cycle_of(program, chunk, src[mine].tolist(), dst[mine].tolist())] += 1
    common = gcd(*share.values())
    orders = [order for order, count in share.items() for _ in range(count // common)]
    if len(orders) > MOST_CHANNELS:
        raise ProgramError(
            f"{program.name} needs {len(orders)} channels, NCCL has {MOST_CHANNELS}: use fewer rings, or equal shares"
        )
    return orders


def channel_speed(schedule: Schedule, orders: list[Order]) -> float:
    """GB/s that every channel has when all rings run at once: an equal part of the link that most of them cross."""
    src = np.concatenate([np.array(order) for order in orders])
    dst = np.concatenate([np.roll(order, -1) for order in orders])
    routes = schedule.routes
    crossed = routes.link_bytes(routes.find(schedule.hosts[src], schedule.hosts[dst]), np.ones(len(src)))
    used = crossed > 0
    return float((routes.fabric.bandwidth[used] / crossed[used]).min() / 1e9)


def _moves(program: Program) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Every (chunk, from, to) of the program once, sorted by chunk."""
    found = []
    for step in program.rounds:
        start, ids = step.chunks()
        carried = np.diff(start)
        src, dst = np.repeat(step.pattern.src, carried), np.repeat(step.pattern.dst, carried)
        found.append(np.column_stack([ids, src, dst]).astype(np.int64))
    moves = np.unique(np.concatenate([*found, np.zeros((0, 3), np.int64)]), axis=0)
    return moves[:, 0], moves[:, 1], moves[:, 2]


def _cycle_of(program: Program, chunk: int, src: list[int], dst: list[int]) -> Order:
    """The cycle that a chunk travels around; of an all-gather or a chain it may leave out the last link."""
    following: dict[int, int] = {}
    for here, there in zip(src, dst, strict=True):
        if here in following:
            raise ProgramError(
                f"{program.name} is not a ring: chunk {chunk} goes from rank {here} to {following[here]} and to "
                f"{there}; "
                "NCCL takes rings only, export it as an MSCCL++ plan instead"
            )
        following[here] = there
    begin = next(iter(set(src) - set(dst)), 0)  # the open end of a path, or anywhere on a cycle
    order = [begin]
    while order[-1] in following and len(order) <= program.ranks:
        order.append(following[order[-1]])
    closed = len(order) > 1 and order[-1] == begin
    visited = order[:-1] if closed else order
    if len(visited) != program.ranks or len(set(visited)) != program.ranks or len(following) > program.ranks:
        raise ProgramError(
            f"{program.name} is not a ring: chunk {chunk} passes {len(set(visited))} of {program.ranks} ranks one "
            "after "
            "the other; NCCL takes rings only, export it as an MSCCL++ plan instead"
        )
    at = visited.index(0)
    return tuple(visited[at:] + visited[:at])
