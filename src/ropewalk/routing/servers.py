"""Routing on servers of GPUs: through NVLink inside a server, and by any router of the network between servers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric, RailSwitches, ServerFabric
from ropewalk.ragged import ranges
from ropewalk.routing.routes import Router, Routes, starts, unique_pairs


def between_servers(router: Router) -> Router:
    """A router that keeps traffic of a server inside it and routes the rest from NIC to NIC as `router` does.

    Traffic never leaves a server to come back, and between servers it passes no third GPU; between rails that nothing
    joins it passes one, by NVLink. Fabrics that are no `ServerFabric` are routed by `router` alone. Pairs of GPUs that
    share their NICs share a path of the network.

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
    entry, leave = _crossing(cluster, src, dst)
    paths = np.ones(len(src), np.int64)
    inner: Routes | None = None
    row = np.zeros(0, np.int64)
    if across.any():
        ends = port[entry[across]].astype(np.int32), port[leave[across]].astype(np.int32)
        inner = router(network, *ends)
        row = inner.find(*ends)
        paths[across] = np.diff(inner.path_start)[row]
    path_start = starts(paths)
    share = np.ones(path_start[-1])
    pair_of_path = np.repeat(np.arange(len(src)), paths)
    out = across[pair_of_path]
    hops = np.zeros(len(share), np.int64)
    path = np.zeros(0, np.int64)
    if inner is not None:
        path = ranges(inner.path_start[row], paths[across])
        share[out] = inner.share[path]
        hops[out] = inner.hops[path]
    ends_of_path = _Ends(*(gpu[pair_of_path].astype(np.int64) for gpu in (src, entry, leave, dst)))
    before, after = ends_of_path.links(cluster, out, nic_is_a_node=not cluster.at_the_port(network))
    first, last = (sum(np.asarray(link >= 0, np.int64) for link in part) for part in (before, after))
    link_start = starts(first + hops + last)
    link = np.empty(link_start[-1], np.int64)
    _fill(link, link_start[:-1], before)
    _fill(link, link_start[1:] - last, after)
    if inner is not None:
        into = ranges((link_start[:-1] + first)[out], hops[out])
        link[into] = inner.link[ranges(inner.link_start[path], hops[out])] + cluster.first_network_link(network)
    return Routes(fabric, src, dst, path_start, share, link_start, link.astype(np.int32))


@dataclass(frozen=True)
class _Ends:
    """The GPUs at which paths start, enter the network, leave it and end."""

    src: NDArray[np.int64]
    entry: NDArray[np.int64]
    leave: NDArray[np.int64]
    dst: NDArray[np.int64]

    def links(
        self, cluster: ServerFabric, out: NDArray[np.bool_], *, nic_is_a_node: bool
    ) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
        """Links before and after those of the network, in travel order, -1 where a path has none of that kind.

        NVLink of GPU g is link 2g; where NICs are nodes, the link to the NIC comes behind all NVLinks.
        """
        nic = 2 * cluster.gpus * int(cluster.has_nvlink)
        relayed, handed_on = out & (self.entry != self.src), out & (self.leave != self.dst)
        to_nic = out & nic_is_a_node
        before = [(relayed | ~out, 2 * self.src), (relayed, 2 * self.entry + 1), (to_nic, nic + 2 * self.entry)]
        after = [(to_nic, nic + 2 * self.leave + 1), (handed_on, 2 * self.leave), (handed_on | ~out, 2 * self.dst + 1)]
        taken = [[np.where(there, link, -1) for there, link in part] for part in (before, after)]
        return taken[0], taken[1]


def _crossing(
    cluster: ServerFabric, src: NDArray[np.int32], dst: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The GPUs at which traffic enters and leaves the network: its own ends, unless nothing joins their rails.

    Then it goes by NVLink to a GPU on the rail of its destination first, as in the rail-only paper and NCCL's PXN;
    where the server has no such rail, the server of the destination has that of the source.
    """
    if not isinstance(cluster.network, RailSwitches):
        return src, dst
    server, place, sizes = cluster.server_of(), cluster.place_of(), cluster.gpus_of_server()
    shared, first = sizes // cluster.nics_of_server(), np.cumsum(sizes) - sizes
    nic = place // shared[server]

    def beside(gpu: NDArray[np.int32], far: NDArray[np.int32]) -> NDArray[np.int32]:
        """The GPU in the server of one that is on the rail of the other."""
        at = server[gpu]
        return np.asarray(first[at] + nic[far] * shared[at] + place[gpu] % shared[at], np.int32)

    at_source = nic[dst] < cluster.nics_of_server()[server[src]]
    other = (nic[src] != nic[dst]) & (server[src] != server[dst])
    entry = np.where(other & at_source, beside(src, dst), src).astype(np.int32)
    leave = np.where(other & ~at_source, beside(dst, src), dst).astype(np.int32)
    return entry, leave


def _fill(link: NDArray[np.int64], at: NDArray[np.int64], columns: list[NDArray[np.int64]]) -> None:
    """Write the links that exist one behind the other, from a place of each path on."""
    at = at.copy()
    for column in columns:
        there = column >= 0
        link[at[there]] = column[there]
        at += there
