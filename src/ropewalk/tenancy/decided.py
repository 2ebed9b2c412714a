"""What a job trains, with everything decided: by a plan that it brings, by degrees that it names, or by the planner.

A job without a plan gets the strategy that `ropewalk plan --quick` finds for its GPUs, on a quiet network with the
speeds of the plant; cuts, buckets and collectives stay the usual ones, which is what makes it fast enough to be asked
for every model and size of a trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ropewalk.errors import ClusterError, StrategyError
from ropewalk.hardware import Cluster, Given, read_cluster
from ropewalk.plans import Plan
from ropewalk.plans.document import read_plan
from ropewalk.strategy import Strategy, derive
from ropewalk.strategy.strategy import SERVER
from ropewalk.tenancy.plant import Plant
from ropewalk.training import TrainingQuestion
from ropewalk.training.network import DEFAULT, NetworkUse
from ropewalk.workload.source import written_for

SAMPLES_PER_GPU = 2
"""Of a step, where a job does not say; what `ropewalk plan` takes."""
NETWORK = "switch"
"""A quiet network: one switch with a port for every NIC."""


@dataclass(frozen=True)
class Decided:
    """A model, how its step is split over the GPUs of a job, and what its groups run."""

    model: str
    """What `open_workload` reads."""
    strategy: Strategy
    device: str
    sequence: int | None = None
    precision: str = "bf16"
    placement: str | None = None
    """In which order ranks are laid over GPUs; Megatron-LM's unless given."""
    algorithm: str = DEFAULT
    """Which collectives run: one name, or one for each purpose."""
    by: str = "the planner"
    """Who decided, in words."""

    def question(self, servers: Cluster) -> TrainingQuestion:
        """The step on a quiet network."""
        return TrainingQuestion(
            self.model,
            servers,
            sequence=self.sequence,
            decided=self.strategy,
            precision=self.precision,
            network=NetworkUse(algorithm=self.algorithm),
            order=self.placement,
            detail="stage" if self.strategy.order.is_plain else "auto",
            memory_check=False,
        )


def servers_of(gpus: int, plant: Plant, device: str) -> Cluster:
    """The servers of a job on a quiet network: as few as hold it, evenly filled where that is possible.

    >>> from ropewalk.tenancy.plant import plant
    >>> servers_of(12, plant("leaf-spine:2x8x8"), "h200").shape, servers_of(13, plant("leaf-spine:2x8x8"), "h200").shape
    ('2x6', '1x8,1x5')
    """
    servers = -(-gpus // plant.gpus_per_server)
    given = Given(
        gpus=None if gpus % servers == 0 else gpus,
        gpus_per_server=None if gpus % servers == 0 else plant.gpus_per_server,
        device=device,
        nic_bandwidth=plant.nic_bandwidth,
        nvlink_bandwidth=plant.server_bandwidth,
        network=NETWORK,
    )
    return read_cluster(f"{servers}x{gpus // servers}" if gpus % servers == 0 else None, given)


def by_plan(path: Path, gpus: int) -> Decided:
    """What a plan file decides; refused where the job has another number of GPUs."""
    return of_plan(read_plan(path), gpus, str(path))


def of_plan(plan: Plan, gpus: int, subject: str = "the plan") -> Decided:
    """The same for a plan."""
    strategy = plan.strategy
    if strategy.grain == SERVER:
        raise ClusterError(
            f"{subject} seats layers on servers whose GPUs act as one, but ranks of a job are GPUs: use a plan with "
            "degrees or stages (`ropewalk plan --cluster`, `ropewalk pipeline`)"
        )
    if strategy.ranks != gpus:
        raise ClusterError(
            f"{subject} is for {strategy.ranks} GPUs ({strategy.said()}), the job has {gpus}: write {strategy.ranks} "
            "in its column gpus, or plan again"
        )
    talk = plan.communication
    return Decided(
        plan.model.name, strategy, plan.cluster.device, plan.model.sequence, plan.model.precision, plan.placement,
        talk.algorithm, f"plan {subject}",
    )  # fmt: skip


def by_degrees(
    model: str,
    gpus: int,
    degrees: dict[str, int | None],
    batch: int | None,
    device: str,
    *,
    precision: str = "bf16",
    algorithm: str = DEFAULT,
) -> Decided:
    """The degrees that a job names, the rest of its GPUs as copies of the model with `batch` samples each."""
    copies, fixed = max(1, gpus // ((degrees.get("tensor") or 1) * (degrees.get("pipeline") or 1))), written_for(model)
    # A pipeline needs a micro-batch for every stage to be worth its name.
    each = batch or (degrees.get("pipeline") or 1) * (fixed or 1)
    strategy = derive(gpus, degrees, batch=each * copies, micro_batch=fixed)
    return Decided(model, strategy, device, precision=precision, algorithm=algorithm, by="its degrees")


def by_planner(
    model: str, gpus: int, plant: Plant, batch: int | None, device: str, algorithm: str = DEFAULT
) -> Decided:
    """The best degrees that the planner finds; `batch` is samples of a step on each GPU."""
    servers = servers_of(gpus, plant, device)
    each = (written_for(model) or SAMPLES_PER_GPU) if batch is None else batch
    try:
        strategy, usual = _planned(model, servers, each * gpus)
    except StrategyError as problem:
        raise ClusterError(f"{problem}, or say how it is split (columns tensor, pipeline, expert)") from None
    return Decided(model, strategy, device, algorithm=usual if algorithm == DEFAULT else algorithm)


@lru_cache(maxsize=256)
def _planned(model: str, servers: Cluster, batch: int) -> tuple[Strategy, str]:
    """The strategy of the smallest simulated step, and the collectives that the stack of the model calls."""
    from ropewalk.planner.estimate import estimate  # loads SciPy and kernels, which most traces do without
    from ropewalk.planner.question import PlannerQuestion

    found = estimate(PlannerQuestion(model, servers, batch))
    return found.best.strategy, found.prices.use.algorithm
