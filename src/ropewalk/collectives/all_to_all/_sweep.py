"""Sending every source's bytes a cheaper way, source by source, while prices follow loads: the kernel.

The price of an arc grows exponentially with how full it is. A source moves a part of its flow to the tree of cheapest
ways, as large a part as lowers the sum of all arcs' exponentials most (Frank and Wolfe 1956, one block of variables at
a time; the prices are those of Shahrokhi and Matula 1990).
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel

STEPS = 14
"""Halvings in the search for the part that moves: its last digit is far below what the next source changes."""


@kernel
def cheapest_tree(
    first: Ints, leaving: Ints, head: Ints, price: Floats, source: int, distance: Floats, parent: Ints, order: Ints
) -> int:
    """Fill in distances and the last arc of the cheapest way to each vertex; `order` is that of distances."""
    distance[:] = np.inf
    parent[:] = -1
    distance[source] = 0.0
    heap = [(0.0, source)]
    reached = 0
    while len(heap):
        far, v = heapq.heappop(heap)
        if far > distance[v]:
            continue
        order[reached] = v
        reached += 1
        for at in range(first[v], first[v + 1]):
            arc = leaving[at]
            there = far + price[arc]
            if there < distance[head[arc]]:
                distance[head[arc]] = there
                parent[head[arc]] = arc
                heapq.heappush(heap, (there, head[arc]))
    return reached


@kernel
def tree_load(
    tail: Ints, parent: Ints, order: Ints, reached: int, is_member: NDArray[np.bool_], below: Floats, load: Floats
) -> None:
    """What a tree puts on each arc when its root sends 1 to every member."""
    load[:] = 0.0
    below[:] = 0.0
    for at in range(reached - 1, 0, -1):
        v = order[at]
        if is_member[v]:
            below[v] += 1.0
        arc = parent[v]
        load[arc] = below[v]
        below[tail[arc]] += below[v]


@kernel
def paid_distances(
    first: Ints, leaving: Ints, head: Ints, price: Floats, sources: Ints, is_member: NDArray[np.bool_], vertices: int
) -> float:
    """The sum of the cheapest paths of all pairs."""
    distance, parent = np.empty(vertices), np.empty(vertices, np.int64)
    order = np.empty(vertices, np.int64)
    total = 0.0
    for source in sources:
        cheapest_tree(first, leaving, head, price, source, distance, parent, order)
        for v in range(vertices):
            if is_member[v]:
                total += distance[v]
    return total


@kernel
def sweep(
    first: Ints,
    leaving: Ints,
    tail: Ints,
    head: Ints,
    capacity: Floats,
    sources: Ints,
    is_member: NDArray[np.bool_],
    sharpness: float,
    flow: Floats,
    load: Floats,
) -> None:
    """Let every source move a part of its flow, changing `flow` and `load`."""
    vertices = len(first) - 1
    arcs = len(tail)
    price, tree, below = np.empty(arcs), np.empty(arcs), np.empty(vertices)
    distance, parent = np.empty(vertices), np.empty(vertices, np.int64)
    order = np.empty(vertices, np.int64)
    slope = np.empty(arcs)
    for row in range(len(sources)):
        fullest = (load / capacity).max()
        sharp = sharpness / fullest
        for arc in range(arcs):
            price[arc] = np.exp(sharp * (load[arc] / capacity[arc] - fullest)) / capacity[arc]
        reached = cheapest_tree(first, leaving, head, price, sources[row], distance, parent, order)
        tree_load(tail, parent, order, reached, is_member, below, tree)
        gain = 0.0
        for arc in range(arcs):
            slope[arc] = tree[arc] - flow[row, arc]
            gain += slope[arc] * price[arc]
        if gain >= 0.0:
            continue
        low, high = 0.0, 1.0
        for _ in range(STEPS):
            part = (low + high) / 2
            change = 0.0
            for arc in range(arcs):
                if slope[arc] != 0.0:
                    filled = (load[arc] + part * slope[arc]) / capacity[arc]
                    change += slope[arc] / capacity[arc] * np.exp(sharp * (filled - fullest))
            if change < 0.0:
                low = part
            else:
                high = part
        for arc in range(arcs):
            moved = low * slope[arc]
            flow[row, arc] += moved
            load[arc] += moved
