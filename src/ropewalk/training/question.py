"""What somebody wants to know about training a model on a cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ropewalk.errors import Findings, StrategyError
from ropewalk.fabric import Fabric
from ropewalk.hardware import DEFAULT_DEVICE, Cluster, Given, read_cluster
from ropewalk.strategy import Strategy, derive
from ropewalk.strategy.strategy import GPU
from ropewalk.training.network import NetworkUse
from ropewalk.workload.workload import Workload

DEFAULT_GPUS = 8
MOST_JITTER = 1.0
"""Beyond it most computations would take next to no time and a few almost all of it: nobody's GPUs."""
SLOWEST = 1e6
"""Times that a straggler may be slower; what is slower has failed."""


def gpus_of_degrees(data: int | None, tensor: int | None, pipeline: int | None, context: int | None) -> int:
    """GPUs that these degrees ask for: their product, where data parallelism is open in whole servers.

    >>> gpus_of_degrees(2, 4, None, None), gpus_of_degrees(None, 3, None, None)
    (8, 24)
    """
    given = math.prod(degree for degree in (data, tensor, pipeline, context) if degree is not None)
    if data is not None:
        return given
    return given if given > 1 and given % DEFAULT_GPUS == 0 else math.lcm(given, DEFAULT_GPUS)


@dataclass(frozen=True)
class TrainingQuestion:
    """A model, how it is split, and where it runs; what is None is derived.

    >>> TrainingQuestion("llama-7b", gpus=16, tensor=8).strategy().data
    2
    """

    model: str | Workload
    """What `open_workload` reads (a name of the zoo, `file.py:Class`, a file), or a workload made in Python."""
    cluster: Cluster | None = None
    """Where it runs; as many of the usual GPUs in their servers as `gpus` says unless given."""
    gpus: int | None = None
    """Those of the cluster, or the product of the degrees where they are given, otherwise 8."""
    batch: int | None = None
    """Samples of a whole step."""
    micro_batch: int | None = None
    sequence: int | None = None
    data: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    expert: int | None = None
    context: int | None = None
    usual: Strategy = field(default_factory=Strategy)
    """Everything else about the strategy: ZeRO, schedule, recomputation, buckets, optimiser."""
    decided: Strategy | None = None
    """The whole strategy, where a plan has decided it; then batch and degrees are its own."""
    precision: str = "bf16"
    network: NetworkUse = field(default_factory=NetworkUse)
    order: str | None = None
    """In which order ranks are laid out, Megatron-LM's unless given: `tp-cp-ep-dp-pp`."""
    detail: str = "auto"
    jitter: float = 0.0
    """Sigma of the logarithm of a factor on every computation."""
    stragglers: Mapping[int, float] = field(default_factory=dict)
    """Ranks that compute more slowly, and by what factor."""
    memory_check: bool = True
    """Refuse what does not fit; otherwise it is only noted."""

    @property
    def place(self) -> Cluster:
        """The cluster, whether it was given or derived."""
        if self.cluster is not None and self.gpus in (None, self.cluster.gpus):
            return self.cluster
        if self.cluster is not None:
            raise StrategyError(
                f"the cluster has {self.cluster.gpus} GPUs, but {self.gpus} are requested: leave one of the two out"
            )
        return read_cluster(given=Given(gpus=self.gpu_count))

    def fabric(self) -> Fabric:
        """The network between the ranks: that of the cluster, or the one that was made for a plan."""
        designed = self.network.designed
        if designed is None:
            return self.place.fabric()
        return designed.between_ranks(self.place, GPU if self.decided is None else self.decided.grain)

    @property
    def device(self) -> str:
        return DEFAULT_DEVICE if self.cluster is None else self.cluster.device

    @property
    def gpu_count(self) -> int:
        if self.cluster is not None:
            return self.cluster.gpus
        if self.gpus is not None:
            return self.gpus
        return gpus_of_degrees(self.data, self.tensor, self.pipeline, self.context)

    def strategy(self) -> Strategy:
        """The whole strategy, with what was left open filled in."""
        findings = Findings(StrategyError, "strategy")
        given = {
            "gpus": self.gpus, "data": self.data, "tensor": self.tensor, "pipeline": self.pipeline,
            "expert": self.expert, "context": self.context, "batch": self.batch, "micro_batch": self.micro_batch,
        }  # fmt: skip
        for name, value in given.items():
            if value is not None and value < 1:
                findings.add(f"{name} is {value}: give a whole number, 1 or more")
        for rank, factor in self.stragglers.items():
            if not 0 <= rank < self.gpu_count or not 0 < factor <= SLOWEST:
                findings.add(
                    f"straggler {rank}:{factor:g} is invalid: ranks are 0…{self.gpu_count - 1}, "
                    f"factors above 0 and at most {SLOWEST:g}"
                )
        if not 0 <= self.jitter <= MOST_JITTER:
            findings.add(
                f"a jitter of {self.jitter:g} is out of range: give a fraction of the time, at most {MOST_JITTER:g}, "
                "such "
                "as 0.03"
            )
        findings.raise_if_any()
        if self.decided is not None:
            return self.decided
        degrees = {
            "data": self.data, "tensor": self.tensor, "pipeline": self.pipeline, "context": self.context,
            "expert": self.expert,
        }  # fmt: skip
        return derive(self.gpu_count, degrees, batch=self.batch, micro_batch=self.micro_batch, usual=self.usual)
