"""One way from a source to a destination, taken out of the flow that the source sends to everybody: the kernel."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.compiled import kernel


@kernel
def take_path(
    first: Ints,
    entering: Ints,
    tail: Ints,
    depth: Ints,
    flow: NDArray[Any],
    ends: Ints,
    most: Any,
    place: Ints,
    path: Ints,
) -> tuple[int, Any]:
    """Walk back from the destination to the source against the flow, `ends` being both, and take that way out of it.

    Arcs into vertex v are entering[first[v]:first[v + 1]]. Of several arcs with flow the one from the vertex nearest
    to the source is taken, then the fullest. `path` is filled with the arcs, last one first; the result is how many
    they are and how much they carry, at most `most`. A cycle on the way is taken out of the flow and forgotten, and so
    is flow that comes from nowhere, which only flows with rounding have. `place` holds -1 for every vertex.
    """
    source, destination = ends[0], ends[1]
    hops = 0
    v = destination
    place[v] = 0
    while v != source:
        best = -1
        for at in range(first[v], first[v + 1]):
            arc = entering[at]
            if flow[arc] > 0:
                u = tail[arc]
                if (
                    best < 0
                    or depth[u] < depth[tail[best]]
                    or (depth[u] == depth[tail[best]] and flow[arc] > flow[best])
                ):
                    best = arc
        if best < 0:
            place[v] = -1
            if hops == 0:
                return 0, most
            hops -= 1
            arc = path[hops]
            flow[arc] = flow[arc] - flow[arc]
            v = destination if hops == 0 else tail[path[hops - 1]]
            continue
        u = tail[best]
        path[hops] = best
        hops += 1
        if place[u] < 0:
            place[u] = hops
            v = u
            continue
        # The walk has come back to u: the arcs since then are a cycle, which carries nothing anywhere.
        again = place[u]
        least = flow[best]
        for at in range(again, hops):
            least = min(least, flow[path[at]])
        for at in range(again, hops):
            flow[path[at]] -= least
            if at < hops - 1:
                place[tail[path[at]]] = -1
        hops = again
        v = u
    amount = most
    for at in range(hops):
        amount = min(amount, flow[path[at]])
    for at in range(hops):
        flow[path[at]] -= amount
        place[tail[path[at]]] = -1
    place[destination] = -1
    return hops, amount
