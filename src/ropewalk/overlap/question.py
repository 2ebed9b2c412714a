"""What somebody wants to know about the order of gradients: a model, workers, a network, a way to add up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ropewalk.device.device import precision
from ropewalk.device.pricer import pricer
from ropewalk.errors import Findings, StrategyError
from ropewalk.fabric.interconnect import interconnect
from ropewalk.overlap.link import Kind, Link, cluster_link, server_link
from ropewalk.overlap.tensors import Tensors, tensors_of
from ropewalk.pipeline.profile import is_measured
from ropewalk.workload.source import open_workload

HOP_S = 2e-6
"""A round of a collective between GPUs of today's servers."""
USUAL_BATCH = 32
"""Samples of one GPU unless told: with one sample most models wait for their host, and no order of sums matters."""
LAUNCH_S = 20e-6
"""Handing one operation to a library of collectives and its kernel to the GPU."""


@dataclass(frozen=True)
class OverlapQuestion:
    """Data parallelism on servers of GPUs; what is None is as in servers of that GPU.

    >>> OverlapQuestion("vgg16", servers=4, gpus_per_server=8, bandwidth=1.25e9).workers
    32
    """

    model: str
    """What `open_workload` reads: a name of the zoo, `file.py:Class`, a file."""
    servers: int = 4
    gpus_per_server: int = 8
    batch: int | None = None
    """Samples of one GPU; `USUAL_BATCH` unless given, or as many as a file was made for."""
    sequence: int | None = None
    device: str = "h200"
    precision: str = "bf16"
    optimiser: str = "adamw"
    bandwidth: float | None = None
    """Bytes/s of a NIC, each way."""
    nvlink_bandwidth: float | None = None
    """Bytes/s of a GPU inside its server, each way."""
    nics: int | None = None
    """NICs of a server; one where a bandwidth is given, since that is then what the server has."""
    latency_s: float = HOP_S
    """Of a round of a collective, and until a worker knows that an operation is done."""
    launch_s: float = LAUNCH_S
    """What an operation costs besides its rounds and bytes."""
    sync: Kind = Kind.ALL_REDUCE
    parameter_servers: int | None = None
    """Hosts that add up where `sync` is a parameter server; as many as there are servers of workers unless given."""
    partition_bytes: float | None = None
    """Size of pieces for priority scheduling; searched unless given."""
    credit_bytes: float | None = None
    """Bytes that may be on their way; searched unless given."""
    tune: bool = False
    """Search by Bayesian optimisation, as one would on a real cluster, instead of over the whole grid."""
    seed: int = 0

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "overlap")
        for label in ("servers", "gpus_per_server"):
            if getattr(self, label) < 1:
                findings.add(f"{label} is {getattr(self, label)}: give 1 or more")
        if self.workers == 1:
            findings.add("one GPU has nobody to synchronise with: give a cluster of 2 or more, such as 2x8")
        if self.parameter_servers is not None and self.sync is not Kind.PARAMETER_SERVER:
            findings.add("an all-reduce has no parameter servers: leave them out, or synchronise with ps")
        if self.tune and self.partition_bytes is not None and self.credit_bytes is not None:
            findings.add("partition and credit are both given: leave one of them out to tune it, or do not tune")
        findings.raise_if_any()

    @property
    def workers(self) -> int:
        """GPUs that hold the same model."""
        return self.servers * self.gpus_per_server

    @cached_property
    def tensors(self) -> Tensors:
        """The gradients of the model with their times on the GPU."""
        precision(self.precision)  # a profile needs none, but a slip should not go unseen
        workload = open_workload(self.model, self.batch, self.sequence)
        if self.batch is None and workload.batch == 1 and not is_measured(workload):
            workload = workload.at_batch(USUAL_BATCH)
        if is_measured(workload):
            # A profile was measured on a GPU of its own, with whatever update it had.
            return replace(tensors_of(workload, optimiser="none"), source=f"{workload.source}, as measured")
        return tensors_of(workload, pricer(self.device, self.precision), optimiser=self.optimiser)

    @cached_property
    def link(self) -> Link:
        """The network as a scheduler of gradients sees it."""
        speed, inside, nics = self.speeds
        if self.sync is Kind.PARAMETER_SERVER:
            # GPUs of a server add up among themselves first, which costs little beside the network and is left out.
            hosts = self.parameter_servers or self.servers
            link = server_link(self.servers, hosts, speed * nics, self.latency_s, self.latency_s)
        else:
            link = cluster_link(
                self.servers, self.gpus_per_server, speed, nvlink_bandwidth=inside, nics_per_server=nics,
                alpha_s=self.latency_s, latency_s=self.latency_s,
            )  # fmt: skip
        return replace(link, start_up_s=link.start_up_s + self.launch_s)

    @property
    def rounds_s(self) -> float:
        """The part of the link's start-up that is rounds of the collective."""
        return self.link.start_up_s - self.launch_s

    @property
    def speeds(self) -> tuple[float, float, int]:
        """Bytes/s of a NIC and of a GPU inside its server, NICs of a server."""
        if self.bandwidth is not None and self.nvlink_bandwidth is not None:
            return self.bandwidth, self.nvlink_bandwidth, self.nics or 1
        usual = interconnect(self.device)
        inside = usual.nvlink_bandwidth if self.nvlink_bandwidth is None else self.nvlink_bandwidth
        if self.bandwidth is not None:
            return self.bandwidth, inside, self.nics or 1
        shared = max(1, usual.gpus_per_server // usual.nics_per_server)
        return usual.nic_bandwidth, inside, self.nics or max(1, self.gpus_per_server // shared)

    def at_bandwidth(self, bandwidth: float) -> OverlapQuestion:
        """The same question on NICs of another speed, with one NIC a server."""
        return replace(self, bandwidth=bandwidth, nics=1)
