"""What sums and transfers put on the links of a network, a byte at a time: the network as the estimate sees it.

Every network is seen the same way, an ideal switch, a fat-tree, a torus, an expander or a wiring: routes say over which
links the bytes of a pair go, rings say which pairs a sum uses. A `Load` is linear in bytes, so it is worked out once
for a group or for two seats and scaled afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.codesign._load_kernel import PairUsage, link_load
from ropewalk.codesign.demands import Demands
from ropewalk.codesign.network import StepNetwork
from ropewalk.errors import RouteError


@dataclass(frozen=True, eq=False)
class Load:
    """Seconds for which a byte of a sum or of a set of transfers keeps each link busy; idle links are left out."""

    link: NDArray[np.int32]
    seconds: NDArray[np.float64]
    flows: NDArray[np.float64]
    """Transfers that share the link among themselves: how they hold their own against others."""
    latency: float
    """Seconds before the first byte arrives, on the slowest way; of a sum, in all its rounds."""

    def alone(self, size_bytes: float) -> float:
        """Seconds on a quiet network: the busiest link decides."""
        return self.latency + size_bytes * float(self.seconds.max(initial=0.0)) if len(self.link) else 0.0


class EstimatedNetwork(Protocol):
    """All that an estimate asks of a network."""

    @property
    def links(self) -> int: ...

    def sum_load(self, group: Sequence[int]) -> Load:
        """An all-reduce over the servers of a group, for each of its bytes."""
        ...

    def pairs_load(self, src: ArrayLike, dst: ArrayLike, size: ArrayLike) -> Load:
        """Transfers at the same time, `size[i]` bytes from server `src[i]` to `dst[i]`, for each time all are sent."""
        ...


class LinkLoads:
    """Loads on the links of a network whose hosts 0 … servers-1 are the servers.

    >>> from ropewalk.codesign.network import one_ring
    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.routing import shortest
    >>> switch = LinkLoads(StepNetwork("switch", IdealSwitch(4, 12.5e9).build(), shortest, one_ring), 4)
    >>> round(switch.sum_seconds(range(4), 1e9), 6), round(switch.pairs_seconds([0, 1], [2, 2], [1e9, 1e9]), 6)
    (0.12, 0.16)
    """

    def __init__(self, network: StepNetwork, servers: int, asked: Demands | None = None) -> None:
        """Of all pairs of servers; or only of those between which these demands send something."""
        src, dst = all_pairs(servers) if asked is None else _pairs_of(asked, network)
        self.network = network
        self.servers = servers
        routes = network.router(network.fabric, src, dst)
        of_source = np.searchsorted(routes.pair_src, np.arange(network.fabric.nodes + 1))
        self._usage = PairUsage(of_source, routes.pair_dst, *routes.usage(), routes.latency())

    @property
    def links(self) -> int:
        return self.network.fabric.links

    def sum_load(self, group: Sequence[int]) -> Load:
        """All rings of a group at once, each with its part of the bytes: 2(k-1)/k of the part on every hop.

        Every one of the 2(k-1) rounds waits for the slowest hop, however many rings there are.
        """
        members, size = np.asarray(group, np.int64), len(group)
        orders = np.array(self.network.rings(size), np.int64)
        src, dst = members[orders].ravel(), members[np.roll(orders, -1, axis=1)].ravel()
        rounds = 2 * (size - 1)
        load = self.pairs_load(src, dst, np.full(len(src), rounds / size / len(orders)))
        return Load(load.link, load.seconds, load.flows, rounds * load.latency)

    def pairs_load(self, src: ArrayLike, dst: ArrayLike, size: ArrayLike) -> Load:
        a, b, sizes = np.atleast_1d(np.asarray(src)), np.atleast_1d(np.asarray(dst)), np.asarray(size, np.float64)
        if not len(a):
            return Load(np.zeros(0, np.int32), np.zeros(0), np.zeros(0), 0.0)
        load = Load(*link_load(self._usage, a, b, sizes, self.network.fabric.bandwidth))
        if load.latency < 0:
            raise RouteError("loads of pairs that nobody asked for: name the demands that have them")
        return load

    def sum_seconds(self, group: Sequence[int], size_bytes: float) -> float:
        """Seconds of a sum that has the network to itself."""
        return self.sum_load(group).alone(size_bytes) if len(group) > 1 else 0.0

    def pairs_seconds(self, src: ArrayLike, dst: ArrayLike, size_bytes: ArrayLike) -> float:
        """Seconds of transfers that have the network to themselves."""
        return self.pairs_load(src, dst, size_bytes).alone(1.0)


def all_pairs(servers: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Every server with every other one."""
    src = np.repeat(np.arange(servers, dtype=np.int32), servers)
    dst = np.tile(np.arange(servers, dtype=np.int32), servers)
    return src[src != dst], dst[src != dst]


def _pairs_of(demands: Demands, network: StepNetwork) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Pairs that send bytes, and neighbours on the rings of all groups."""
    hops = [np.nonzero(demands.pairs)]
    for group in demands.sums:
        orders = np.array(group.servers)[np.array(network.rings(len(group.servers)), np.int64)]
        hops.append((orders.ravel(), np.roll(orders, -1, axis=1).ravel()))
    src, dst = (np.concatenate(ends).astype(np.int32) for ends in zip(*hops, strict=True))
    return src, dst
