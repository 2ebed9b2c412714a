"""The cheapest tree out of a root, the kernel: Chu-Liu 1965 and Edmonds 1967, on a full table of costs.

Written as Gabow, Galil, Spencer and Tarjan 1986 grow it: a path runs backwards, each step along the cheapest arc into
its end; where it bites into itself, the cycle becomes one vertex, whose arcs in are counted by what they cost more
than the arc of the cycle they replace; where it meets what the root is known to reach, all of it is reached. Every step
looks at one column or merges one vertex, so the whole takes time in proportion to the table. Ties fall to the vertex
with the lowest number, so that the same costs always give the same tree.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel


@kernel
def cheapest_arborescence(cost: Floats, root: int, parent: Ints) -> float:
    """Fill in the parent of every vertex (-1 at the root) of the cheapest tree out of the root; what it costs.

    `cost[u, v]` is that of the arc from u to v. Every vertex must be reachable from every other one.
    """
    n = len(cost)
    most = 2 * n
    table = np.empty((most, most))  # what is left of the cheapest arc between two, cycles being one
    table[:n, :n] = cost
    source = np.empty((most, most), np.int64)  # the vertex that this arc leaves …
    target = np.empty((most, most), np.int64)  # … and the one that it enters
    for u in range(n):
        for v in range(n):
            source[u, v] = u
            target[u, v] = v
    inside = np.full(most, -1, np.int64)  # the cycle that a vertex has become part of
    came_from = np.full(most, -1, np.int64)
    went_to = np.full(most, -1, np.int64)
    paid = np.empty(most)
    on_path = np.zeros(most, np.bool_)
    reached = np.zeros(most, np.bool_)
    alive = np.zeros(most, np.bool_)
    alive[:n] = True
    reached[root] = True
    path = np.empty(most, np.int64)
    count = n
    for start in range(n):
        outermost = start
        while inside[outermost] >= 0:
            outermost = inside[outermost]
        if reached[outermost]:
            continue
        path[0] = outermost
        on_path[outermost] = True
        length = 1
        while True:
            end = path[length - 1]
            best = -1
            for u in range(count):
                if alive[u] and u != end and (best < 0 or table[u, end] < table[best, end]):
                    best = u
            paid[end] = table[best, end]
            came_from[end] = source[best, end]
            went_to[end] = target[best, end]
            if reached[best]:
                break
            if not on_path[best]:
                path[length] = best
                on_path[best] = True
                length += 1
                continue
            table[:count, count] = np.inf
            table[count, :count] = np.inf
            while True:
                length -= 1
                part = path[length]
                inside[part] = count
                alive[part] = False
                on_path[part] = False
                for u in range(count):
                    if table[u, part] - paid[part] < table[u, count]:
                        table[u, count] = table[u, part] - paid[part]
                        source[u, count] = source[u, part]
                        target[u, count] = target[u, part]
                    if table[part, u] < table[count, u]:
                        table[count, u] = table[part, u]
                        source[count, u] = source[part, u]
                        target[count, u] = target[part, u]
                if part == best:
                    break
            alive[count] = True
            on_path[count] = True
            path[length] = count
            length += 1
            count += 1
        for place in range(length):
            reached[path[place]] = True
            on_path[path[place]] = False
    # A cycle is entered once: the arc into it replaces those into all that lie around the vertex it enters.
    replaced = np.zeros(most, np.bool_)
    for cycle in range(count - 1, n - 1, -1):
        if replaced[cycle]:
            continue
        part = went_to[cycle]
        while part != cycle:
            came_from[part] = came_from[cycle]
            went_to[part] = went_to[cycle]
            replaced[part] = True
            part = inside[part]
    total = 0.0
    for v in range(n):
        parent[v] = came_from[v]
        if v != root:
            total += cost[came_from[v], v]
    parent[root] = -1
    return total


@kernel
def cheapest_spanning_tree(cost: Floats, parent: Ints) -> float:
    """The same on a table that is equal both ways, where every root has the same tree: Prim 1957, out of vertex 0."""
    n = len(cost)
    joined = np.zeros(n, np.bool_)
    joined[0] = True
    parent[:] = 0
    parent[0] = -1
    least = cost[0].copy()
    total = 0.0
    for _ in range(1, n):
        best = -1
        for v in range(n):
            if not joined[v] and (best < 0 or least[v] < least[best]):
                best = v
        total += least[best]
        joined[best] = True
        for v in range(n):
            if not joined[v] and cost[best, v] < least[v]:
                least[v] = cost[best, v]
                parent[v] = best
    return total
