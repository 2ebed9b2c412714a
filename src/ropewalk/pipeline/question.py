"""What somebody wants to know about pipelines: a model, a cluster, and what the planner may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from ropewalk.errors import Findings, StrategyError
from ropewalk.hardware import Cluster
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.links import Machines, machines_of
from ropewalk.pipeline.schedules import searched
from ropewalk.pipeline.subject import PricedSubject, open_subject
from ropewalk.pipeline.terms import Terms
from ropewalk.strategy.memory import usable_bytes
from ropewalk.training import NetworkUse

USUAL_MICRO_BATCHES = 4
"""Micro-batches for each GPU where no batch is given."""


@dataclass(frozen=True)
class PipelineQuestion:
    """What is None is as usual: the model's own sequence, the GPU's memory, every schedule that planners search.

    >>> from ropewalk.hardware import read_cluster
    >>> PipelineQuestion("gpt2", read_cluster("1x4")).terms.global_batch
    16
    """

    model: str
    """What `open_workload` reads, or a profile of DAPPLE or PipeDream (.txt)."""
    cluster: Cluster
    batch: int | None = None
    """Samples of a whole step."""
    micro_batch: int | None = None
    """The smallest micro-batch that is tried, over all replicas of a stage."""
    sequence: int | None = None
    precision: str = "bf16"
    optimiser: str = "adamw"
    profile_batch: int | None = None
    """Samples that a profile was measured with, where its name does not say it."""
    memory_bytes: float | None = None
    """Of a GPU."""
    collective_bandwidth: float | None = None
    """Bytes/s that the clock's collectives reach on a NIC, where that differs."""
    start_up_s: float = 0.0
    """Before the first byte of the clock's messages moves."""
    schedules: tuple[str, ...] = ()
    tensor: tuple[int, ...] = (1,)
    """How many GPUs may share the samples of a replica."""
    recompute: tuple[bool, ...] = (False, True)
    """Whether activations may be kept, and whether they may be computed again."""
    overlap_sums: bool = True
    """Gradients are reduced while the last micro-batch runs back."""
    network: NetworkUse = field(default_factory=NetworkUse)
    """How the plans that are simulated cross the network."""

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "pipeline")
        for name in ("batch", "micro_batch", "sequence", "profile_batch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                findings.add(f"{name} is {value}: give 1 or more")
        if not self.tensor or not 1 <= min(self.tensor) <= max(self.tensor) <= self.cluster.gpus:
            findings.add(f"tensor is {self.tensor}: give numbers of GPUs from 1 to {self.cluster.gpus}")
        findings.raise_if_any()

    @cached_property
    def subject(self) -> PricedSubject:
        """The model with its prices."""
        return open_subject(
            self.model, device=self.cluster.device, dtype=self.precision, optimiser=self.optimiser,
            sequence=self.sequence, profile_batch=self.profile_batch,
        )  # fmt: skip

    @cached_property
    def machines(self) -> Machines:
        """The cluster as the planner's clock sees it."""
        return machines_of(self.cluster, collective_bandwidth=self.collective_bandwidth, start_up_s=self.start_up_s)

    @cached_property
    def terms(self) -> Terms:
        subject = self.subject
        smallest = self.micro_batch or subject.profile.batch
        return Terms(
            self.batch or USUAL_MICRO_BATCHES * self.cluster.gpus * smallest,
            smallest,
            memory_bytes=usable_bytes(subject.memory_bytes if self.memory_bytes is None else self.memory_bytes),
            state_multiple=subject.state_multiple,
            schedules=self.schedules or searched(),
            tensor=self.tensor,
            recompute=self.recompute,
            overlap_sums=self.overlap_sums,
        )

    @cached_property
    def costs(self) -> Costs:
        """What the clock charges."""
        return Costs(self.subject.model, self.machines, self.terms)
