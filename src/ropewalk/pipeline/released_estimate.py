"""How the planner that DAPPLE's authors released judges a plan: an estimated speed-up over one GPU.

    T / ( block (m-1) + T / (c m) + Σ transfers of a micro-batch + max(0, max_i (sum of gradients_i - i block)) )

where T is the time of the global batch on one GPU, c the copies of the pipeline, m the micro-batches of each and block
the time of a micro-batch in the slowest stage or transfer; stages i count from 0.

Some of what it does is not what a careful reader of the paper would do. `AS_RELEASED` keeps all of it, so that its
published answers come out; `REPAIRED` does not. Memory is not looked at in either, and as many micro-batches are taken
to be in flight as needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ropewalk.arrays import Floats
from ropewalk.errors import StrategyError
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.profile import Profile


@dataclass(frozen=True)
class Habits:
    """What the released planner does that the paper does not say."""

    first_of_next_counted_twice: bool = True
    """The weights of a stage include those of the first state of the next one."""
    gradients_sent_only_when_straight: bool = True
    """Straight pipelines pay for activations and gradients at a cut, pipelines of two stages for activations alone."""
    filling_unreplicated: bool = True
    """The first micro-batch takes as long as on one GPU per copy, however many replicas the stages have."""


AS_RELEASED = Habits()
REPAIRED = Habits(False, False, False)


@dataclass(frozen=True)
class ReleasedStage:
    first: int
    last: int
    """States first..last, both included."""
    gpus: tuple[int, ...]
    """Those of all copies of the pipeline."""


@dataclass(frozen=True)
class ReleasedPlan:
    """A plan and the speed-up over one GPU that the released planner expects of it."""

    stages: tuple[ReleasedStage, ...]
    copies: int
    """Pipelines side by side; the replicas of a stage in one of them are its GPUs divided by this."""
    slowest_s: float
    """Seconds of the whole global batch in the slowest stage or transfer."""
    speedup: float

    @property
    def replicas(self) -> tuple[int, ...]:
        """GPUs of each stage, all copies together: (8, 8) is what the paper writes as 8:8."""
        return tuple(len(stage.gpus) for stage in self.stages)

    @property
    def strategy(self) -> str:
        """As in the paper's table: `DP`, `straight`, or GPUs per stage.

        >>> ReleasedPlan((ReleasedStage(0, 3, (0, 1, 2)), ReleasedStage(4, 9, (3,))), 1, 0.5, 2.5).strategy
        '3:1'
        """
        if len(self.stages) == 1:
            return "DP"
        if set(self.replicas) == {1}:
            return "straight"
        return ":".join(str(count) for count in self.replicas)


class ReleasedEstimate:
    """A model, machines and a batch, ready to judge plans. Costs are of the whole global batch on one GPU."""

    def __init__(
        self, profile: Profile, machines: Machines, global_batch: int, micro_batch: int, habits: Habits = AS_RELEASED
    ) -> None:
        if global_batch < 1 or micro_batch < 1:
            raise StrategyError(
                f"a global batch of {global_batch} in micro-batches of {micro_batch} is not possible: "
                "give 1 or more of each"
            )
        whole = profile.at_batch(global_batch)
        self.states = whole.states
        self.machines = machines
        self.global_batch, self.micro_batch = global_batch, micro_batch
        self.habits = habits
        self.seconds: Floats = whole.forward_s[1:] + whole.backward_s[1:]
        """Both passes of everything up to and including each state."""
        self.weights = whole.parameter_bytes
        self.crossing = whole.crossing_bytes

    def plan(self, stages: tuple[ReleasedStage, ...], copies: int, *, straight: bool = False) -> ReleasedPlan:
        """A plan with its slowest stage or transfer, and the speed-up; 0 where a copy gets no micro-batch at all."""
        slowest = self._slowest(stages, straight)
        micro_batches = self.global_batch // copies // self.micro_batch
        if micro_batches == 0:
            return ReleasedPlan(stages, copies, slowest, 0.0)
        block = slowest / micro_batches
        length = block * (micro_batches - 1) + self._filling(stages, copies) / micro_batches
        for source, target in pairwise(stages):
            length += self._transfer(source, target, self.crossing[source.last] / copies / micro_batches)
        sums = [self.machines.all_reduce(stage.gpus, self._weights(stage)) for stage in stages]
        late = max(0.0, *(sum_s - number * block for number, sum_s in enumerate(sums)))
        return ReleasedPlan(stages, copies, slowest, float(self.seconds[-1] / (length + late)))

    def _slowest(self, stages: tuple[ReleasedStage, ...], straight: bool) -> float:
        ways = 1 if self.habits.gradients_sent_only_when_straight and not straight else 2
        own = [self._own(stage) / len(stage.gpus) for stage in stages]
        moved = [self._transfer(one, other, ways * self.crossing[one.last]) for one, other in pairwise(stages)]
        return float(max(own + moved))

    def _own(self, stage: ReleasedStage) -> float:
        return float(self.seconds[stage.last] - (self.seconds[stage.first - 1] if stage.first else 0.0))

    def _transfer(self, source: ReleasedStage, target: ReleasedStage, size_bytes: float) -> float:
        return self.machines.split_concat(source.gpus, target.gpus, size_bytes)

    def _filling(self, stages: tuple[ReleasedStage, ...], copies: int) -> float:
        if self.habits.filling_unreplicated:
            return float(self.seconds[-1]) / copies
        return sum(self._own(stage) / len(stage.gpus) for stage in stages)

    def _weights(self, stage: ReleasedStage) -> float:
        last = stage.last
        if self.habits.first_of_next_counted_twice:
            last = min(last + 1, self.states - 1)
        return float(self.weights[last + 1] - self.weights[stage.first])
