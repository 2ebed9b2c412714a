"""Better plans next to a good one: cuts moved, GPUs moved, by the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ropewalk.pipeline.contest import Contest
from ropewalk.pipeline.judge import Judged
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.schedules import pieces_each
from ropewalk.strategy.part import Part

Moves = Callable[[PipelinePlan, Machines, int], Iterator[PipelinePlan]]


def refined(
    contest: Contest, start: Judged, schedules: tuple[str, ...], most: int, moves: Moves | None = None
) -> Judged:
    """The plan after as many improving moves as there are (`neighbours` unless given), and at most `most` plans timed.

    The first move that improves is made. Cuts move by many states while that helps, then by fewer.
    """
    best = start
    until = contest.timed + most
    step = max(1, best.plan.stages[-1].last // (8 * len(best.plan.stages)))
    while step:
        found = _improvement(contest, best, schedules, step, until, moves or neighbours)
        if found is None:
            step //= 2
        else:
            best = found
    return best


def _improvement(
    contest: Contest, best: Judged, schedules: tuple[str, ...], step: int, until: int, moves: Moves
) -> Judged | None:
    for plan in moves(best.plan, contest.costs.machines, step):
        if contest.timed >= until:
            return None
        found = contest.enter(plan, schedules, best.step_s)
        if found is not None and found.step_s < best.step_s * (1 - 1e-9):
            return found
    return None


def neighbours(plan: PipelinePlan, machines: Machines, step: int) -> Iterator[PipelinePlan]:
    """Plans with one cut moved by `step` states, one replica's GPUs moved to a stage next to it, or idle GPUs used."""
    yield from cuts_moved(plan, machines, step)
    if pieces_each(plan.schedule) == 1 and step == 1:
        yield from _gpus_moved(plan)
        yield from _idle_used(plan, machines)


def cuts_moved(plan: PipelinePlan, machines: Machines, step: int) -> Iterator[PipelinePlan]:
    """Plans with one cut moved by `step` states, GPUs as they are."""
    for cut in range(len(plan.stages) - 1):
        before, behind = plan.stages[cut : cut + 2]
        for move in (-step, step):
            if before.last + move >= before.first and behind.first + move <= behind.last:
                yield _with(
                    plan, cut, replace(before, last=before.last + move), replace(behind, first=behind.first + move)
                )


def _gpus_moved(plan: PipelinePlan) -> Iterator[PipelinePlan]:
    """A replica of a stage gives its GPUs to the stage before or behind it."""
    for cut in range(len(plan.stages) - 1):
        before, behind = plan.stages[cut : cut + 2]
        if before.tensor == behind.tensor:
            ahead, back = before.workers, behind.workers
            if before.replicas > 1:
                yield _with(
                    plan, cut, replace(before, workers=ahead[: -before.tensor]),
                    replace(behind, workers=tuple(sorted(ahead[-before.tensor :] + back))),
                )  # fmt: skip
            if behind.replicas > 1:
                yield _with(
                    plan, cut, replace(before, workers=tuple(sorted(ahead + back[: behind.tensor]))),
                    replace(behind, workers=back[behind.tensor :]),
                )  # fmt: skip


def _idle_used(plan: PipelinePlan, machines: Machines) -> Iterator[PipelinePlan]:
    """A stage gets one more replica of idle GPUs, of its own machines where there are some."""
    used = {gpu for gpus in plan.devices for gpu in gpus}
    idle = [gpu for gpu in range(machines.gpus) if gpu not in used]
    for number, stage in enumerate(plan.stages):
        at_home = {machines.machine_of(gpu) for gpu in stage.workers}
        nearest = sorted(idle, key=lambda gpu: (machines.machine_of(gpu) not in at_home, gpu))[: stage.tensor]
        if len(nearest) == stage.tensor:
            more = replace(stage, workers=tuple(sorted((*stage.workers, *nearest))))
            yield replace(plan, stages=(*plan.stages[:number], more, *plan.stages[number + 1 :]))


def _with(plan: PipelinePlan, cut: int, before: Part, behind: Part) -> PipelinePlan:
    return replace(plan, stages=(*plan.stages[:cut], before, behind, *plan.stages[cut + 2 :]))
