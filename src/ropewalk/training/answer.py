"""What a simulated training step tells: its times, its memory, its bottleneck, and what they were derived from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk import __version__
from ropewalk.device.pricer import Pricer
from ropewalk.fabric import Fabric
from ropewalk.hardware import as_json as cluster_as_json
from ropewalk.records import plain
from ropewalk.sim.step import ROUNDED, Ran, StepRun, StepStatistics, Window
from ropewalk.strategy import Memory, Pieces, Strategy
from ropewalk.strategy.placement import stage_name
from ropewalk.strategy.strategy import SERVER
from ropewalk.task.auto import Chosen
from ropewalk.task.expand import Expansion
from ropewalk.task.transport import Transport
from ropewalk.training.checked import Expected, interval_of_step
from ropewalk.training.collectives import GroupCollective, as_json
from ropewalk.training.question import TrainingQuestion
from ropewalk.workload.workload import Workload

MOST_PATH_PARTS = 50
MOST_LINKS = 10


@dataclass(frozen=True, eq=False)
class StepAnswer:
    """What tables and pages about a step are made of, whether all its ranks were simulated or one of each class."""

    question: TrainingQuestion
    workload: Workload
    strategy: Strategy
    pieces: Pieces
    stage_of_rank: NDArray[np.int64]
    fabric: Fabric
    router: str
    memory: Memory
    prices: Pricer
    cost_source: str
    run: Ran
    statistics: StepStatistics
    notes: tuple[str, ...]
    collectives: tuple[GroupCollective, ...]
    """What the groups of the step run."""
    chosen: Chosen | None
    """How collectives were chosen, where that was left open."""

    @property
    def capacity_bytes(self) -> float:
        """Memory of one GPU."""
        return self.prices.device.memory_bytes

    @property
    def transport(self) -> Transport:
        """What collectives and sends cost beyond their bytes."""
        settled = self.question.network.transport
        assert settled is not None, "left open in the question, set in the answer"
        return settled

    @property
    def gpus(self) -> int:
        """GPUs that work, also where a rank is a server of several."""
        return self.question.place.gpus if self.strategy.grain == SERVER else self.strategy.ranks

    @property
    def expected(self) -> Expected:
        """The interval around the step time, from the errors of predictions for runs like it."""
        asked, seconds = self.question, self.statistics.step_time_s
        return interval_of_step(seconds, self.workload, asked.device, self.prices, self.strategy, self.gpus)

    def rank_names(self) -> list[str]:
        """Ranks as charts and traces name them."""
        if self.strategy.grain == SERVER:
            return [f"server {rank}" for rank in range(self.strategy.ranks)]
        if self.strategy.pipeline == 1:
            return [f"gpu {rank}" for rank in range(self.strategy.ranks)]
        return [f"{stage_name(stage)} · gpu {rank}" for rank, stage in enumerate(self.stage_of_rank.tolist())]

    def as_json(self) -> dict[str, Any]:
        """Plain numbers and text, the most asked-for first."""
        found, asked = self.statistics, self.question
        worst = found.bottleneck
        return {
            "model": self.workload.name,
            "step_time_s": found.step_time_s,
            "interval": asdict(self.expected),
            "compute_s": found.compute_s,
            "communication_s": found.communication_s,
            "exposed_communication_s": found.exposed_communication_s,
            "exposed_by_purpose_s": found.exposed_by_purpose_s,
            "bubble_s": found.bubble_s,
            "mfu": found.mfu,
            "samples_per_s": found.samples_per_s,
            "tokens_per_s": found.tokens_per_s,
            "memory_bytes": self.memory.most,
            "memory_capacity_bytes": self.capacity_bytes,
            "bottleneck_link": worst.name if worst else None,
            "bottleneck": {"held_s": worst.held_s, "utilisation": worst.utilisation} if worst else None,
            "cost_source": self.cost_source,
            "cluster": cluster_as_json(asked.place),
            "device": asked.device,
            "power_limit_w": self.prices.device.held_to,
            "clock": self.prices.clock,
            "stack": self.workload.stack or None,
            "precision": asked.precision,
            "gpus": self.gpus,
            "parameters": self.workload.parameters(),
            "trained_parameters": self.workload.trained_parameters(),
            "model_source": self.workload.source,
            "sequence": self.workload.sequence or None,
            "global_batch": self.strategy.global_batch,
            "flops": found.flops,
            "strategy": plain(self.strategy),
            "stages": self.stages(),
            "fabric": self.fabric.name,
            "routing": self.router,
            "algorithm": asked.network.algorithm,
            "collectives": asked.network.collectives,
            **as_json(self.collectives, self.chosen),
            "transport": _costs(self.transport),
            "jitter": asked.jitter,
            "stragglers": {str(rank): factor for rank, factor in sorted(asked.stragglers.items())},
            "seed": asked.network.seed,
            **run_as_json(self.run, found, self.fabric),
            "notes": list(self.notes),
            "versions": {"ropewalk": __version__},
        }

    def network_as_json(self) -> dict[str, Any]:
        """The step time at the level of the run, and what was seen of packets."""
        seen = {} if self.run.network is None else self.run.network.as_json()
        return {"step_time_s": self.statistics.step_time_s} | seen

    def stages(self) -> list[dict[str, Any]]:
        """Times (means over the GPUs of the stage) and bytes of every pipeline stage."""
        times = self.statistics.times
        rows = []
        for stage in range(self.strategy.pipeline):
            mine = self.stage_of_rank == stage
            layers = [self.workload.layers[at % self.pieces.layers].name for at in self.pieces.layers_of_stage(stage)]
            rows.append(
                {
                    "stage": stage,
                    "layers": layers,
                    "compute_s": float(times.compute_s[mine].mean()),
                    "exposed_communication_s": float(times.exposed_communication_s[mine].mean()),
                    "bubble_s": float(times.bubble_s[mine].mean()),
                    "memory_bytes": {name: float(part[stage]) for name, part in self.memory.parts().items()},
                }
            )
        return rows


@dataclass(frozen=True, eq=False)
class TrainingAnswer(StepAnswer):
    """The answer with the run of every task of every rank: all files are made from it, nothing is run again."""

    run: StepRun
    expansion: Expansion
    """The tasks that the step became."""
    window: Window | None = None
    """The step that all times are of, where several ran in a row."""


def _costs(transport: Transport) -> dict[str, object]:
    costs = {name: value for name, value in asdict(transport).items() if name != "mixer" and np.isfinite(value)}
    return costs if transport.mixer.free else costs | {"mixer": str(transport.mixer)}


def run_as_json(run: Ran, found: StepStatistics, fabric: Fabric) -> dict[str, Any]:
    """What every run of a step has, whatever the step was made from."""
    times, use = found.times, found.link_utilisation
    # Links that carry the same come in the order of their numbers, whatever rounding says.
    hottest = np.argsort(-use.round(ROUNDED), kind="stable")[:MOST_LINKS].tolist()
    return {
        "critical_path": [asdict(part) for part in found.path_by_sort[:MOST_PATH_PARTS]],
        "critical_path_by_purpose_s": found.path_by_purpose_s,
        "hottest_links": [
            {"link": fabric.link_name(link), "utilisation": float(use[link])} for link in hottest if use[link] > 0
        ],
        "ranks": {
            "compute_s": times.compute_s.tolist(),
            "communication_s": times.communication_s.tolist(),
            "exposed_communication_s": times.exposed_communication_s.tolist(),
            "bubble_s": times.bubble_s.tolist(),
        },
        "operations": run.operations,
        "tasks": run.tasks,
        "simulated_tasks": run.simulated_tasks,
        "network": None if run.network is None else run.network.as_json(),
    }
