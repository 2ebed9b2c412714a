"""Pipelines with cuts, replicas and timetables of their own, as the pipeline planner proposes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ropewalk.errors import InputError
from ropewalk.pipeline.on_cluster import contenders
from ropewalk.pipeline.planner import plan
from ropewalk.pipeline.profile import is_measured
from ropewalk.pipeline.question import PipelineQuestion
from ropewalk.pipeline.schedules import FITTED
from ropewalk.pipeline.width import FEW_GPUS, Width, round_counts
from ropewalk.planner.answer import Option
from ropewalk.planner.pricing import StrategyPrices
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import USUAL_SCHEDULES
from ropewalk.strategy.by_stack import as_run_by
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.strategy import Strategy
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo.stacks import stack_of

WHOLE_SEARCH = 16
"""GPUs up to which the pipeline planner looks at everything it can, in seconds."""


def proposes(question: PlannerQuestion, workload: Workload) -> bool:
    """Is the pipeline planner asked? Where layers were measured, or where what no framework runs is allowed.

    Measured layers can be cut and copied, nothing else, and that is what it is made for. Other models have most of what
    it would propose and a framework runs in their space already, and the search takes long. It is not asked where its
    choices are narrowed by hand.
    """
    space = question.space
    unusual = space.usual not in (Strategy(), as_run_by(stack_of(workload), Strategy()))
    narrowed = space.tensor or space.pipeline or space.micro_batch or space.interleave or unusual
    wanted = is_measured(workload) or "unrunnable" in question.allow
    return bool(wanted and not narrowed and question.cluster.gpus > 1 and 0 in space.zero and "none" in space.recompute)


def pipelines(question: PlannerQuestion, prices: StrategyPrices, say: Callable[[str], None]) -> Iterator[Option]:
    """The best pipeline of every schedule and those of other planners, each with ZeRO-1 too; not simulated yet.

    Where the model cannot be cut like that (none of its layers takes time, samples do not divide) there are none.
    """
    space, cluster = question.space, question.cluster
    fitted = (FITTED,) if space.schedules == USUAL_SCHEDULES else ()
    say("searching cuts, replicas and timetables of pipelines")
    try:
        asked = PipelineQuestion(
            question.model, cluster, question.batch, sequence=question.sequence, precision=question.precision,
            optimiser=space.usual.optimiser, schedules=(*space.schedules, *fitted),
            recompute=(False, True) if "full" in space.recompute else (False,),
        )  # fmt: skip
        found = plan(asked.subject.model, asked.machines, asked.terms, width=_width(cluster.gpus))
        strategies = list(contenders(found, asked.subject.trained, cluster.gpus))
    except InputError:
        return
    for strategy in strategies:
        if strategy.micro_batch * strategy.micro_batches * strategy.data != question.batch:
            continue
        sharded = 1 in space.zero and any(one.replicas > 1 for one in strategy.parts or (strategy,))
        for one in (strategy, replace(strategy, zero=1)) if sharded else (strategy,):
            yield Option(one, DEFAULT_ORDER, prices.use.algorithm, float("inf"), prices.memory_of(one))


def _width(gpus: int) -> Width | None:
    """How far the pipeline planner looks: as usual on few and on many GPUs, where its own limits make it quick."""
    between = WHOLE_SEARCH < gpus <= FEW_GPUS
    return Width(slots=6, sets=6, replicas=round_counts(gpus, between=True), groups=64, sizes=3) if between else None
