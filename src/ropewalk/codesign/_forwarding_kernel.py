"""Kernel: paths made to agree on what follows an incoming link. Nothing here knows fabrics or routes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel


@kernel
def agree(
    order: NDArray[np.int64],
    destination: NDArray[np.int32],
    link_start: NDArray[np.int64],
    link: NDArray[np.int32],
    link_src: NDArray[np.int32],
    link_dst: NDArray[np.int32],
    nodes: int,
    length: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Lay the paths one after the other into the tables of their destinations; return the links of all, as laid.

    `order` brings paths of one destination together. What a path has laid stays. A later path that would leave a node
    otherwise than the table says follows the table from there on, to its destination. One that would come back to a
    node that way is dropped: its `length` becomes 0, that of the others the number of their links.
    """
    after = np.full(len(link_src), -1, np.int32)
    valid_for = np.full(len(link_src), -1, np.int32)
    seen = np.full(nodes, -1, np.int64)
    laid = np.empty(len(link) + nodes, np.int32)
    used = 0
    for path in order:
        end = destination[path]
        if used + nodes > len(laid):
            grown = np.empty(2 * len(laid) + nodes, np.int32)
            grown[:used] = laid[:used]
            laid = grown
        at = link_start[path]
        current, begin, loops = link[at], used, False
        seen[link_src[current]] = path
        while True:
            laid[used] = current
            used += 1
            node = link_dst[current]
            if seen[node] == path:
                loops = True
                break
            seen[node] = path
            if node == end:
                break
            at += 1
            # Laid paths lead on to the end, so the path's own links are not asked for once it has left them.
            current = after[current] if valid_for[current] == end else link[at]
        if loops:
            used = begin
            length[path] = 0
            continue
        length[path] = used - begin
        for place in range(begin, used - 1):
            after[laid[place]] = laid[place + 1]
            valid_for[laid[place]] = end
    return laid[:used].copy()
