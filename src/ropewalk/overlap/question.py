"""What somebody wants to know about the order of gradients: a model, workers, a network, a way to add up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from ropewalk.device.pricer import pricer
from ropewalk.errors import Findings, StrategyError
from ropewalk.fabric.interconnect import gpu_in
from ropewalk.hardware import Cluster, read_cluster
from ropewalk.overlap.fabric_streams import refusal
from ropewalk.overlap.link import ExchangeKind, Link, server_link
from ropewalk.overlap.simulated import measured_link
from ropewalk.overlap.tensors import Tensors, tensors_of
from ropewalk.pipeline.profile import is_measured
from ropewalk.sim.level import LevelUse
from ropewalk.strategy import Strategy
from ropewalk.training import NetworkUse, TrainingQuestion
from ropewalk.workload.source import open_workload
from ropewalk.workload.workload import Workload

USUAL_CLUSTER = "4x8"
USUAL_BATCH = 32
"""Samples of one GPU unless told: with one sample most models wait for their host, and no order of sums matters."""


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
    network: NetworkUse = field(default_factory=NetworkUse)
    """Routes, collectives, what they cost beyond their bytes, and how finely they are simulated."""
    sync: ExchangeKind = ExchangeKind.ALL_REDUCE
    parameter_servers: int | None = None
    """Hosts that add up where `sync` is a parameter server; as many as there are servers of workers unless given."""
    partition_bytes: float | None = None
    """Size of pieces for priority scheduling; searched unless given."""
    credit_bytes: float | None = None
    """Bytes that may be on their way; searched unless given."""
    tune: bool = False
    """Search by Bayesian optimisation, as one would on a real cluster, instead of over the whole grid."""
    seed: int = 0
    through: tuple[str, ...] = ()
    """Collectives that the gradients are streamed through on the fabric; those that apply of a few unless named."""

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "overlap")
        if (uneven := self.cluster.uneven(self.batch)) is not None:
            findings.add(uneven)
        if self.workers == 1:
            findings.add("one GPU needs no synchronisation: give a cluster of 2 or more, such as 2x8")
        if self.parameter_servers is not None and self.sync is not ExchangeKind.PARAMETER_SERVER:
            findings.add("an all-reduce has no parameter servers: leave them out, or synchronise with ps")
        if self.tune and self.partition_bytes is not None and self.credit_bytes is not None:
            findings.add("partition and credit are both given: leave one of them out to tune it, or do not tune")
        if self.through and self.sync is not ExchangeKind.ALL_REDUCE:
            findings.add("parameter servers stream through no collective: leave --through out")
        elif self.through:
            for name in self.through:
                if (why := refusal(name, self.cluster.fabric())) is not None:
                    findings.add(why)
        findings.raise_if_any()

    @property
    def workers(self) -> int:
        """GPUs that hold the same model."""
        return self.servers * self.cluster.equal.gpus

    @property
    def servers(self) -> int:
        return self.cluster.equal.count

    @cached_property
    def workload(self) -> Workload:
        """The model for the samples of one GPU."""
        each = None if self.batch is None else self.batch // self.workers
        found = open_workload(self.model, each, self.sequence)
        usual = self.batch is None and found.batch == 1 and not is_measured(found)
        return found.at_batch(USUAL_BATCH) if usual else found

    @cached_property
    def tensors(self) -> Tensors:
        """The gradients of the model, layer by layer, with their times on the GPU."""
        prices = pricer(self.cluster.device, self.precision).sustained(self.workload)
        found = tensors_of(
            self.workload, prices, gradient_bytes=prices.precision.element_bytes, optimiser=self.optimiser,
            whole_layers=True,
        )  # fmt: skip
        return replace(found, source=f"{self.workload.source}, as measured") if is_measured(self.workload) else found

    @cached_property
    def use(self) -> NetworkUse:
        """How collectives cross the fabric, with nothing left open."""
        prices = pricer(self.cluster.device, self.precision)
        gpu = gpu_in(prices.device.title) or prices.device.name  # tables of measurements know it by its title
        # Orders are found for a link with one price per byte, which collectives chosen by size do not have.
        return replace(self.network, seed=self.seed).settled(gpu, self.cluster).run_by(None)

    @property
    def training(self) -> TrainingQuestion:
        """The same question about a step of data parallelism."""
        return TrainingQuestion(
            self.model, self.cluster, batch=self.workload.batch * self.workers, sequence=self.sequence,
            data=self.workers, usual=Strategy(optimiser=self.optimiser), precision=self.precision, network=self.use,
            memory_check=False,
        )  # fmt: skip

    @cached_property
    def link(self) -> Link:
        """The network as a scheduler of gradients sees it: one all-reduce at a time, or pushes and pulls."""
        if self.sync is ExchangeKind.ALL_REDUCE:
            return measured_link(self.cluster.fabric(), self.workers, replace(self.use, level=LevelUse()))
        # GPUs of a server add up among themselves first, which costs little beside the network and is left out.
        each, costs = self.cluster.equal, self.use.transport
        assert costs is not None
        hosts, latency = self.parameter_servers or each.count, costs.round_across_s
        link = server_link(each.count, hosts, each.nic_bandwidth * each.nics, latency, latency, costs.mixer)
        return replace(link, start_up_s=link.start_up_s + costs.start_up_s)

    @property
    def rounds_s(self) -> float:
        """The part of the link's start-up that is rounds of the collective."""
        assert self.use.transport is not None
        return max(0.0, self.link.start_up_s - self.use.transport.start_up_s)

    def at_bandwidth(self, nic_bandwidth: float) -> OverlapQuestion:
        """The same question on NICs of another speed (bytes/s, one direction)."""
        return replace(self, cluster=self.cluster.at_bandwidth(nic_bandwidth))
