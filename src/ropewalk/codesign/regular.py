"""Regular networks as wirings: a ring, torus, circulant or hypercube that the ports of the servers can be joined to.

They are what people build without a model in mind. A search for cables begins with them as well, so what it finds is
never slower than any of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ropewalk.codesign.forwarding import consistent, disagreements
from ropewalk.codesign.link_loads import all_pairs
from ropewalk.codesign.planes import one_panel, patch_list
from ropewalk.errors import FabricError
from ropewalk.fabric import Builder, Fabric
from ropewalk.fabric.families import FAMILIES
from ropewalk.fabric.torus import Torus
from ropewalk.fabric.wiring import Wiring
from ropewalk.hardware import Cluster
from ropewalk.plans import Designed
from ropewalk.routing import ROUTERS, router_for
from ropewalk.routing.listed import listed

FAMILIES_OF_HOSTS = ("ring", "torus", "hypercube", "circulant")
"""Families in which servers are joined to servers, each taken in the size that fits."""


def regular_wirings(cluster: Cluster) -> dict[str, Designed]:
    """Regular networks over whose links the ports spread evenly and whose cables can be patched, each once.

    Routes are those that the network has where it is named itself; rings run in both directions.

    >>> from ropewalk.hardware import Ports, Servers
    >>> list(regular_wirings(Cluster((Servers(8, 8, "h100", 450e9, 4, 25e9),), Ports(4))))
    ['ring:8', 'circulant:8,1,2']
    """
    found: dict[str, Designed] = {}
    for network in _networks(cluster.equal.count):
        designed = _laid(network, cluster)
        if designed is not None and all(designed.wiring.cables != other.wiring.cables for other in found.values()):
            found[network.expression] = designed
    return found


def _networks(servers: int) -> Iterator[Builder]:
    for name in FAMILIES_OF_HOSTS:
        made = FAMILIES[name].sized(servers)
        if made is not None:
            yield made
    for side in range(2, servers // 2 + 1):
        if servers % side == 0 and side * side != servers:
            yield Torus((side, servers // side))


def _laid(network: Builder, cluster: Cluster) -> Designed | None:
    """The network made of cables, with all ports of every server; None where its links cannot have equally many."""
    ports, servers, fabric = cluster.ports, cluster.equal, network.build()
    sending = np.bincount(fabric.link_src, fabric.cables, fabric.nodes)
    if fabric.switches or ports.degree % int(sending.max()):
        return None
    each = ports.degree // int(sending.max())
    wiring = Wiring(
        servers=servers.count, degree=ports.degree, duplex=ports.duplex, bandwidth=servers.nic_bandwidth,
        latency=cluster.latency_s or 0.0, rings=(), cables=_cables(fabric, each, duplex=ports.duplex),
        degree_sums=0, degree_pairs=ports.degree,
    )  # fmt: skip
    try:
        (one_panel if ports.single_panel else patch_list)(wiring)
    except FabricError:
        return None
    routes = ROUTERS[router_for(fabric).name].make(0)(fabric, *all_pairs(servers.count))
    return Designed(wiring, listed(consistent(routes) if len(disagreements(routes)) else routes))


def _cables(fabric: Fabric, each: int, *, duplex: bool) -> tuple[tuple[int, int, int], ...]:
    ends = zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), fabric.cables.tolist(), strict=True)
    return tuple(sorted((a, b, each * count) for a, b, count in ends if a < b or not duplex))
