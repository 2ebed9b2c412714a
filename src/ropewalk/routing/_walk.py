"""Kernels: distances towards destinations, and walks that follow them hop by hop.

Pairs come grouped by *root*, the node their walk ends at, so that one breadth-first search serves all of them. The
search goes backwards from the root and stops as soon as every source of the group is found: neighbour traffic on a
torus of thousands of hosts touches a few nodes for each root. Nothing here knows fabrics or routes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel

_MASK = 0xFFFFFFFF


@kernel
def murmur3(words: NDArray[np.uint32], seed: int) -> int:
    """MurmurHash3 (32 bits) of whole little-endian words: what switch simulators use for ECMP."""
    value = np.int64(seed) & _MASK
    for word in words:
        mixed = (np.int64(word) * 0xCC9E2D51) & _MASK
        mixed = ((mixed << 15) | (mixed >> 17)) & _MASK
        value ^= (mixed * 0x1B873593) & _MASK
        value = ((value << 13) | (value >> 19)) & _MASK
        value = (value * 5 + 0xE6546B64) & _MASK
    value ^= 4 * len(words)
    value = ((value ^ (value >> 16)) * 0x85EBCA6B) & _MASK
    value = ((value ^ (value >> 13)) * 0xC2B2AE35) & _MASK
    value ^= value >> 16
    return value  # type: ignore[return-value]


@kernel
def _search(root, sources, in_start, in_link, link_src, hosts, relay, distance, queue, wanted):  # type: ignore[no-untyped-def]
    """Label nodes with their distance to `root` until all sources are labelled; return how many nodes were."""
    missing = 0
    for source in sources:
        if not wanted[source]:
            wanted[source] = True
            missing += 1
    distance[root] = 0
    queue[0] = root
    head, tail = 0, 1
    while head < tail and missing > 0:
        node = queue[head]
        head += 1
        if node < hosts and node != root and not relay:
            continue
        for at in range(in_start[node], in_start[node + 1]):
            before = link_src[in_link[at]]
            if distance[before] < 0:
                distance[before] = distance[node] + 1
                queue[tail] = before
                tail += 1
                if wanted[before]:
                    missing -= 1
    for source in sources:
        wanted[source] = False
    return tail


@kernel
def measure(
    root: NDArray[np.int32],
    group_start: NDArray[np.int64],
    source: NDArray[np.int32],
    in_start: NDArray[np.int64],
    in_link: NDArray[np.int32],
    link_src: NDArray[np.int32],
    hosts: int,
    relay: bool,
    length: NDArray[np.int32],
) -> None:
    """Fill `length` with the hops from each source to its root; -1 where there is no way."""
    nodes = len(in_start) - 1
    distance = np.full(nodes, -1, np.int32)
    queue = np.empty(nodes, np.int32)
    wanted = np.zeros(nodes, np.bool_)
    for group in range(len(root)):
        first, last = group_start[group], group_start[group + 1]
        seen = _search(
            root[group], source[first:last], in_start, in_link, link_src, hosts, relay, distance, queue, wanted
        )
        for at in range(first, last):
            length[at] = distance[source[at]]
        for at in range(seen):
            distance[queue[at]] = -1


@kernel
def walk(
    root: NDArray[np.int32],
    group_start: NDArray[np.int64],
    source: NDArray[np.int32],
    in_start: NDArray[np.int64],
    in_link: NDArray[np.int32],
    out_start: NDArray[np.int64],
    out_link: NDArray[np.int32],
    link_src: NDArray[np.int32],
    link_dst: NDArray[np.int32],
    hosts: int,
    relay: bool,
    words: NDArray[np.uint32],
    node_seed: NDArray[np.uint32],
    position: NDArray[np.int64],
    link: NDArray[np.int32],
) -> None:
    """Write the links of each walk into `link` from `position` on.

    At every node the next hops are the links that come one hop nearer to the root, in the order of `out_link`. The
    walk takes the first of them, or, when there are `words`, the one that their hash with the node's seed picks.
    """
    nodes = len(in_start) - 1
    distance = np.full(nodes, -1, np.int32)
    queue = np.empty(nodes, np.int32)
    wanted = np.zeros(nodes, np.bool_)
    hashed = len(words) > 0
    for group in range(len(root)):
        end, first, last = root[group], group_start[group], group_start[group + 1]
        seen = _search(end, source[first:last], in_start, in_link, link_src, hosts, relay, distance, queue, wanted)
        for at in range(first, last):
            node, to = source[at], position[at]
            while node != end:
                nearer = distance[node] - 1
                choices = 0
                chosen = -1
                for out in range(out_start[node], out_start[node + 1]):
                    after = link_dst[out_link[out]]
                    if distance[after] == nearer and (relay or after >= hosts or after == end):
                        choices += 1
                        if chosen < 0:
                            chosen = out_link[out]
                            if not hashed:
                                break
                if choices > 1:
                    skip = murmur3(words[at], node_seed[node]) % choices
                    for out in range(out_start[node], out_start[node + 1]):
                        after = link_dst[out_link[out]]
                        if distance[after] == nearer and (relay or after >= hosts or after == end):
                            if skip == 0:
                                chosen = out_link[out]
                                break
                            skip -= 1
                link[to] = chosen
                to += 1
                node = link_dst[chosen]
        for at in range(seen):
            distance[queue[at]] = -1
