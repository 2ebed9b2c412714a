"""A plan: which states of a model which GPUs hold, and in which order they work on micro-batches."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.errors import Findings, StrategyError
from ropewalk.pipeline.schedules import copies
from ropewalk.strategy.part import Part
from ropewalk.words import in_ranges


@dataclass(frozen=True)
class PipelinePlan:
    """Stages in the order of the model, and how a step runs through them.

    A micro-batch is split over the replicas of each stage. Pipelines side by side, each with micro-batches of its own,
    are the same thing with larger micro-batches. Where a timetable gives GPUs several pieces of the model, every piece
    is a stage here and GPUs occur several times. Where a timetable keeps two copies of the model (DualPipe), stages are
    those of the first, and the second lies on the same GPUs from the last stage to the first.
    """

    stages: tuple[Part, ...]
    """States of the model where a part says layers, GPUs where it says workers."""
    schedule: str
    micro_batch: int
    """Samples of a micro-batch, over all replicas of a stage."""
    micro_batches: int
    recompute: bool = False

    @property
    def global_batch(self) -> int:
        return self.micro_batch * self.micro_batches

    @property
    def devices(self) -> tuple[tuple[int, ...], ...]:
        """The GPU sets of the plan, each once, in the order in which the model first meets them."""
        return tuple(dict.fromkeys(stage.workers for stage in self.stages))

    @property
    def pieces(self) -> tuple[Part, ...]:
        """What GPUs hold: the stages, and behind them those of a second copy of the model.

        >>> plan = PipelinePlan((Part(0, 3, (0, 1, 2)), Part(4, 9, (3,))), "dualpipe", 8, 4)
        >>> plan.pieces[2]
        Part(first=0, last=3, workers=(3,), tensor=1, manner=<Manner.SAMPLE: 'sample'>)
        """
        if copies(self.schedule) == 1:
            return self.stages
        ends = zip(self.stages, reversed(self.stages), strict=True)
        return self.stages + tuple(replace(one, workers=other.workers, tensor=other.tensor) for one, other in ends)

    @property
    def homes(self) -> tuple[int, ...]:
        """The place among `devices` of every piece."""
        place = {gpus: at for at, gpus in enumerate(self.devices)}
        return tuple(place[piece.workers] for piece in self.pieces)

    @property
    def gpus(self) -> int:
        """How many GPUs work."""
        return sum(len(gpus) for gpus in self.devices)

    @property
    def replicas(self) -> tuple[int, ...]:
        return tuple(stage.replicas for stage in self.stages)

    @property
    def strategy(self) -> str:
        """As the literature writes it: `DP`, `straight`, or GPUs per stage.

        >>> PipelinePlan((Part(0, 3, (0, 1, 2)), Part(4, 9, (3,))), "1f1b", 8, 4).strategy
        '3:1'
        """
        if len(self.devices) == 1:
            return "DP"
        if all(len(gpus) == 1 for gpus in self.devices):
            return "straight"
        return ":".join(str(len(gpus)) for gpus in self.devices)

    def check(self, states: int, gpus: int) -> None:
        """Every state once and in order, every GPU in one place, every sample in one micro-batch."""
        findings = Findings(StrategyError, "plan")
        if not self.stages:
            findings.add("it has no stages: give at least one")
        expected = 0
        for number, stage in enumerate(self.stages):
            if stage.first != expected or stage.last < stage.first:
                findings.add(
                    f"stage {number} has states {stage.first} to {stage.last} where {expected} comes next: "
                    "give each state once and in order"
                )
            expected = stage.last + 1
            if not stage.workers or stage.tensor < 1 or len(stage.workers) % max(stage.tensor, 1):
                findings.add(
                    f"stage {number} has {len(stage.workers)} GPUs in groups of {stage.tensor}: give it whole groups"
                )
        if self.stages and expected != states:
            findings.add(f"its stages end with state {expected - 1} of {states}: give the last stage the rest")
        used = [gpu for shared in self.devices for gpu in shared]
        if len(set(used)) != len(used):
            findings.add("two stages share some but not all GPUs: let them share all or none")
        if any(not 0 <= gpu < gpus for gpu in used):
            findings.add(f"it names a GPU that is not there: count from 0 to {gpus - 1}")
        if self.micro_batch < 1 or self.micro_batches < 1:
            findings.add(f"{self.micro_batches} micro-batches of {self.micro_batch} samples: give 1 or more of each")
        findings.raise_if_any()

    def __str__(self) -> str:
        parts = [f"{stage.first}-{stage.last}@{in_ranges(stage.workers)}" for stage in self.stages]
        again = " with recomputation" if self.recompute else ""
        return f"{' | '.join(parts)} {self.schedule}, {self.micro_batches} x {self.micro_batch} samples{again}"
