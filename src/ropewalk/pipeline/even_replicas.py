"""Plans whose stages all have as many replicas: what runtimes can run that hand activations from rank to rank.

The planner looks for the fastest plan, which often has other replicas for every stage. Where a runtime cannot run that,
the fastest one of these is what its user needs, and that is seldom among the plans that the planner had to look at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.pipeline.contest import Contest, with_pieces
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.judge import Judged
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.refine import cuts_moved, refined
from ropewalk.pipeline.schedules import FITTED, copies
from ropewalk.pipeline.state_groups import StateGroups, grouped
from ropewalk.pipeline.twofold import even_cuts
from ropewalk.pipeline.width import Width, width_for
from ropewalk.strategy.part import Part


@dataclass(frozen=True, eq=False)
class _Shape:
    """So many stages of so many GPUs, before they are cut; loads are for all micro-batches of a step."""

    sets: tuple[tuple[int, ...], ...]
    tensor: int
    micro_batch: int
    micro_batches: int
    recompute: bool
    work: Floats
    """Running sums over groups of states."""
    sums: Floats
    """Of adding up gradients, by running sums as well."""
    sends: Floats
    """By stage and first group of it: what reaches the stage."""

    @property
    def least(self) -> float:
        """No cut has a slowest stage or hand-over below this, the passes of one micro-batch added."""
        across = float(self.sends[1:, 1:-1].min(axis=1).max())
        longest = max(float(self.work[-1]) / len(self.sets), float(np.diff(self.work).max()), across)
        return longest + float(self.work[-1]) / self.micro_batches

    def plans(self, groups: StateGroups) -> Iterator[PipelinePlan]:
        """The cuts whose slowest stage or hand-over is fastest, sums of gradients hidden or not."""
        for load in (self.work, self.work + self.sums):
            ends = even_cuts(load, len(self.sets), self.sends)
            bounds = [groups.bounds[end] for end in ends]
            stages = (Part(bounds[at], bounds[at + 1] - 1, gpus, self.tensor) for at, gpus in enumerate(self.sets))
            yield PipelinePlan(tuple(stages), "1f1b", self.micro_batch, self.micro_batches, self.recompute)


def best_with_even_replicas(costs: Costs, width: Width | None = None) -> Judged | None:
    """The fastest pipeline of two stages or more with as many replicas each; None where none fits or may be cut so.

    Its stages have consecutive GPUs, a few of which may be left over.
    """
    terms, chosen = costs.terms, width or width_for(costs)
    schedules = tuple(name for name in with_pieces(terms.schedules, 1) if copies(name) == 1)
    schedules = schedules or (("1f1b",) if FITTED in terms.schedules else ())
    groups = grouped(costs.profile, chosen.groups)
    contest = Contest(costs)
    judged = [
        contest.enter(plan, schedules, contest.best_s * chosen.hope)
        for shape in _promising(costs, groups, chosen)
        for plan in shape.plans(groups)
    ]
    fastest = sorted((found for found in judged if found is not None), key=lambda found: found.step_s)
    for found in fastest[: chosen.leaders]:
        moved = refined(contest, found, schedules, chosen.moves, moves=cuts_moved)
        if FITTED in terms.schedules:
            contest.judge(replace(moved.plan, schedule=FITTED))
    allowed = [found for name, found in contest.best_by_schedule.items() if name in terms.schedules]
    return min(allowed, key=lambda found: found.step_s, default=None)


def _promising(costs: Costs, groups: StateGroups, width: Width) -> list[_Shape]:
    """Those that could be fastest, and a few of every number of stages."""
    chosen, seen = [], Counter[int]()
    for number, shape in enumerate(sorted(_shapes(costs, groups), key=lambda shape: shape.least)):
        seen[len(shape.sets)] += 1
        if number < width.timed or seen[len(shape.sets)] <= width.alike:
            chosen.append(shape)
    return chosen


def _shapes(costs: Costs, groups: StateGroups) -> Iterator[_Shape]:
    terms, gpus = costs.terms, costs.machines.gpus
    sizes = tuple(terms.micro_batch_sizes())
    for devices, tensor, size in product(range(2, min(gpus, groups.count) + 1), terms.tensor, sizes):
        each = gpus // devices // tensor * tensor
        if not each:
            continue
        sets = tuple(tuple(range(at * each, (at + 1) * each)) for at in range(devices))
        prices = costs.prices.at(costs.share(size, each // tensor), tensor)
        count = terms.global_batch // size
        forward, backward, weights = (
            groups.at_bounds(column) for column in (prices.forward_s, prices.backward_s, prices.parameter_bytes)
        )
        sums = weights * costs.summing_gradients(Part(0, costs.states - 1, sets[0], tensor)).per_byte
        sends = costs.entering(sets, size)[:, list(groups.bounds)] * count
        for recompute in terms.recompute:
            work = (forward * (2 if recompute else 1) + backward) * count
            yield _Shape(sets, tensor, size, count, recompute, work, sums, sends)
