"""The cables of the network between servers, told apart from what is inside them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric

_NIC = re.compile(r"(?:nic|net)[0-9]+\.[0-9]+")
_SPARE = re.compile(r"spare[0-9]+")


@dataclass(frozen=True)
class Cabling:
    """Cables that join servers and switches, one row for all equal cables between two nodes.

    >>> from ropewalk.fabric import LeafSpine
    >>> found = cabling_of(LeafSpine(2, 2, 4).build())
    >>> int(found.count.sum()), int(found.count @ found.server_ends)
    (12, 8)
    """

    node: NDArray[np.int64]
    """Rows of two: the nodes at both ends."""
    server_end: NDArray[np.bool_]
    """Rows of two: is this end in a server?"""
    count: NDArray[np.int64]
    bandwidth: NDArray[np.float64]
    """Bytes/s of one cable, one direction."""

    @property
    def server_ends(self) -> NDArray[np.int64]:
        """Ends of a cable that are in servers: 0, 1 or 2."""
        return np.asarray(self.server_end.sum(axis=1), np.int64)

    def bandwidth_of_servers(self) -> float:
        """Bytes/s that all servers together can send into the network."""
        return float((self.count * self.server_ends * self.bandwidth).sum())

    def ports_of_switches(self) -> dict[int, int]:
        """Switches by the ports of them that are in use."""
        ends = self.node[~self.server_end]
        ports = np.bincount(ends, weights=np.repeat(self.count[:, None], 2, axis=1)[~self.server_end])
        sizes, switches = np.unique(ports[ports > 0].astype(int), return_counts=True)
        return dict(zip(sizes.tolist(), switches.tolist(), strict=True))


def cabling_of(fabric: Fabric) -> Cabling:
    """The cables outside the servers. Cables to ports that no NIC uses are not there: nobody would buy them."""
    port, inside = _server_side(fabric)
    spare = np.array([_SPARE.fullmatch(name) is not None for name in fabric.node_names])
    src, dst = fabric.link_src.astype(np.int64), fabric.link_dst.astype(np.int64)
    outside = ~(inside[src] | inside[dst] | spare[src] | spare[dst])
    src, dst, cables = src[outside], dst[outside], fabric.cables[outside].astype(np.int64)
    speed = fabric.bandwidth[outside] / cables
    # A cable is two links, one in each direction; one that carries one direction is a cable, too.
    low, high = np.minimum(src, dst), np.maximum(src, dst)
    rows, row = np.unique(np.column_stack([low, high, speed]), axis=0, return_inverse=True)
    forth, back = (np.bincount(row, weights=cables * way, minlength=len(rows)) for way in (src < dst, src > dst))
    node = rows[:, :2].astype(np.int64)
    return Cabling(node, port[node], np.maximum(forth, back).astype(np.int64), rows[:, 2])


def _server_side(fabric: Fabric) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The nodes at which servers are plugged in, and those that are wholly inside servers.

    Where NICs are nodes they are plugged in, and all that connects to GPUs without them is inside. Otherwise GPUs are
    plugged in, and switches that only GPUs of one server share are inside.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    host = np.arange(fabric.nodes) < fabric.hosts
    nic = np.array([_NIC.fullmatch(name) is not None for name in fabric.node_names])
    src, dst = fabric.link_src, fabric.link_dst
    if nic.any():
        kept = ~(nic[src] | nic[dst])
        graph = csr_array((np.ones(int(kept.sum())), (src[kept], dst[kept])), shape=(fabric.nodes, fabric.nodes))
        _, part = connected_components(graph, directed=False)
        return nic, np.isin(part, part[: fabric.hosts]) & ~nic
    server = np.arange(fabric.hosts) if fabric.server is None else fabric.server
    owner = np.concatenate([server, np.full(fabric.switches, -1)]).astype(np.int64)
    least, most = np.full(fabric.nodes, np.iinfo(np.int64).max), np.full(fabric.nodes, -1)
    np.minimum.at(least, src, owner[dst])
    np.maximum.at(most, src, owner[dst])
    return host, ~host & (least == most) & (most >= 0) & (fabric.server is not None)
