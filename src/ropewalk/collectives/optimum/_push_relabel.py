"""Push-relabel, the kernel: the highest active vertex first, with gaps and global relabelling.

Goldberg and Tarjan 1988; Cherkassky and Goldberg 1997. Only the first phase runs: it ends with the value of the flow
and the cut, and leaves stranded excess where it is, because nothing here needs the flow itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.compiled import kernel


@kernel
def push_relabel(
    first: Ints,
    head: Ints,
    mate: Ints,
    residual: NDArray[Any],
    source: int,
    sink: int,
    enough: int,
    sink_side: NDArray[np.bool_],
) -> Any:
    """Push as much as possible from source to sink, changing `residual`; fill in which vertices still reach the sink.

    The value of the flow is what has arrived. Once that is `enough`, nobody asks for more, nor for the cut.
    """
    n = len(first) - 1
    height = np.zeros(n, np.int64)
    excess = np.zeros(n, residual.dtype)
    current = first[:-1].copy()
    below = np.full(n, -1, np.int64)  # the next active vertex of the same height
    top = np.full(n + 1, -1, np.int64)  # the first active vertex of each height
    crowd = np.zeros(n + 1, np.int64)  # how many vertices have each height
    queue = np.empty(n, np.int64)
    for arc in range(first[source], first[source + 1]):
        amount = residual[arc]
        if amount > 0:
            residual[arc] = amount - amount
            residual[mate[arc]] += amount
            excess[head[arc]] += amount
    if excess[sink] >= enough:
        return excess[sink]
    work = 0
    patience = 6 * n + len(head)
    highest = 0
    stale = True
    while True:
        if stale:
            # Global relabelling: heights become true distances to the sink in the residual network.
            height[:] = n
            top[:] = -1
            crowd[:] = 0
            height[sink] = 0
            queue[0] = sink
            filled = 1
            read = 0
            highest = 0
            while read < filled:
                v = queue[read]
                read += 1
                crowd[height[v]] += 1
                for arc in range(first[v], first[v + 1]):
                    u = head[arc]
                    if height[u] == n and u != source and residual[mate[arc]] > 0:
                        height[u] = height[v] + 1
                        current[u] = first[u]
                        queue[filled] = u
                        filled += 1
                        if excess[u] > 0:
                            below[u] = top[height[u]]
                            top[height[u]] = u
                            highest = max(highest, height[u])
            work = 0
            stale = False
        while highest > 0 and top[highest] < 0:
            highest -= 1
        if highest == 0:
            break
        v = top[highest]
        top[highest] = below[v]
        while excess[v] > 0:
            arc = current[v]
            if arc < first[v + 1]:
                u = head[arc]
                if residual[arc] > 0 and height[v] == height[u] + 1:
                    amount = min(excess[v], residual[arc])
                    residual[arc] -= amount
                    residual[mate[arc]] += amount
                    if excess[u] == 0 and u != sink:
                        below[u] = top[height[u]]
                        top[height[u]] = u
                    excess[u] += amount
                    excess[v] -= amount
                    if u == sink and excess[sink] >= enough:
                        return excess[sink]
                else:
                    current[v] = arc + 1
                continue
            # Relabel: just above the lowest neighbour that still takes something.
            work += 12 + first[v + 1] - first[v]
            lowest = n
            for arc in range(first[v], first[v + 1]):
                if residual[arc] > 0 and height[head[arc]] < lowest:
                    lowest = height[head[arc]]
            old = height[v]
            crowd[old] -= 1
            if crowd[old] == 0:
                # A gap: nothing above an empty height can reach the sink any more.
                for u in range(n):
                    if old < height[u] < n:
                        crowd[height[u]] -= 1
                        height[u] = n
                for level in range(old, n):
                    top[level] = -1
                height[v] = n
                break
            if lowest + 1 >= n:
                height[v] = n
                break
            height[v] = lowest + 1
            crowd[lowest + 1] += 1
            current[v] = first[v]
            highest = max(highest, lowest + 1)
        if work > patience:
            stale = True
    # Who still reaches the sink: one last search, because heights are only lower bounds.
    sink_side[:] = False
    sink_side[sink] = True
    queue[0] = sink
    filled = 1
    read = 0
    while read < filled:
        v = queue[read]
        read += 1
        for arc in range(first[v], first[v + 1]):
            u = head[arc]
            if not sink_side[u] and residual[mate[arc]] > 0:
                sink_side[u] = True
                queue[filled] = u
                filled += 1
    return excess[sink]


@kernel
def first_short_sink(
    first: Ints,
    head: Ints,
    mate: Ints,
    capacity: Ints,
    source: int,
    sinks: Ints,
    need: int,
    sink_side: NDArray[np.bool_],
) -> tuple[int, int]:
    """Flows to one sink after the other, until one is below `need`: its position and flow, or -1 and `need`."""
    residual = capacity.copy()
    for index in range(len(sinks)):
        residual[:] = capacity
        value = push_relabel(first, head, mate, residual, source, sinks[index], need, sink_side)
        if value < need:
            return index, value
    return -1, need
