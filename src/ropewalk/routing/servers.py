"""Routing on servers of GPUs: through NVLink inside a server, and by any router of the network between servers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric, ServerFabric
from ropewalk.ragged import ranges
from ropewalk.routing.routes import Router, Routes, starts, unique_pairs


def between_servers(router: Router) -> Router:
    """A router that keeps traffic of a server inside it and routes the rest from NIC to NIC as `router` does.

    Traffic never leaves a server to come back, and between servers it passes no third GPU. Fabrics that are no
    `ServerFabric` are routed by `router` alone. Pairs of GPUs that share their NICs share a path of the network.

    >>> from ropewalk.fabric import LeafSpine, ServerGroup
    >>> from ropewalk.routing.tree import dmodk
    >>> fabric = ServerFabric(LeafSpine(4, 4, 4), (ServerGroup(2, 8, 300e9),)).build()
    >>> between_servers(dmodk)(fabric, np.array([0, 0]), np.array([7, 15])).hops
    array([2, 4])
    """

    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        if not isinstance(fabric.builder, ServerFabric):
            return router(fabric, src, dst)
        return _route(router, fabric, fabric.builder, *unique_pairs(fabric, src, dst))

    return route


def _route(
    router: Router, fabric: Fabric, cluster: ServerFabric, src: NDArray[np.int32], dst: NDArray[np.int32]
) -> Routes:
    network = cluster.network.build()
    server, port = cluster.server_of(), cluster.port_of()
    across = server[src] != server[dst]
    paths = np.ones(len(src), np.int64)
    inner: Routes | None = None
    row = np.zeros(0, np.int64)
    if across.any():
        ends = port[src[across]].astype(np.int32), port[dst[across]].astype(np.int32)
        inner = router(network, *ends)
        row = inner.find(*ends)
        paths[across] = np.diff(inner.path_start)[row]
    path_start = starts(paths)
    share = np.ones(path_start[-1])
    pair_of_path = np.repeat(np.arange(len(src)), paths)
    out = across[pair_of_path]
    # A path is: a first link of the GPU where it has one of its own, links of the network, a last link to the GPU.
    own = np.where(out, int(not cluster.at_the_port(network)), 1)
    hops = np.zeros(len(share), np.int64)
    path = np.zeros(0, np.int64)
    if inner is not None:
        path = ranges(inner.path_start[row], paths[across])
        share[out] = inner.share[path]
        hops[out] = inner.hops[path]
    link_start = starts(hops + 2 * own)
    link = np.empty(link_start[-1], np.int64)
    has_own = own == 1
    # NVLink of GPU g is link 2g; where NICs are nodes, the link to the NIC comes behind all NVLinks.
    first_own = np.where(out, 2 * cluster.gpus * int(cluster.has_nvlink), 0)[has_own]
    link[link_start[:-1][has_own]] = first_own + 2 * src[pair_of_path[has_own]].astype(np.int64)
    link[link_start[1:][has_own] - 1] = first_own + 2 * dst[pair_of_path[has_own]].astype(np.int64) + 1
    if inner is not None:
        into = ranges((link_start[:-1] + own)[out], hops[out])
        link[into] = inner.link[ranges(inner.link_start[path], hops[out])] + cluster.first_network_link(network)
    return Routes(fabric, src, dst, path_start, share, link_start, link.astype(np.int32))
