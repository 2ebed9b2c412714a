"""A plan as a strategy: what the planner found, in the words that simulations, memory and plan files understand."""

from __future__ import annotations

from ropewalk.errors import StrategyError
from ropewalk.pipeline.judge import Judged
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.schedules import pieces_each
from ropewalk.strategy import Order, Strategy
from ropewalk.timetable.named import TIMETABLES, timetable
from ropewalk.timetable.table import Timetable
from ropewalk.timetable.written import rows_of
from ropewalk.workload.workload import Workload


def strategy_of(
    judged: Judged, workload: Workload, optimiser: str = "adamw", *, overlap_sums: bool = True, gpus: int | None = None
) -> Strategy:
    """The strategy of a plan for this workload, whose layers are the states that were planned over.

    Stages become parts with their own replicas. Where all have as many, on all `gpus` one after the other and with
    as many samples each, they become degrees, which frameworks can run. A timetable that was made for the plan, for
    its times or for its memory, goes along row by row.
    """
    plan = judged.plan
    if plan.stages[-1].last + 1 != len(workload.layers):
        raise StrategyError(
            f"the plan cuts {plan.stages[-1].last + 1} states, but {workload.name} has {len(workload.layers)} layers: "
            "plan over its layers (profile_of), not over sets of them"
        )
    devices = len(plan.devices)
    rows = _rows(plan, judged.run.timetable)
    several = TIMETABLES[plan.schedule].any_pieces and not rows
    usual = Strategy(
        pipeline=devices,
        micro_batches=plan.micro_batches,
        schedule=plan.schedule,
        interleave=pieces_each(plan.schedule) if several else 1,
        recompute="stage" if plan.recompute else "none",
        order=Order(overlap=overlap_sums),
        optimiser=optimiser,
    )
    first, size = plan.stages[0], plan.micro_batch
    if _is_even(plan) and gpus in (None, plan.gpus):
        degrees = {"data": first.replicas, "tensor": first.tensor, "micro_batch": size // first.replicas}
        if devices == 1:
            return Strategy(**{**vars(usual), **degrees, "schedule": "1f1b"})
        stages = tuple(stage.first for stage in plan.stages)
        return Strategy(**{**vars(usual), **degrees, "stages": stages, "rows": rows})
    return Strategy(**{**vars(usual), "micro_batch": size, "parts": plan.stages, "rows": rows})


def _is_even(plan: PipelinePlan) -> bool:
    """Have all devices as many GPUs, numbered one after the other, and all replicas as many samples?"""
    return (
        len({(len(stage.workers), stage.tensor) for stage in plan.stages}) == 1
        and tuple(gpu for workers in plan.devices for gpu in workers) == tuple(range(plan.gpus))
        and plan.micro_batch % plan.stages[0].replicas == 0
    )


def _rows(plan: PipelinePlan, table: Timetable) -> tuple[str, ...]:
    """The rows of a timetable that its name does not give; none where the name is enough."""
    try:
        known = timetable(plan.schedule, len(plan.devices), plan.micro_batches)
    except StrategyError:
        return rows_of(table)
    rows = rows_of(table)
    return () if rows == rows_of(known) else rows
