"""How NCCL can run a collective: algorithm and protocol, the latency of its hops, and what caps its bandwidth.

NCCL adds latency and bytes over bandwidth for each of them and takes the shortest. Here the bandwidth of the wires
comes from simulating the algorithm on the network, everything else from NCCL's own numbers (`constants.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ropewalk.collectives.act import Act
from ropewalk.collectives.nccl import constants as known
from ropewalk.collectives.nccl.constants import ByProtocol, Generation
from ropewalk.collectives.over_servers import Servers


class Algorithm(StrEnum):
    RING = "ring"
    TREE = "tree"
    NVLS = "nvls"
    NVLS_TREE = "nvls-tree"
    PAT = "pat"
    POINT_TO_POINT = "p2p"


class Protocol(StrEnum):
    LL = "ll"
    LL128 = "ll128"
    SIMPLE = "simple"


@dataclass(frozen=True)
class WireRates:
    """Payload bytes/s, as NCCL counts on them."""

    rings: float = math.inf
    """From a GPU to all others of its server together, in rings and trees."""
    exchanges: float = math.inf
    """The same where it sends to many."""
    switches: float = math.inf
    """The same where switches add up."""
    nics: float = math.inf
    """All NICs of a server that the group uses."""


@dataclass(frozen=True)
class Communicator:
    """Who takes part, as far as NCCL's choice depends on it."""

    servers: Servers
    """Ranks in each server."""
    generation: Generation
    nvlink: bool = True
    """GPUs of a server are joined by NVLink, otherwise by PCI Express."""
    nics: int = 8
    """Of a server, next to GPUs of the group: channels between servers."""
    algorithms: frozenset[Algorithm] = frozenset(Algorithm)
    """Those that are allowed, as by NCCL_ALGO."""
    protocols: frozenset[Protocol] = frozenset(Protocol)
    wires: WireRates = WireRates()

    @property
    def ranks(self) -> int:
        return sum(self.servers)

    @property
    def scale(self) -> int:
        """Column of the ceilings: one server, two, or more."""
        return min(len(self.servers), 3) - 1

    @property
    def channels(self) -> int:
        return known.CHANNELS_INSIDE if len(self.servers) == 1 else self.nics

    @property
    def widest(self) -> int:
        """Ranks of the fullest server."""
        return max(self.servers)


@dataclass(frozen=True)
class NcclRun:
    """One way to run a collective."""

    algorithm: Algorithm
    protocol: Protocol
    latency_s: float
    share: float
    """Payload in a byte that is sent, compared with Simple rings."""
    ceiling: float = math.inf
    """Bus bandwidth, bytes/s, above which it does not get on any network."""
    corrected: bool = False
    """Trees have less than their bandwidth at medium sizes."""
    launch_s: float = 0.0
    """Part of the latency that collectives launched together pay once."""

    def part_at(self, size_bytes: float) -> float:
        """The part of its bandwidth that it has at this size.

        >>> NcclRun(Algorithm.TREE, Protocol.SIMPLE, 0.0, 1.0, corrected=True).part_at(1 << 20)
        0.5
        """
        step = int(math.log2(size_bytes / 64)) if size_bytes >= 64 else -1
        if not self.corrected or not 0 <= step < 23:
            return 1.0
        row: tuple[float, ...] = getattr(known.TREE_CORRECTIONS, self.protocol)
        return row[step]


