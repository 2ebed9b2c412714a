"""Every plan of a small instance, except those that a bound rules out.

The dynamic program ranks by a formula and keeps a few plans where there are many, so it may miss the best one. Where a
model has a few states and machines a few GPUs, this search looks at all of them: cuts, numbers of GPUs on each machine
for each stage (GPUs of a machine are alike), idle GPUs, tensor degrees, schedules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from ropewalk.pipeline.contest import ROUNDING, Contest, with_pieces
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.schedules import copies, homes, splits_backward
from ropewalk.strategy.part import Part

MOST_STATES = 8
MOST_GPUS = 4


def is_small(costs: Costs) -> bool:
    """Can every plan be looked at?"""
    return costs.states <= MOST_STATES and costs.machines.gpus <= MOST_GPUS


def search_all(contest: Contest) -> None:
    """Leaves the best of all plans in the contest."""
    costs, terms = contest.costs, contest.costs.terms
    straight = with_pieces(terms.schedules, 1)
    twofold = with_pieces(terms.schedules, 2)
    alike = [tuple(name for name in straight if copies(name) == count) for count in (1, 2)]
    for size, recompute in product(terms.micro_batch_sizes(), terms.recompute):
        empty = PipelinePlan((), "1f1b", size, terms.global_batch // size, recompute)
        for names in filter(None, alike):
            whole = not any(splits_backward(name) for name in names)
            start = replace(empty, schedule=names[0])
            for plan in _plans(contest, start, (0,) * costs.machines.count, 0.0, 0.0, whole):
                contest.enter(plan, names, contest.best_s)
        for name in twofold:
            for plan in _twofold(costs, name, empty):
                contest.enter(plan, (name,), contest.best_s)


def _plans(
    contest: Contest, plan: PipelinePlan, used: tuple[int, ...], before: float, back: float, whole_backward: bool
) -> Iterator[PipelinePlan]:
    """All ways to go on with these stages; `before` and `back` are what passes take that lie in front of the next.

    With two copies of the model GPUs run half of the micro-batches through a stage, and may begin with the other one.
    """
    costs = contest.costs
    first = plan.stages[-1].last + 1 if plan.stages else 0
    if first == costs.states:
        yield plan
        return
    for taken in _takings(costs, used):
        gpus = _gpus(costs, used, taken)
        after = tuple(map(sum, zip(used, taken, strict=True)))
        for tensor in costs.terms.tensor:
            if len(gpus) % tensor:
                continue
            for last in range(first, costs.states):
                if last < costs.states - 1 and sum(after) == costs.machines.gpus:
                    continue
                stage = Part(first, last, gpus, tensor)
                send = costs.handover(plan.stages[-1], stage, plan.micro_batch) if plan.stages else 0.0
                forward, backward = costs.passes(stage, plan.micro_batch)
                backward += forward * plan.recompute
                many = copies(plan.schedule)
                bound = (before + send if many == 1 else 0.0) + plan.micro_batches / many * (forward + backward)
                if whole_backward:
                    bound += back + send
                if bound > contest.best_s * (1 + ROUNDING):
                    continue
                more = PipelinePlan(
                    (*plan.stages, stage), plan.schedule, plan.micro_batch, plan.micro_batches, plan.recompute
                )
                yield from _plans(contest, more, after, before + send + forward, back + send + backward, whole_backward)


def _twofold(costs: Costs, schedule: str, empty: PipelinePlan) -> Iterator[PipelinePlan]:
    """All plans with two chunks per device."""
    for devices in range(1, min(costs.machines.gpus, costs.states // 2) + 1):
        places = homes(schedule, devices)
        for sets in _device_sets(costs, (0,) * costs.machines.count, devices):
            for tensors in product(costs.terms.tensor, repeat=devices):
                if any(len(gpus) % tensor for gpus, tensor in zip(sets, tensors, strict=True)):
                    continue
                for cuts in combinations(range(1, costs.states), 2 * devices - 1):
                    bounds = (0, *cuts, costs.states)
                    stages = tuple(
                        Part(bounds[at], bounds[at + 1] - 1, sets[home], tensors[home])
                        for at, home in enumerate(places)
                    )
                    yield PipelinePlan(stages, schedule, empty.micro_batch, empty.micro_batches, empty.recompute)


def _device_sets(costs: Costs, used: tuple[int, ...], devices: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    if devices == 0:
        yield ()
        return
    for taken in _takings(costs, used):
        gpus = _gpus(costs, used, taken)
        for more in _device_sets(costs, tuple(map(sum, zip(used, taken, strict=True))), devices - 1):
            yield (gpus, *more)


def _takings(costs: Costs, used: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """How many free GPUs of each machine, not none of all."""
    sizes = np.diff([0, *costs.machines.separators]).tolist()
    for taken in product(*(range(size - gone + 1) for size, gone in zip(sizes, used, strict=True))):
        if any(taken):
            yield taken


def _gpus(costs: Costs, used: tuple[int, ...], taken: tuple[int, ...]) -> tuple[int, ...]:
    starts = (0, *costs.machines.separators[:-1])
    return tuple(
        start + gone + more for start, gone, count in zip(starts, used, taken, strict=True) for more in range(count)
    )
