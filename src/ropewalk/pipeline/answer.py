"""The answer to how a model should be cut: the best plan, why it takes as long as it does, and what else was tried."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ropewalk.hardware import as_json
from ropewalk.pipeline.judge import Judged
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.profile import Profile
from ropewalk.pipeline.terms import Terms
from ropewalk.strategy import Strategy
from ropewalk.training import TrainingAnswer
from ropewalk.training.checked import Expected


@dataclass(frozen=True, eq=False)
class PipelineAlternative:
    """Another way to run the step, under the same costs."""

    name: str
    what: str
    """In a few words, where it comes from."""
    judged: Judged | None
    reason: str = ""
    """Why it has no step time."""

    @property
    def step_s(self) -> float | None:
        return None if self.judged is None else self.judged.step_s


@dataclass(frozen=True, eq=False)
class SimulatedPlan:
    """A plan whose step was simulated on the cluster's network."""

    judged: Judged
    strategy: Strategy
    training: TrainingAnswer

    @property
    def step_s(self) -> float:
        return self.training.statistics.step_time_s


@dataclass(frozen=True)
class PipelineSearch:
    """How far the planner looked."""

    exact: bool
    """Was every plan looked at or bounded away? Otherwise the best of the search, which may not be the best of all."""
    plans: int
    """How many plans the clock has run."""
    restrictions: tuple[str, ...] = ()
    """What was left out to stay within reason."""


def interrupted_after(plans: int) -> PipelineSearch:
    """A search that somebody ended when so many plans were timed."""
    return PipelineSearch(False, plans, ("interrupted: this is the best so far",))


@dataclass(frozen=True, eq=False)
class PipelineAnswer:
    """The best plan that was found for a model on machines, beside all others."""

    profile: Profile
    machines: Machines
    terms: Terms
    best: Judged
    alternatives: tuple[PipelineAlternative, ...]
    searched: PipelineSearch
    single_gpu_s: float
    """All samples of a step at once on one GPU, were its memory large enough."""
    contenders: tuple[Judged, ...] = ()
    """The best plan of each schedule."""
    simulated: tuple[SimulatedPlan, ...] = ()
    """Plans that were simulated, the best first; none where nobody asked."""

    @property
    def step_s(self) -> float:
        """By the planner's clock, as all alternatives."""
        return self.best.step_s

    @property
    def promised_s(self) -> float:
        """The step of the best plan: simulated on the network where it was, otherwise by the clock."""
        return self.simulated[0].step_s if self.simulated else self.step_s

    @property
    def expected(self) -> Expected | None:
        """The interval around the simulated step; None where only the clock has run."""
        return self.simulated[0].training.expected if self.simulated else None

    def simulated_s(self, judged: Judged | None) -> float | None:
        """The simulated step of a plan, None where it was not simulated."""
        return next((run.step_s for run in self.simulated if run.judged is judged), None)

    def to_best(self, judged: Judged) -> float:
        """How many times as long a plan takes as the best: both simulated, or both by the clock."""
        simulated = self.simulated_s(judged)
        return judged.step_s / self.step_s if simulated is None else simulated / self.promised_s

    def shown_s(self, judged: Judged) -> float:
        """The step of a plan beside the promised one: simulated, or what the clock makes of it in proportion."""
        return self.to_best(judged) * self.promised_s

    def alternative(self, name: str) -> PipelineAlternative:
        """The alternative of that name."""
        return next(other for other in self.alternatives if other.name == name)

    @property
    def data_parallel_s(self) -> float | None:
        """A step of plain data parallelism that adds up gradients while it runs back; None where it does not fit."""
        return self.alternative(DATA_PARALLEL).step_s

    @property
    def speedup_over_dp(self) -> float | None:
        """Simulated against simulated where both were, otherwise by the clock."""
        whole = self.simulated_s(self.alternative(DATA_PARALLEL).judged)
        if whole is not None:
            return whole / self.promised_s
        whole = self.data_parallel_s
        return None if whole is None else whole / self.step_s

    def why(self) -> str:
        """What the step is made of, in a sentence."""
        best, at = self.best, self.best.bottleneck
        took = f"{best.loads[at] * 1e3:.3g} ms per micro-batch"
        where = f"the cut after stage {at // 2}, {took} per direction" if at % 2 else f"stage {at // 2}, {took}"
        return (
            f"the bottleneck is {where}; GPUs idle {best.run.bubble * 100:.1f} % of the step; "
            f"{best.exposed_sums_s * 1e3:.3g} ms of all-reduce is not hidden"
        )

    def as_json(self) -> dict[str, Any]:
        """The answer in plain types, with the keys that scripts rely on."""
        best = self.best
        return {
            "model": self.profile.name,
            "gpus": self.machines.gpus,
            "machines": list(self.machines.separators),
            "cluster": as_json(self.simulated[0].training.question.place) if self.simulated else None,
            "global_batch": self.terms.global_batch,
            **_described(best, self.profile),
            "step_time_s": self.promised_s,
            "interval": None if self.expected is None else asdict(self.expected),
            "estimated_step_time_s": self.step_s,
            "samples_per_s": best.plan.global_batch / self.promised_s,
            "simulated": bool(self.simulated),
            "why": self.why(),
            "speedup_over_dp": self.speedup_over_dp,
            "speedup_over_one_gpu": self.single_gpu_s / self.step_s,
            "exact": self.searched.exact,
            "plans_timed": self.searched.plans,
            "restrictions": list(self.searched.restrictions),
            "alternatives": [_alternative(other, self) for other in self.alternatives],
        }


