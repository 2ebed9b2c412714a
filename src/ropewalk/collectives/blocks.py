"""Blocks of members that sit together: on one server, joined by dedicated links, or behind the same switch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ropewalk.collectives.optimum.network import Network


def blocks_of(network: Network) -> NDArray[np.int64] | None:
    """Ranks as a table with a row for each block; None where there are no two blocks of equal size with two members.

    Where the fabric says nothing of servers, members that are joined without a switch are a block; where none are, a
    member belongs to the switch that it has the widest way to.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import Dgx, Ring
    >>> blocks_of(network_of(Dgx(2, gpus=3).build())).tolist()
    [[0, 1, 2], [3, 4, 5]]
    >>> blocks_of(network_of(Ring(4).build())) is None
    True
    """
    home = _homes(network)
    if home is None:
        return None
    rows: dict[int, list[int]] = {}
    for rank, block in enumerate(home):
        rows.setdefault(block, []).append(rank)
    sizes = {len(row) for row in rows.values()}
    if len(rows) < 2 or len(sizes) > 1 or sizes == {1}:
        return None
    return np.array(list(rows.values()), np.int64)


def _homes(network: Network) -> list[int] | None:
    """A number for every member that those of the same block share."""
    fabric, members = network.fabric, network.members
    if fabric.server is not None:
        return [int(server) for server in fabric.server[members]]
    direct = network.is_member[fabric.link_src] & network.is_member[fabric.link_dst]
    if direct.any():
        ends = (fabric.link_src[direct], fabric.link_dst[direct])
        graph = csr_array((np.ones(int(direct.sum())), ends), shape=(fabric.nodes, fabric.nodes))
        _, part = connected_components(graph, directed=False)
        return [int(number) for number in part[members]]
    widest = _widest_switch(network)
    if any(member not in widest for member in members.tolist()):
        return None
    return [widest[member] for member in members.tolist()]


def _widest_switch(network: Network) -> dict[int, int]:
    """For every host the switch that most of its bandwidth leads to, the first one among equals."""
    fabric = network.fabric
    wide: dict[int, dict[int, float]] = {}
    for u, v, speed in zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), fabric.bandwidth.tolist(), strict=True):
        if u < fabric.hosts <= v:
            ways = wide.setdefault(u, {})
            ways[v] = ways.get(v, 0.0) + speed
    return {host: max(sorted(ways), key=ways.__getitem__) for host, ways in wide.items()}
