"""Kernel: the fewest hops between all nodes of a graph, breadth first from each of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel


@kernel
def fewest_hops(start: NDArray[np.integer], neighbour: NDArray[np.integer]) -> NDArray[np.int64]:
    """Hops from each node to each other one; as many as there are nodes where there is no path.

    The neighbours of a node are `neighbour[start[node]:start[node + 1]]`.
    """
    nodes = len(start) - 1
    hops = np.full((nodes, nodes), nodes, np.int64)
    queue = np.empty(nodes, np.int64)
    for root in range(nodes):
        row = hops[root]
        row[root] = 0
        queue[0] = root
        head, tail = 0, 1
        while head < tail:
            node = queue[head]
            head += 1
            for at in range(start[node], start[node + 1]):
                further = neighbour[at]
                if row[further] == nodes:
                    row[further] = row[node] + 1
                    queue[tail] = further
                    tail += 1
    return hops
