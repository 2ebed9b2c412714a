"""Every plan, timed one by one: what planners are checked against.

No bound, no symmetry, no formula: all cuts, all assignments of GPUs to stages (idle ones included), all schedules.
Only for a handful of states and GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from ropewalk.errors import StrategyError
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.judge import Judged, judge
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.schedules import FITTED, homes
from ropewalk.strategy.part import Part

MOST_STATES = 8
MOST_GPUS = 4


def brute_force(costs: Costs) -> Judged:
    """The plan with the shortest step by the clock, the first of equal ones."""
    if costs.states > MOST_STATES or costs.machines.gpus > MOST_GPUS:
        raise StrategyError(
            f"{costs.states} states on {costs.machines.gpus} GPUs have too many plans to time one by one: take at most "
            f"{MOST_STATES} states and {MOST_GPUS} GPUs, or plan"
        )
    best: Judged | None = None
    for plan in all_plans(costs):
        judged = judge(costs, plan)
        if isinstance(judged, Judged) and (best is None or judged.step_s < best.step_s):
            best = judged
    if best is None:
        raise StrategyError("no plan fits: give GPUs more memory, allow recomputation or smaller micro-batches")
    return best


def all_plans(costs: Costs) -> Iterator[PipelinePlan]:
    """Every plan that can be written down under the terms."""
    terms, gpus = costs.terms, costs.machines.gpus
    for schedule in terms.schedules:
        if schedule == FITTED:
            continue
        for devices in range(1, gpus + 1):
            places = homes(schedule, devices)
            for sets, cuts in product(_assignments(gpus, devices), _cuts(costs.states, len(places))):
                for tensors in product(terms.tensor, repeat=devices):
                    if any(len(sets[device]) % tensors[device] for device in range(devices)):
                        continue
                    stages = tuple(
                        Part(cuts[at], cuts[at + 1] - 1, sets[home], tensors[home]) for at, home in enumerate(places)
                    )
                    for size, recompute in product(terms.micro_batch_sizes(), terms.recompute):
                        yield PipelinePlan(stages, schedule, size, terms.global_batch // size, recompute)


def _assignments(gpus: int, devices: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every GPU on one of the devices or idle, no device without a GPU."""
    for homes_of_gpus in product(range(-1, devices), repeat=gpus):
        sets = tuple(tuple(gpu for gpu in range(gpus) if homes_of_gpus[gpu] == device) for device in range(devices))
        if all(sets):
            yield sets


def _cuts(states: int, pieces: int) -> Iterator[tuple[int, ...]]:
    """Where pieces begin, and the end; nothing where there are more pieces than states."""
    for inner in combinations(range(1, states), pieces - 1):
        yield (0, *inner, states)
