"""How much a breadth-first schedule has to keep, before it is made: it writes down all shortest paths of all pairs."""

from __future__ import annotations

import numpy as np

from ropewalk.collectives.optimum.network import Network

PATH_BYTES = 900.0
"""Of memory for each shortest path between two members, measured on leaf-spines; `tests/unit/test_room.py` holds it."""
SAMPLE = 8
"""Members from which paths are counted."""


def paths_of(network: Network) -> float:
    """Shortest paths between all pairs of members, counted from a sample of them.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import LeafSpine
    >>> paths_of(network_of(LeafSpine(2, 3, 2).build()))  # each of 4 hosts: one path to its neighbour, 3 to two others
    28.0
    """
    members = network.members
    sample = members[:: max(1, len(members) // SAMPLE)]
    return float(sum(_paths_from(network, int(host), members) for host in sample)) / len(sample) * len(members)


def _paths_from(network: Network, host: int, members: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """Shortest paths from a member to all others, by a walk in breadth."""
    fabric = network.fabric
    src, dst = fabric.link_src, fabric.link_dst
    count, reached = np.zeros(fabric.nodes), np.zeros(fabric.nodes, bool)
    count[host], reached[host] = 1.0, True
    front = reached.copy()
    while front.any():
        used = front[src] & ~reached[dst]
        found = np.bincount(dst[used], weights=count[src[used]], minlength=fabric.nodes)
        front = found > 0
        count[front], reached[front] = found[front], True
    return float(count[members].sum() - 1.0)


def bytes_of(network: Network) -> float:
    """Memory that the schedule takes while it is made."""
    return paths_of(network) * PATH_BYTES
