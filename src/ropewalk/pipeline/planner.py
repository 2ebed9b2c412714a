"""Cuts a model into stages, gives them GPUs and a timetable, and says what else could have been done.

First a dynamic program proposes plans for every size of micro-batches (`search.py`), then the clock times the most
promising under every schedule, and the best are moved about while that helps (`refine.py`). Small instances are
searched completely (`exact.py`). What other planners would have done is timed as well; it can only win by being better.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from math import inf

from ropewalk.errors import Findings, StrategyError
from ropewalk.interrupts import unwrapped_interrupts
from ropewalk.pipeline.alternatives import alternatives
from ropewalk.pipeline.answer import PipelineAnswer, PipelineSearch, interrupted_after
from ropewalk.pipeline.contest import Contest, with_pieces
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.exact import is_small, search_all
from ropewalk.pipeline.judge import Judged
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.profile import Profile
from ropewalk.pipeline.refine import refined
from ropewalk.pipeline.schedules import FITTED, copies, pieces_each
from ropewalk.pipeline.search import propose
from ropewalk.pipeline.state_groups import grouped
from ropewalk.pipeline.state_prices import PricedStates
from ropewalk.pipeline.terms import Terms
from ropewalk.pipeline.twofold import twofold_plans
from ropewalk.pipeline.width import Width, width_for
from ropewalk.progress import counted


def plan(
    model: Profile | PricedStates, machines: Machines, terms: Terms, *, width: Width | None = None
) -> PipelineAnswer:
    """The best plan for a model (a measured profile, or prices that know smaller shares) on machines under terms.

    >>> from ropewalk.pipeline.profile import from_states
    >>> tiny = from_states("tiny", 1, forward_s=[1] * 4, backward_s=[2] * 4, parameter_bytes=[9e9] * 4)
    >>> answer = plan(tiny, Machines(2, (1, 2)), Terms(8, 1, schedules=("1f1b",), overlap_sums=False))
    >>> str(answer.best.plan), answer.step_s
    ('0-1@0 | 2-3@1 1f1b, 8 x 1 samples', 54.0)
    """
    costs = Costs(model, machines, terms)
    _check(costs)
    chosen = width or width_for(costs)
    contest = searched(costs, chosen)
    others = alternatives(contest)
    if contest.best is None:
        nothing = "no schedule exists for these numbers of micro-batches and GPUs"
        closest = min(contest.unfit, key=lambda reason: contest.unfit[reason], default=nothing)
        raise StrategyError(f"no plan of {costs.profile.name} fits: {closest}")
    return PipelineAnswer(
        profile=costs.profile,
        machines=machines,
        terms=terms,
        best=contest.best,
        alternatives=others,
        searched=_how_far(contest, chosen),
        single_gpu_s=costs.prices.at(terms.global_batch).seconds,
        contenders=tuple(sorted(contest.best_by_schedule.values(), key=_step)),
    )


def _how_far(contest: Contest, width: Width) -> PipelineSearch:
    if contest.interrupted:
        return interrupted_after(contest.timed)
    exact = is_small(contest.costs)
    return PipelineSearch(exact, contest.timed, () if exact else width.restrictions(contest.costs))


def _check(costs: Costs) -> None:
    """Is there anything to cut, and do the schedules leave a choice?"""
    findings = Findings(StrategyError, f"pipeline of {costs.profile.name}")
    if not costs.prices.at(costs.terms.global_batch).seconds > 0:
        findings.add("all its layers take zero time, so no cut is better than another: measure them again")
    least = min(map(pieces_each, costs.terms.schedules))
    if least > costs.states:
        findings.add(
            f"{', '.join(costs.terms.schedules)}: at least {least} stages are needed for a model with "
            f"{costs.states} that can be cut: ask for another schedule"
        )
    findings.raise_if_any()


def searched(costs: Costs, width: Width | None = None) -> Contest:
    """The contest after the planner's own search, without plans of others; interrupted, with the best so far."""
    contest = Contest(costs)
    chosen = width or width_for(costs)
    try:
        with unwrapped_interrupts():
            _search(contest, chosen)
    except KeyboardInterrupt:
        if contest.best is None:
            raise
        contest.interrupted = True
    return contest


def _search(contest: Contest, width: Width) -> None:
    costs = contest.costs
    sizes = _sizes(costs, width)
    leaders = _straight(contest, width, sizes) + _twofold(contest, width, sizes)
    if is_small(costs):
        search_all(contest)
    if FITTED in costs.terms.schedules:
        best = [contest.best] if contest.best else []
        for judged in (*best, *sorted(leaders, key=_step)[: width.leaders]):
            if len(judged.plan.devices) == len(judged.plan.stages):
                contest.judge(replace(judged.plan, schedule=FITTED))