def bus_factor(act: Act, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth: what nccl-tests multiplies by.

    >>> bus_factor(Act.ALL_REDUCE, 8), bus_factor(Act.ALL_GATHER, 8), bus_factor(Act.BROADCAST, 8)
    (1.75, 0.875, 1.0)
    """
    if act is Act.ALL_REDUCE:
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if act in (Act.ALL_GATHER, Act.REDUCE_SCATTER, Act.ALL_TO_ALL) else 1.0


def runs_of(act: Act, group: Communicator) -> list[NcclRun]:
    """All that NCCL can do for a collective of this group.

    >>> hopper = Communicator((8,), Generation.HOPPER)
    >>> [f"{run.algorithm}/{run.protocol}" for run in runs_of(Act.ALL_REDUCE, hopper) if run.protocol == "simple"]
    ['ring/simple', 'tree/simple', 'nvls/simple']
    """
    makers = [_point_to_point] if act in (Act.ALL_TO_ALL, Act.SEND) else [_ring, _tree, _nvls, _pat]
    found = [run for make in makers for run in make(act, group)]
    allowed = [run for run in found if run.algorithm in group.algorithms and run.protocol in group.protocols]
    # As in NCCL, what is not there for a collective does not bind it.
    return allowed or found[:]


def _hop(group: Communicator, protocol: Protocol, nvlink: ByProtocol, pci: ByProtocol) -> float:
    seconds: float = getattr(nvlink if group.nvlink else pci, protocol)
    return seconds


def _of(values: ByProtocol, protocol: Protocol) -> float:
    value: float = getattr(values, protocol)
    return value


def _protocols(group: Communicator) -> Iterator[Protocol]:
    """LL128 needs NVLink inside servers."""
    yield from (one for one in Protocol if group.nvlink or one is not Protocol.LL128)


def _ring(act: Act, group: Communicator) -> Iterator[NcclRun]:
    servers, rooted = len(group.servers), act in (Act.BROADCAST, Act.REDUCE)
    halves = 2 if act is Act.ALL_REDUCE else 1
    for protocol in _protocols(group):
        inside = _hop(group, protocol, known.NVLINK_RING, known.PCI_RING)
        # With one GPU per server nothing hides the hops between servers.
        net = known.NET_TREE if group.ranks == servers else known.NET_RING
        across = _of(net, protocol)
        if servers > 1:
            inside = max(inside, _of(known.NET_OVERHEAD, protocol))
        if rooted:
            latency = group.ranks * (inside if servers == 1 else across)
        else:
            crossing = halves * (servers - 1)
            latency = (halves * (group.ranks - 1) - crossing) * inside + crossing * across
        launch = _of(known.BASE_RING, protocol)
        latency += launch
        if act is Act.ALL_REDUCE and protocol is Protocol.SIMPLE and servers > 1:
            latency *= known.PLATEAU.get(group.generation, known.USUAL_PLATEAU)
        yield NcclRun(Algorithm.RING, protocol, latency, *_ring_limits(group, protocol), launch_s=launch)


def _ring_limits(group: Communicator, protocol: Protocol) -> tuple[float, float]:
    """Share of the wire and ceiling."""
    if protocol is Protocol.LL:
        return known.LL_SHARE, known.LL_CEILING[group.generation][group.scale]
    if protocol is Protocol.LL128:
        ceiling = group.channels * known.RING_LL128_CEILING[group.generation][group.scale]
        return known.LL128_SHARE, ceiling
    return 1.0, math.inf


def _tree(act: Act, group: Communicator) -> Iterator[NcclRun]:
    if act is not Act.ALL_REDUCE:
        return
    levels = int(math.log2(len(group.servers)))
    for protocol in _protocols(group):
        inside = _hop(group, protocol, known.NVLINK_TREE, known.PCI_TREE)
        hops = (group.widest - 1) * inside + levels * _of(known.NET_TREE, protocol)
        launch = _of(known.BASE_TREE, protocol)
        limits = _tree_limits(group, protocol)
        yield NcclRun(Algorithm.TREE, protocol, launch + 2 * hops, *limits, corrected=True, launch_s=launch)


def _tree_limits(group: Communicator, protocol: Protocol) -> tuple[float, float]:
    ceiling = group.channels * known.TREE_CEILING[group.generation][group.scale]
    share = known.TREE_SHARE
    if protocol is Protocol.LL:
        return share * known.TREE_LL_SHARE, min(ceiling, known.LL_CEILING[group.generation][group.scale])
    if protocol is Protocol.LL128:
        own = group.channels * known.TREE_LL128_CEILING[group.generation][group.scale]
        return share * known.TREE_LL128_SHARE[len(group.servers) > 1], min(ceiling, own)
    return share, ceiling


def _nvls(act: Act, group: Communicator) -> Iterator[NcclRun]:
    """Switches inside servers add up and copy; between servers trees join the GPUs of the same number."""
    if act is not Act.ALL_REDUCE or group.generation not in known.NVLS_SHARE or not group.nvlink or group.widest < 2:
        return
    if len(group.servers) == 1:
        yield NcclRun(Algorithm.NVLS, Protocol.SIMPLE, known.NVLS_INSIDE, 1.0, _nvls_ceiling(group))
    elif len(set(group.servers)) == 1:
        latency = known.NVLS_INSIDE + 2 * int(math.log2(len(group.servers))) * known.NVLS_TREE_ACROSS
        ceiling = group.widest * known.NVLS_TREE_CEILING[group.generation][group.scale]
        yield NcclRun(Algorithm.NVLS_TREE, Protocol.SIMPLE, latency, 1.0, min(ceiling, _nvls_ceiling(group)))


def _pat(act: Act, group: Communicator) -> Iterator[NcclRun]:
    """Trees of all ranks side by side, where every server has one rank (NCCL 2.23 and later)."""
    if act not in (Act.ALL_GATHER, Act.REDUCE_SCATTER) or group.widest > 1:
        return
    rounds = int(math.log2(len(group.servers)))
    latency = known.BASE_PAT + rounds * known.PAT_HOP + group.ranks * known.PAT_RANK
    yield NcclRun(Algorithm.PAT, Protocol.SIMPLE, latency, known.PAT_SHARE, launch_s=known.BASE_PAT)


def _nvls_ceiling(group: Communicator) -> float:
    """Bus bandwidth of an all-reduce with as many heads as NCCL has; with fewer, the wires alone are the limit."""
    if group.widest < known.NVLS_HEADS:
        return math.inf
    return 2 * (known.NVLS_HEADS - 1) * known.NVLS_HEAD_SPEED * known.NVLS_SHARE[group.generation]


def _point_to_point(act: Act, group: Communicator) -> Iterator[NcclRun]:
    """Sends and receives in one kernel, eight peers at a time; LL128 is not used for them."""
    turns = -(-(group.ranks - 1) // 8) if act is Act.ALL_TO_ALL else 1
    for protocol in (Protocol.LL, Protocol.SIMPLE):
        inside = _hop(group, protocol, known.NVLINK_RING, known.PCI_RING)
        hop = inside if len(group.servers) == 1 else _of(known.NET_RING, protocol)
        share, ceiling = _ring_limits(group, protocol)
        launch = _of(known.BASE_RING, protocol)
        yield NcclRun(Algorithm.POINT_TO_POINT, protocol, launch + turns * hop, share, ceiling, launch_s=launch)
