"""Plans simulated on the cluster's network: the clock proposes, the simulation decides.

The planner's clock gives every hand-over dedicated links and knows no network between servers. So the best plan of
every schedule becomes a strategy, with the plans of other planners beside it. Their steps are lowered and simulated
like any other step, and the fastest with a schedule that was asked for is the answer. So another schedule never makes
the answer slower.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.errors import StrategyError
from ropewalk.hardware import Cluster
from ropewalk.interrupts import unwrapped_interrupts
from ropewalk.pipeline.answer import BEHIND, PipelineAnswer, SimulatedPlan, interrupted_after
from ropewalk.pipeline.judge import Judged
from ropewalk.pipeline.strategy import strategy_of
from ropewalk.progress import Count
from ropewalk.strategy import Strategy
from ropewalk.training import NetworkUse, TrainingQuestion
from ropewalk.training import answer as simulated
from ropewalk.workload.workload import Workload


@dataclass(frozen=True)
class Trained:
    """What is trained, as simulations want to know it."""

    model: str | Workload
    """A workload made in Python, or what `open_workload` reads."""
    workload: Workload
    precision: str = "bf16"
    optimiser: str = "adamw"
    sequence: int | None = None


def on_cluster(
    answer: PipelineAnswer,
    subject: Trained,
    cluster: Cluster,
    network: NetworkUse | None = None,
    progress: Count | None = None,
) -> PipelineAnswer:
    """The answer with its best plans simulated; those that do not fit are left out.

    The fastest come first, plans of others with schedules that were not asked for behind them.
    """
    chosen = contenders(answer, subject, cluster.gpus)
    runs: list[SimulatedPlan] = []
    refused: list[StrategyError] = []
    for number, (strategy, plans) in enumerate(chosen.items()):
        if progress is not None:
            progress(number, len(chosen))
        question = TrainingQuestion(
            subject.model,
            cluster,
            sequence=subject.sequence,
            decided=strategy,
            precision=subject.precision,
            network=network or NetworkUse(),
        )
        try:
            with unwrapped_interrupts():
                training = simulated(question)
        except KeyboardInterrupt:
            if not any(run.judged.plan.schedule in answer.terms.schedules for run in runs):
                raise
            answer = replace(answer, searched=interrupted_after(answer.searched.plans))
            break
        except StrategyError as error:
            refused.append(error)
        else:
            runs += [SimulatedPlan(judged, strategy, training) for judged in plans]
    asked = answer.terms.schedules
    runs.sort(key=lambda run: (run.judged.plan.schedule not in asked, run.step_s, run.judged.step_s))
    if not runs or runs[0].judged.plan.schedule not in asked:
        raise refused[0]
    return replace(answer, best=runs[0].judged, simulated=tuple(runs))


def contenders(answer: PipelineAnswer, subject: Trained, gpus: int) -> dict[Strategy, list[Judged]]:
    """The best plan of every schedule and the plans of other planners; plans may differ only in their names."""
    others = [other.judged for other in answer.alternatives if other.judged is not None and other.name != BEHIND]
    found: dict[Strategy, list[Judged]] = {}
    for judged in sorted((answer.best, *answer.contenders, *others), key=lambda judged: judged.step_s):
        strategy = strategy_of(
            judged, subject.workload, subject.optimiser, overlap_sums=answer.terms.overlap_sums, gpus=gpus
        )
        found.setdefault(strategy, []).append(judged)
    return found