def _sizes(costs: Costs, width: Width) -> tuple[int, ...]:
    """The sizes of micro-batches to search."""
    every = tuple(costs.terms.micro_batch_sizes())
    if len(every) <= width.sizes:
        return every
    groups = grouped(costs.profile, width.coarse.groups)
    promise: dict[int, float] = {}
    for size, recompute in counted(tuple(product(every, costs.terms.recompute)), "choosing sizes of micro-batches"):
        best = min((value for value, _ in propose(costs, groups, size, recompute, width.coarse)), default=inf)
        promise[size] = min(best, promise.get(size, inf))
    return tuple(sorted(sorted(every, key=lambda size: (promise[size], size))[: width.sizes]))


def _straight(contest: Contest, width: Width, sizes: tuple[int, ...]) -> list[Judged]:
    """Plans with a stage for each set of GPUs."""
    costs, terms = contest.costs, contest.costs.terms
    schedules = with_pieces(terms.schedules, 1) or (("1f1b",) if FITTED in terms.schedules else ())
    if not schedules:
        return []
    judged = []
    for _, plan in counted(_pool(costs, width, sizes), "timing plans"):
        found = contest.enter(plan, schedules, contest.best_s * width.hope)
        if found is not None:
            judged.append(found)
    return _refined(contest, judged, schedules, width)


def _pool(costs: Costs, width: Width, sizes: tuple[int, ...]) -> list[tuple[float, PipelinePlan]]:
    """The plans that the dynamic program thinks most of, no more than a few with the same GPUs a stage."""
    terms = costs.terms
    groups = grouped(costs.profile, width.groups)
    found = []
    for size, recompute in counted(tuple(product(sizes, terms.recompute)), "searching cuts, replicas and places"):
        proposals = propose(costs, groups, size, recompute, width)
        if not proposals and terms.memory_bytes is not None:
            proposals = propose(costs, groups, size, recompute, width, shallow=True)
        alike: dict[object, int] = {}
        for estimate, plan in proposals:
            shape = tuple(len(stage.workers) for stage in plan.stages), tuple(stage.tensor for stage in plan.stages)
            alike[shape] = alike.get(shape, 0) + 1
            if alike[shape] <= width.alike:
                found.append((estimate, plan))
    return _varied(sorted(found, key=lambda pair: pair[0]), width)


def _varied(found: list[tuple[float, PipelinePlan]], width: Width) -> list[tuple[float, PipelinePlan]]:
    """The best by estimate, and of every number of stages a few: the formula favours some depths over others."""
    chosen, count = [], Counter[int]()
    for number, (estimate, plan) in enumerate(found):
        depth = len(plan.stages)
        count[depth] += 1
        if number < width.timed or count[depth] <= width.alike:
            chosen.append((estimate, plan))
    return chosen


def _twofold(contest: Contest, width: Width, sizes: tuple[int, ...]) -> list[Judged]:
    """Plans with two pieces for each set of GPUs, of one copy of the model or of two."""
    costs, terms = contest.costs, contest.costs.terms
    leaders = []
    mirrored = tuple(name for name in terms.schedules if copies(name) > 1)
    for schedule in (*with_pieces(terms.schedules, 2), *mirrored):
        judged = []
        asked = tuple(product(sizes, terms.recompute))
        for size, recompute in counted(asked, f"searching plans for {schedule}"):
            for plan in twofold_plans(costs, schedule, size, recompute):
                found = contest.enter(plan, (schedule,), contest.best_s * width.hope)
                if found is not None:
                    judged.append(found)
        leaders += _refined(contest, judged, (schedule,), width)
    return leaders


def _refined(contest: Contest, judged: list[Judged], schedules: tuple[str, ...], width: Width) -> list[Judged]:
    """The best of those that differ in more than their cuts, each moved about."""
    leaders: dict[object, Judged] = {}
    for found in sorted(judged, key=_step):
        leaders.setdefault((found.plan.micro_batch, tuple(len(stage.workers) for stage in found.plan.stages)), found)
    best = list(leaders.values())[: width.leaders]
    moved = counted(best, "moving the best plans about")
    return [refined(contest, found, schedules, width.moves) for found in moved]


def _step(judged: Judged) -> float:
    return judged.step_s
