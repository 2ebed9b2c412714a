"""The planner that DAPPLE's authors released, as a baseline: what it searches.

It looks at three families: one stage on 2 … G GPUs (where its dynamic program always ends, because it leaves the sum
of gradients out of the cost of a stage), straight pipelines of 2 and of G stages whose copies are placed by the three
policies, and every cut in two with every split of the GPUs. Of all it takes the highest estimated speed-up
(`released_estimate.py`). `planner.py` plans in earnest.

Where cuts of a straight pipeline are equally good, the released program takes whichever its hash table lists first;
here it is the earliest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats
from ropewalk.errors import StrategyError
from ropewalk.pipeline._straight import next_stage
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.masks import members
from ropewalk.pipeline.placement import candidates, replicated
from ropewalk.pipeline.profile import Profile
from ropewalk.pipeline.released_estimate import AS_RELEASED, Habits, ReleasedEstimate, ReleasedPlan, ReleasedStage


@dataclass(frozen=True, eq=False)
class States:
    """A profile, and which of its states contains which: of a model with branches, two need not contain each other."""

    profile: Profile
    contains: NDArray[np.bool_]
    """[S, S]: does state j contain state i and more?"""


def in_a_row(profile: Profile) -> States:
    """States each of which contains all before it."""
    return States(profile, np.triu(np.ones((profile.states, profile.states), bool), 1))


@dataclass(frozen=True)
class ReleasedAnswer:
    """The best plan, and all that it was compared with."""

    best: ReleasedPlan
    data_parallel: tuple[ReleasedPlan, ...]
    straight: tuple[ReleasedPlan, ...]
    two_stages: ReleasedPlan | None


def released_plan(
    states: States, machines: Machines, global_batch: int, micro_batch: int, habits: Habits = AS_RELEASED
) -> ReleasedAnswer:
    """What the released planner answers for a model, machines and a batch."""
    if machines.gpus < 2:
        raise StrategyError("a pipeline needs two GPUs, and there is one: add GPUs")
    estimate = ReleasedEstimate(states.profile, machines, global_batch, micro_batch, habits)
    gpus = machines.gpus
    lengths = (2, gpus) if gpus > 2 and gpus % 2 == 0 else (gpus,)
    data_parallel = tuple(one_stage(estimate, replicas) for replicas in range(2, gpus + 1))
    straight = tuple(
        straight_pipeline(estimate, states.contains, length) for length in lengths if length <= estimate.states
    )
    halves = two_stages(estimate) if estimate.states > 1 else None
    everything = [*data_parallel, *straight, *([halves] if halves else [])]
    return ReleasedAnswer(max(everything, key=lambda plan: plan.speedup), data_parallel, straight, halves)


def one_stage(estimate: ReleasedEstimate, replicas: int) -> ReleasedPlan:
    """The whole model on `replicas` GPUs, as often as there is room for it."""
    copies = estimate.machines.gpus // replicas
    stage = ReleasedStage(0, estimate.states - 1, tuple(range(replicas * copies)))
    return estimate.plan((stage,), copies)


def two_stages(estimate: ReleasedEstimate) -> ReleasedPlan:
    """Every cut, every split of the GPUs, every placement of the first stage; ties go to the first of them."""
    machines, last = estimate.machines, estimate.states - 1
    placements = [
        (members(first), members(second))
        for replicas in range(1, machines.gpus)
        for first in candidates(machines, 0, replicas)
        for second in candidates(machines, first, machines.gpus - replicas)
    ]
    plans = (
        estimate.plan((ReleasedStage(0, cut, first), ReleasedStage(cut + 1, last, second)), 1)
        for cut in range(last)
        for first, second in placements
    )
    return max(plans, key=lambda plan: plan.speedup)


def straight_pipeline(estimate: ReleasedEstimate, contains: NDArray[np.bool_], length: int) -> ReleasedPlan:
    """`length` stages of one GPU in each copy, the slowest as fast as can be; ties go to the earliest cuts."""
    copies = estimate.machines.gpus // length
    rows = [_first_row(estimate, copies)]
    for _ in range(1, length):
        rows.append(_next_row(estimate, contains, rows[-1], copies))
    last = estimate.states - 1
    occupied = min(range(len(rows[-1].occupied)), key=lambda number: rows[-1].rank(number, last))
    if rows[-1].slowest[occupied, last] == np.inf:
        raise StrategyError(
            f"no {length} states of {estimate.states} are consecutive: give a model with more consecutive layers"
        )
    stages = []
    for row in reversed(rows):
        before = int(row.behind[occupied, last])
        stages.append(ReleasedStage(before + 1, last, members(row.gpu_sets[row.sets[occupied, last]])))
        occupied, last = int(row.came_from[occupied, last]), before
    return estimate.plan(tuple(reversed(stages)), copies, straight=True)


@dataclass(frozen=True)
class _Row:
    """Pipelines of one length: arrays [occupied set, state at which they end]."""

    occupied: tuple[int, ...]
    gpu_sets: tuple[int, ...]
    slowest: Floats
    sets: NDArray[np.int64]
    """Which of `gpu_sets` the last stage has."""
    behind: NDArray[np.int64]
    came_from: NDArray[np.int64]
    """The occupied set before the last stage."""
    way: NDArray[np.int64]

    def rank(self, occupied: int, state: int) -> tuple[float, int, int]:
        """The order in which the search prefers: fastest, then the earliest cut, then the first way to place it."""
        return (
            float(self.slowest[occupied, state]), int(self.behind[occupied, state]), int(self.way[occupied, state])
        )  # fmt: skip


def _first_row(estimate: ReleasedEstimate, copies: int) -> _Row:
    """First stages on the lowest GPUs, which is where Fresh First puts them in empty machines."""
    gpus = (1 << copies) - 1
    shape = (1, estimate.states)
    nowhere = np.full(shape, -1)
    return _Row(
        (gpus,), (gpus,), estimate.seconds[None, :] / copies, np.zeros(shape, np.int64), nowhere, nowhere, nowhere
    )


def _next_row(estimate: ReleasedEstimate, contains: NDArray[np.bool_], row: _Row, copies: int) -> _Row:
    ways = [
        (number, occupied | taken, taken)
        for number, occupied in enumerate(row.occupied)
        for taken in replicated(estimate.machines, occupied, 1, copies)
    ]
    order = sorted({after for _, after, _ in ways}, key=lambda mask: _false_first(mask, estimate.machines.gpus))
    gpu_sets = sorted({taken for _, _, taken in ways}, key=members)
    places = {mask: number for number, mask in enumerate(order)}
    numbers = {mask: number for number, mask in enumerate(gpu_sets)}
    source = np.array([way[0] for way in ways], np.int64)
    chosen = np.array([numbers[way[2]] for way in ways], np.int64)
    rate = np.array(
        [[estimate.machines.handover_rate(members(a), members(b)) for b in gpu_sets] for a in row.gpu_sets]
    )  # fmt: skip
    found, behind, way = next_stage(
        estimate.seconds, 2 * estimate.crossing, contains, row.slowest, row.sets, rate, estimate.machines.start_up_s,
        copies, source, np.array([places[way[1]] for way in ways], np.int64), chosen, len(order),
    )  # fmt: skip
    return _Row(tuple(order), tuple(gpu_sets), found, chosen[way], behind, source[way], way)


def _false_first(mask: int, gpus: int) -> str:
    """Sets of occupied GPUs in the order of the released planner's tree: GPU 0 decides first, free before occupied."""
    return format(mask, f"0{gpus}b")[::-1]