BEHIND = "data-parallel-behind"
"""Data parallelism that adds up gradients behind the backward pass; the literature's yardstick."""
DATA_PARALLEL = "data-parallel"
"""The alternative that every plan is measured against: gradients are added up while the last micro-batch runs back."""


def _described(judged: Judged, profile: Profile) -> dict[str, Any]:
    plan, times = judged.plan, judged.run.times
    count = len(plan.stages)
    rows = [
        {
            "layers": [piece.first, piece.last],
            "names": [profile.names[piece.first], profile.names[piece.last]],
            "gpus": list(piece.workers),
            "replicas": piece.replicas,
            "tensor": piece.tensor,
            "share_of_batch": count / len(plan.pieces) / piece.replicas,
            "forward_s": float(times.forward[number]),
            "backward_s": float(times.backward[number] + times.weight[number]),
            "all_reduce_s": float(times.all_reduce[number]),
        }
        for number, piece in enumerate(plan.pieces)
    ]
    memory = dict(zip(plan.devices, judged.memory_bytes, strict=True))
    average = dict(zip(plan.devices, judged.average_memory_bytes, strict=True))
    return {
        "strategy": plan.strategy,
        "schedule": plan.schedule,
        "micro_batch": plan.micro_batch,
        "micro_batches": plan.micro_batches,
        "recompute": plan.recompute,
        "step_time_s": judged.step_s,
        "samples_per_s": plan.global_batch / judged.step_s,
        "bubble_share": judged.run.bubble,
        "exposed_all_reduce_s": judged.exposed_sums_s,
        "bottleneck": f"{'cut after stage' if judged.bottleneck % 2 else 'stage'} {judged.bottleneck // 2}",
        "stages": rows[:count],
        **({"second_copy": rows[count:]} if rows[count:] else {}),
        "memory_bytes": [memory[stage.workers] for stage in plan.stages],
        "average_memory_bytes": [average[stage.workers] for stage in plan.stages],
    }


def _alternative(other: PipelineAlternative, answer: PipelineAnswer) -> dict[str, Any]:
    """Without its stages where there is no plan, with the reason instead."""
    simulated = answer.simulated_s(other.judged)
    row: dict[str, Any] = {
        "name": other.name, "what": other.what, "estimated_step_time_s": other.step_s,
        "step_time_s": simulated if answer.simulated else other.step_s,
    }  # fmt: skip
    if other.judged is None:
        return {**row, "reason": other.reason}
    return {
        **row,
        "speedup_of_best": answer.to_best(other.judged),
        "strategy": other.judged.plan.strategy,
        "schedule": other.judged.plan.schedule,
        "plan": str(other.judged.plan),
        "memory_bytes": max(other.judged.memory_bytes),
        "average_memory_bytes": max(other.judged.average_memory_bytes),
        "bubble_share": other.judged.run.bubble,
    }
