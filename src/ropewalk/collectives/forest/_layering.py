"""Layered forests, the kernels: hops from every root, and for every member who of its neighbours brings which trees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.compiled import kernel

UNREACHED = 1 << 30


@kernel
def hops_from_all(first: Ints, target: Ints, wide: NDArray[np.bool_]) -> Ints:
    """Hops from every member to every other one over wide arcs; arcs are sorted by tail."""
    n = len(first) - 1
    hops = np.full((n, n), UNREACHED, np.int64)
    queue = np.empty(n, np.int64)
    for root in range(n):
        hops[root, root] = 0
        queue[0] = root
        filled = 1
        read = 0
        while read < filled:
            u = queue[read]
            read += 1
            for arc in range(first[u], first[u + 1]):
                v = target[arc]
                if wide[arc] and hops[root, v] == UNREACHED:
                    hops[root, v] = hops[root, u] + 1
                    queue[filled] = v
                    filled += 1
    return hops


@kernel
def brought(member: int, before: NDArray[np.bool_], wanted: Ints, capacity: Ints) -> Ints:
    """How many trees of each root every arc into a member brings; the first row is -1 where they cannot all come.

    `before[root, arc]` says whether the arc starts where trees of that root have been earlier. Trees of one root come
    by one arc where that is possible; where arcs are full, trees of other roots are moved out of the way.
    """
    roots, arcs = before.shape
    amount = np.zeros((roots, arcs), np.int64)
    left = capacity.copy()
    choices = np.zeros(roots, np.int64)
    for root in range(roots):
        for arc in range(arcs):
            choices[root] += before[root, arc]
    for root in np.argsort(choices):
        if root == member:
            continue
        missing = wanted[root]
        while missing > 0:
            best = -1
            for arc in range(arcs):
                if before[root, arc] and left[arc] > 0 and (best < 0 or left[arc] > left[best]):
                    best = arc
            if best < 0:
                missing -= _moved_out_of_the_way(root, missing, before, amount, left)
                if missing > 0:
                    amount[0, :] = -1
                    return amount
                break
            some = min(missing, left[best])
            amount[root, best] += some
            left[best] -= some
            missing -= some
    return amount


@kernel
def _moved_out_of_the_way(root: int, missing: int, before: NDArray[np.bool_], amount: Ints, left: Ints) -> int:
    """Make room for trees of a root by moving trees of others from arc to arc; how many could be placed."""
    roots, arcs = before.shape
    placed = 0
    came_from = np.empty(arcs, np.int64)
    mover = np.empty(arcs, np.int64)
    queue = np.empty(arcs, np.int64)
    while placed < missing:
        came_from[:] = -2
        filled = 0
        for arc in range(arcs):
            if before[root, arc]:
                came_from[arc] = -1
                queue[filled] = arc
                filled += 1
        read = 0
        end = -1
        while read < filled and end < 0:
            arc = queue[read]
            read += 1
            if left[arc] > 0:
                end = arc
                break
            for other in range(roots):
                if amount[other, arc] == 0:
                    continue
                for to in range(arcs):
                    if before[other, to] and came_from[to] == -2:
                        came_from[to] = arc
                        mover[to] = other
                        queue[filled] = to
                        filled += 1
        if end < 0:
            return placed
        some = min(missing - placed, left[end])
        arc = end
        while came_from[arc] >= 0:
            some = min(some, amount[mover[arc], came_from[arc]])
            arc = came_from[arc]
        left[end] -= some
        arc = end
        while came_from[arc] >= 0:
            amount[mover[arc], arc] += some
            amount[mover[arc], came_from[arc]] -= some
            arc = came_from[arc]
        amount[root, arc] += some
        placed += some
    return placed
