"""The planner against every plan there is, and its dynamic program against the formula that it claims to minimise."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pivot_formula import pivot_latency, woven
from plan_brute_force import brute_force

from ropewalk.errors import StrategyError
from ropewalk.pipeline.contest import Contest
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.exact import search_all
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.masks import members
from ropewalk.pipeline.placement import candidates
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.planner import searched
from ropewalk.pipeline.profile import Profile, from_states
from ropewalk.pipeline.refine import neighbours
from ropewalk.pipeline.search import propose
from ropewalk.pipeline.state_groups import every_state
from ropewalk.pipeline.terms import Terms
from ropewalk.pipeline.width import Width
from ropewalk.strategy.part import Part

BY_HAND = ("1f1b", "1f1b-deep", "gpipe", "zb-h1", "zb-h2", "interleaved", "zb-v", "dualpipe")
NARROW = Width(timed=8, leaders=1, moves=10)


@st.composite
def profiles(draw, most_states: int) -> Profile:
    states = draw(st.integers(1, most_states))

    def column(top: int, unit: float) -> list[float]:
        return [value * unit for value in draw(st.lists(st.integers(0, top), min_size=states, max_size=states))]

    forward = [value + 1e-3 for value in column(9, 1e-2)]
    return from_states(
        "random", 2, forward_s=forward, backward_s=column(19, 1e-2), parameter_bytes=column(20, 1e7),
        crossing_bytes=column(10, 1e7), kept_bytes=column(9, 1e8),
    )  # fmt: skip


@st.composite
def worlds(draw, most_states: int, most_gpus: int) -> Costs:
    sizes = draw(st.lists(st.integers(1, 2), min_size=1, max_size=most_gpus).filter(lambda x: sum(x) <= most_gpus))
    micro_batch = draw(st.sampled_from((1, 2)))
    terms = Terms(
        micro_batch * draw(st.sampled_from((1, 2, 4, 6))),
        micro_batch,
        memory_bytes=draw(st.one_of(st.none(), st.integers(3, 30).map(lambda tenths: tenths * 2e8))),
        schedules=BY_HAND,
        tensor=draw(st.sampled_from(((1,), (1,), (1, 2)))),
        recompute=draw(st.sampled_from(((False,), (False,), (False, True)))),
        whole_samples=draw(st.booleans()),
        overlap_sums=draw(st.booleans()),
    )
    machines = Machines(sum(sizes), tuple(np.cumsum(sizes).tolist()), start_up_s=draw(st.sampled_from((0.0, 1e-3))))
    return Costs(draw(profiles(most_states)), machines, terms)


def best_of_all(costs: Costs) -> float | None:
    try:
        return brute_force(costs).step_s
    except StrategyError:
        return None


@settings(max_examples=200, deadline=None)
@given(worlds(most_states=4, most_gpus=3))
def test_small_models_get_the_best_of_all_plans(costs):
    contest, best = searched(costs, NARROW), best_of_all(costs)
    assert (contest.best is None) == (best is None)
    if best is not None:
        assert contest.best_s == pytest.approx(best, rel=1e-9)
        assert contest.timed < 2000


@settings(max_examples=8, deadline=None)
@given(worlds(most_states=6, most_gpus=4))
def test_bounds_never_rule_out_the_best_plan(costs):
    contest, best = Contest(costs), best_of_all(costs)
    search_all(contest)
    assert (None if contest.best is None else contest.best_s) == (best and pytest.approx(best, rel=1e-9))


@settings(max_examples=40, deadline=None)
@given(worlds(most_states=4, most_gpus=3))
def test_one_more_machine_never_makes_the_best_plan_slower(costs):
    machines = costs.machines
    more = Machines(machines.gpus + 1, (*machines.separators, machines.gpus + 1), start_up_s=machines.start_up_s)
    before, behind = (searched(Costs(costs.prices, each, costs.terms), NARROW) for each in (machines, more))
    assert behind.best_s <= before.best_s * (1 + 1e-9)


def formula(costs: Costs, plan: PipelinePlan) -> float:
    """The step by the formula, written down stage by stage."""
    stages, size, count = plan.stages, plan.micro_batch, plan.micro_batches
    work, left, before, back = 0.0, 0.0, 0.0, 0.0
    for stage, following in [*pairwise(stages), (stages[-1], None)]:
        forward, backward = costs.passes(stage, size)
        backward += forward if plan.recompute else 0.0
        work = max(work, before + count * (forward + backward))
        left = max(left, costs.all_reduce(stage, size, "1f1b") - back)
        before, back = before + forward + backward, back + backward
        if following is not None:
            send = costs.handover(stage, following, size)
            work = max(work, before + count * send)
            before, back = before + 2 * send, back + send
    return work + left


def placed(costs: Costs, size: int, last: int, occupied: int, behind: tuple[Part, ...]):
    """Every pipeline whose last stages are these, placed by the policies from the last stage to the first."""
    if last < 0:
        yield behind
        return
    gpus = costs.machines.gpus
    mirrored = Machines(gpus, tuple(np.cumsum(np.diff([0, *costs.machines.separators])[::-1]).tolist()))
    for need in range(1, gpus - occupied.bit_count() + 1):
        for taken in candidates(mirrored, occupied, need):
            chosen = tuple(sorted(gpus - 1 - gpu for gpu in members(taken)))
            for first in range(last + 1):
                yield from placed(costs, size, first - 1, occupied | taken, (Part(first, last, chosen), *behind))


@settings(max_examples=60, deadline=None)
@given(worlds(most_states=4, most_gpus=3), st.booleans())
def test_the_dynamic_program_finds_the_least_value_of_its_formula(costs, recompute):
    terms = Terms(costs.terms.global_batch, costs.terms.micro_batch, whole_samples=False,
                  overlap_sums=costs.terms.overlap_sums)  # fmt: skip
    free = Costs(costs.prices, costs.machines, terms)
    size = terms.micro_batch
    proposals = propose(free, every_state(free.profile), size, recompute, Width(slots=64))
    for estimate, plan in proposals:
        plan.check(free.states, free.machines.gpus)
        assert estimate == pytest.approx(formula(free, plan), rel=1e-9)
    best = min(
        formula(free, PipelinePlan(stages, "1f1b", size, terms.global_batch // size, recompute))
        for stages in placed(free, size, free.states - 1, 0, ())
    )
    assert proposals[0][0] == pytest.approx(best, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(worlds(most_states=4, most_gpus=3))
def test_the_formula_is_the_pivots_where_a_stage_is_the_pivot(costs):
    terms = Terms(costs.terms.global_batch, costs.terms.micro_batch, overlap_sums=False)
    free = Costs(costs.prices, costs.machines, terms)
    for estimate, plan in propose(free, every_state(free.profile), terms.micro_batch, False, Width())[:20]:
        times = free.times(plan)
        forward, backward = woven(times.forward, times.send_forward), woven(times.backward, times.send_backward)
        sums = woven(times.all_reduce, [0.0] * len(times.send_forward))
        by_pivot = pivot_latency(forward, backward, plan.micro_batches, sums)
        own = np.add(forward, backward)
        if by_pivot.pivot % 2 == 0 and own[::2].max() > 2 * own[1::2].max(initial=0.0):
            # The pivot may be a stage next to the one with the largest value: by no more than one pass of it.
            assert by_pivot.seconds <= estimate * (1 + 1e-9)
            assert estimate <= by_pivot.seconds + own.max() * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(worlds(most_states=6, most_gpus=4), st.integers(1, 3))
def test_moved_plans_are_plans(costs, step):
    terms = costs.terms
    for _, plan in propose(costs, every_state(costs.profile), terms.micro_batch, False, Width())[:10]:
        for moved in neighbours(plan, costs.machines, step):
            moved.check(costs.states, costs.machines.gpus)
            assert moved.gpus >= plan.gpus
            assert moved != plan
