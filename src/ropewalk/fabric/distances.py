"""Distances between hosts in links, exactly: from one host where all see the same fabric, else for all pairs at once.

For all pairs, the sets of hosts that have seen a node are kept as bits, 64 to a word, and grown by one link per round:
a round is one pass over the links, whatever the number of pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric.bcube import BCube
from ropewalk.fabric.circulant import Circulant
from ropewalk.fabric.fabric import Fabric
from ropewalk.fabric.fat_tree import FatTree
from ropewalk.fabric.hypercube import Hypercube
from ropewalk.fabric.leaf_spine import LeafSpine
from ropewalk.fabric.switch import IdealSwitch
from ropewalk.fabric.torus import Ring, Torus
from ropewalk.progress import watcher

ALIKE = (BCube, Circulant, FatTree, Hypercube, IdealSwitch, LeafSpine, Ring, Torus)
"""Builders whose hosts all see the same fabric, so that the distances from one host are those of all."""
MOST_HOSTS = 4096
"""Hosts of an irregular fabric up to which all pairs are measured."""
_WORDS_AT_ONCE = 1 << 22


def host_distances(fabric: Fabric) -> tuple[int | None, float | None]:
    """Diameter and mean distance between different hosts of a connected fabric, in links."""
    if fabric.hosts < 2:
        return None, None
    if isinstance(fabric.builder, ALIKE):
        far = _from_first(fabric)
        return int(far.max()), float(far.sum()) / (fabric.hosts - 1)
    if fabric.hosts > MOST_HOSTS:
        return None, None
    sources = np.arange(fabric.hosts)
    at_once = max(64, _WORDS_AT_ONCE // max(1, fabric.links) * 64)
    diameter, total = 0, 0
    for first in range(0, len(sources), at_once):
        longest, sum_of_distances = _spread(fabric, sources[first : first + at_once])
        diameter, total = max(diameter, longest), total + sum_of_distances
    return diameter, total / (len(sources) * (fabric.hosts - 1))


def _from_first(fabric: Fabric) -> NDArray[np.int64]:
    """Links between host 0 and every host, each a node further than the one from which a walk in breadth found it.

    Pieces of these paths that double in length are added up, so that a path of a million links takes 20 passes.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    shape = (fabric.nodes, fabric.nodes)
    step = csr_array((np.ones(fabric.links, np.int8), (fabric.link_src, fabric.link_dst)), shape=shape)
    _, found_from = breadth_first_order(step, 0)
    back = np.where(found_from < 0, 0, found_from)
    far = (np.arange(fabric.nodes) != 0).astype(np.int64)
    while back.any():
        far += far[back]
        back = back[back]
    return np.asarray(far[: fabric.hosts], np.int64)


def _spread(fabric: Fabric, sources: NDArray[np.int64]) -> tuple[int, int]:
    """Longest distance from the sources to any host, and the sum of all those distances."""
    start, by_node = fabric.incoming()
    neighbour = fabric.link_src[by_node]
    entered = np.flatnonzero(np.diff(start) > 0)
    seen = np.zeros((fabric.nodes, (len(sources) + 63) // 64), np.uint64)
    place = np.arange(len(sources))
    seen[sources, place // 64] = np.uint64(1) << (place % 64).astype(np.uint64)
    target, found = len(sources) * fabric.hosts, len(sources)
    rounds, total = 0, 0
    tell = watcher()
    while found < target:
        tell(found, target, "measuring distances")
        seen[entered] |= np.bitwise_or.reduceat(seen[neighbour], start[entered], axis=0)
        rounds += 1
        now = int(np.bitwise_count(seen[: fabric.hosts]).sum())
        if now == found and rounds > fabric.nodes:
            raise AssertionError("distances are asked of connected fabrics only")
        total += rounds * (now - found)
        found = now
    return rounds, total
