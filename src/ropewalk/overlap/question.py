"""What somebody wants to know about the order of gradients: a model, workers, a network, a way to add up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from ropewalk.device.device import precision
from ropewalk.device.pricer import pricer
from ropewalk.errors import Findings, StrategyError
from ropewalk.hardware import Cluster, read_cluster
from ropewalk.overlap.link import Kind, Link, cluster_link, server_link
from ropewalk.overlap.tensors import Tensors, tensors_of
from ropewalk.pipeline.profile import is_measured
from ropewalk.workload.source import open_workload

HOP_S = 2e-6
"""A round of a collective between GPUs of today's servers."""
USUAL_CLUSTER = "4x8"
USUAL_BATCH = 32
"""Samples of one GPU unless told: with one sample most models wait for their host, and no order of sums matters."""
LAUNCH_S = 20e-6
"""Handing one operation to a library of collectives and its kernel to the GPU."""


@dataclass(frozen=True)
class OverlapQuestion:
    """Data parallelism on equal servers of GPUs.

    >>> OverlapQuestion("vgg16", read_cluster("4x8")).workers
    32
    """

    model: str
    """What `open_workload` reads: a name of the zoo, `file.py:Class`, a file."""
    cluster: Cluster = field(default_factory=lambda: read_cluster(USUAL_CLUSTER))
    batch: int | None = None
    """Samples of a whole step; `USUAL_BATCH` for each GPU unless given, or as many as a file was made for."""
    sequence: int | None = None
    precision: str = "bf16"
    optimiser: str = "adamw"
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
        if self.batch is not None and (self.batch < 1 or self.batch % self.workers):
            nearest = max(1, round(self.batch / self.workers)) * self.workers
            findings.add(
                f"a batch of {self.batch} samples does not spread evenly over {self.workers} GPUs: give a multiple of "
                f"{self.workers}, such as {nearest}"
            )
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

    @property
    def servers(self) -> int:
        return self.cluster.equal.count

    @property
    def gpus_per_server(self) -> int:
        return self.cluster.equal.gpus

    @cached_property
    def tensors(self) -> Tensors:
        """The gradients of the model with their times on the GPU."""
        precision(self.precision)  # a profile needs none, but a slip should not go unseen
        each = None if self.batch is None else self.batch // self.workers
        workload = open_workload(self.model, each, self.sequence)
        if self.batch is None and workload.batch == 1 and not is_measured(workload):
            workload = workload.at_batch(USUAL_BATCH)
        if is_measured(workload):
            # A profile was measured on a GPU of its own, with whatever update it had.
            return replace(tensors_of(workload, optimiser="none"), source=f"{workload.source}, as measured")
        return tensors_of(workload, pricer(self.cluster.device, self.precision), optimiser=self.optimiser)

    @cached_property
    def link(self) -> Link:
        """The network as a scheduler of gradients sees it."""
        each = self.cluster.equal
        if self.sync is Kind.PARAMETER_SERVER:
            # GPUs of a server add up among themselves first, which costs little beside the network and is left out.
            hosts = self.parameter_servers or each.count
            link = server_link(each.count, hosts, each.nic_bandwidth * each.nics, self.latency_s, self.latency_s)
        else:
            link = cluster_link(
                each.count, each.gpus, each.nic_bandwidth, nvlink_bandwidth=each.nvlink_bandwidth,
                nics_per_server=each.nics, alpha_s=self.latency_s, latency_s=self.latency_s,
            )  # fmt: skip
        return replace(link, start_up_s=link.start_up_s + self.launch_s)

    @property
    def rounds_s(self) -> float:
        """The part of the link's start-up that is rounds of the collective."""
        return self.link.start_up_s - self.launch_s

    def at_bandwidth(self, nic_bandwidth: float) -> OverlapQuestion:
        """The same question on NICs of another speed (bytes/s, one direction)."""
        return replace(self, cluster=self.cluster.at_bandwidth(nic_bandwidth))
