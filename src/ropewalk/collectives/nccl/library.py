"""NCCL on one cluster: which GPUs it finds, how they are joined, how much of the wires it fills, what it may run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.collectives.act import Act
from ropewalk.collectives.nccl.choice import ChosenRun, run_of
from ropewalk.collectives.nccl.constants import Generation, generation_of
from ropewalk.collectives.nccl.rates import PCI_EXPRESS, RATES, NcclRates
from ropewalk.collectives.nccl.runs import Algorithm, Communicator, NcclRun, Protocol, WireRates
from ropewalk.collectives.over_servers import Servers
from ropewalk.hardware import Cluster
from ropewalk.hardware.complete import gpu_of

EXCHANGED = (Act.ALL_REDUCE, Act.ALL_GATHER, Act.REDUCE_SCATTER)
SLOWEST_NVLINK = 64e9
"""Bytes/s up to which GPUs of a server are joined by PCI Express."""


@dataclass(frozen=True)
class Library:
    """NCCL as it is set up on a cluster, of whose servers it sees the smallest and the slowest links."""

    generation: Generation
    rates: NcclRates
    gpus: int
    """Of a server."""
    inside_bytes_s: float
    """Nominal, from one GPU to all others of its server together."""
    nics: int
    """Of a server."""
    nic_bytes_s: float
    algorithms: frozenset[Algorithm] = frozenset(Algorithm)
    """Those that are allowed, as by NCCL_ALGO."""
    protocols: frozenset[Protocol] = frozenset(Protocol)

    def communicator(self, servers: Servers) -> Communicator:
        """A group with so many ranks in each server, on the NICs next to its GPUs."""
        nics = max(1, self.nics * max(servers) // self.gpus)
        wires = WireRates(
            self.inside_bytes_s * self.rates.rings, self.inside_bytes_s * self.rates.exchanges,
            self.inside_bytes_s * self.rates.switches, nics * self.nic_bytes_s * self.rates.nic,
        )  # fmt: skip
        return Communicator(
            servers, self.generation, self.inside_bytes_s > SLOWEST_NVLINK, nics, self.algorithms, self.protocols, wires
        )

    def run(self, act: Act, servers: Servers, what: ChosenRun) -> NcclRun:
        """What was chosen, with the latency that was measured on these GPUs where it was."""
        group, measured = self.communicator(servers), self.rates.latency
        run = run_of(act, group, what)
        if measured is None or len(servers) > 1 or run.protocol is not Protocol.SIMPLE or not group.nvlink:
            return run
        if run.algorithm is Algorithm.RING and act in EXCHANGED:
            hops = (2 if act is Act.ALL_REDUCE else 1) * (group.ranks - 1)
            return replace(run, latency_s=measured.launch_s + hops * measured.hop_s, launch_s=measured.launch_s)
        if act is Act.ALL_TO_ALL and measured.exchange_s is not None:
            return replace(run, latency_s=measured.exchange_s, launch_s=min(measured.launch_s, measured.exchange_s))
        return run

    def share_inside(self, algorithm: Algorithm) -> float:
        """Payload of a byte inside a server, with the protocol Simple."""
        if algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE):
            return self.rates.switches
        return self.rates.exchanges if algorithm is Algorithm.POINT_TO_POINT else self.rates.rings


def library_for(cluster: Cluster) -> Library:
    """NCCL as it comes, on the GPUs of a cluster.

    >>> from ropewalk.hardware import read_cluster
    >>> library_for(read_cluster("dgx-h100:4")).communicator((1, 1, 1, 1)).nics
    1
    """
    generation, servers = generation_of(gpu_of(cluster.device)), cluster.servers
    inside = min(one.nvlink_bandwidth for one in servers)
    return Library(
        generation,
        RATES[generation] if inside > SLOWEST_NVLINK else PCI_EXPRESS,
        min(one.gpus for one in servers),
        inside,
        min(one.nics for one in servers),
        min(one.nic_bandwidth for one in servers),
    )
