"""Shortest ways between members, the kernel: through whatever forwards, never through another member.

Costs are added and compared, nothing else, so whole numbers that add up to less than 2^53 are treated exactly.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel


@kernel
def shortest_ways(
    first: Ints, leaving: Ints, head: Ints, members: Ints, forwarders: Ints, cost: Floats, between: Floats, last: Ints
) -> None:
    """Fill in the cost `between` any two members, and the `last` arc on the way from each member to each vertex.

    Arcs `leaving[first[v] : first[v + 1]]` leave vertex v. Only vertices that forward are passed through, so the
    nearest one is searched among those. Ties fall to the arc and the forwarder looked at first.
    """
    vertices = len(first) - 1
    distance = np.empty(vertices)
    waiting = np.empty(len(forwarders), np.int64)
    for row in range(len(members)):
        distance[:] = np.inf
        last[row, :] = -1
        waiting[:] = forwarders
        remaining = len(forwarders)
        vertex = members[row]
        distance[vertex] = 0
        while True:
            for place in range(first[vertex], first[vertex + 1]):
                arc = leaving[place]
                longer = distance[vertex] + cost[arc]
                if longer < distance[head[arc]]:
                    distance[head[arc]] = longer
                    last[row, head[arc]] = arc
            nearest = -1
            for place in range(remaining):
                if distance[waiting[place]] < np.inf and (
                    nearest < 0 or distance[waiting[place]] < distance[waiting[nearest]]
                ):
                    nearest = place
            if nearest < 0:
                break
            vertex = waiting[nearest]
            remaining -= 1
            waiting[nearest] = waiting[remaining]
        for column in range(len(members)):
            between[row, column] = distance[members[column]] if row != column else np.inf


@kernel
def write_way(last: Ints, tail: Ints, members: Ints, parent: int, child: int, way: Ints) -> int:
    """Write the arcs on the way from a member to another, the last one first; how many there are."""
    vertex = members[child]
    length = 0
    while vertex != members[parent]:
        arc = last[parent, vertex]
        way[length] = arc
        length += 1
        vertex = tail[arc]
    return length
