"""However fast ranks and network are, plans end, and end with the sums that their programs promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_interpreter import Deadlock, expected_results, inputs_of, run_interleaved

from ropewalk.collectives import (
    Program,
    arrows,
    binomial_broadcast,
    binomial_reduce,
    chain_broadcast,
    chain_reduce,
    dedicated_servers,
    double_tree_all_reduce,
    everyone,
    halving_doubling_all_reduce,
    hierarchical_all_to_all,
    hips_two_levels,
    mesh_all_reduce,
    only,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    shift_all_to_all,
)
from ropewalk.collectives.lanes import side_by_side
from ropewalk.collectives.program import Pattern, Round
from ropewalk.collectives.segments import pipelined
from ropewalk.execute import rank_plans

RANKS = st.integers(2, 6)
PIECES = st.integers(1, 4)
PROGRAMS = st.one_of(
    st.builds(lambda n, both: ring_all_reduce([range(n), range(n)[::-1]], both), RANKS, st.booleans()),
    st.builds(lambda n, both: ring_all_gather([range(n)], both), RANKS, st.booleans()),
    st.builds(lambda n, both: ring_reduce_scatter([range(n)], both), RANKS, st.booleans()),
    st.builds(lambda n, m: hips_two_levels(n, m).all_reduce("hips"), st.integers(1, 3), st.integers(2, 3)),
    st.builds(halving_doubling_all_reduce, RANKS),
    st.builds(double_tree_all_reduce, RANKS, PIECES),
    st.builds(mesh_all_reduce, RANKS),
    st.builds(dedicated_servers, RANKS, st.integers(1, 2)),
    st.builds(shift_all_to_all, RANKS),
    st.builds(hierarchical_all_to_all, st.integers(2, 3), st.integers(2, 3)),
    st.builds(lambda n, pieces: chain_reduce((n,), pieces), RANKS, PIECES),
    st.builds(lambda n, pieces: chain_broadcast((n,), pieces), RANKS, PIECES),
    st.builds(lambda n: binomial_broadcast(n, n - 1), RANKS),
    st.builds(lambda n: binomial_reduce(n, n // 2), RANKS),
)


@st.composite
def random_trees(draw: st.DrawFn) -> Program:
    """All-reduces up and down trees of any shape, each in its lane, with ranks in any order of joining."""
    ranks, segments = draw(RANKS), draw(PIECES)
    lanes = []
    for _ in range(draw(st.integers(1, 3))):
        order = draw(st.permutations(range(ranks)))
        above = {order[at]: order[draw(st.integers(0, at - 1))] for at in range(1, ranks)}
        depth = {order[0]: 0}
        for child in order[1:]:
            depth[child] = depth[above[child]] + 1
        deepest = max(depth.values())
        up = [(child, parent, deepest - depth[child], True) for child, parent in above.items()]
        down = [(parent, child, deepest + depth[parent], False) for child, parent in above.items()]
        src, dst, first, adds = zip(*up, *down, strict=True)
        lanes.append(pipelined(src, dst, first, adds, segments))
    rounds = tuple(side_by_side(lanes, segments))
    return Program("trees", ranks, segments * len(lanes), rounds, everyone(ranks), everyone(ranks))


@given(st.one_of(PROGRAMS, random_trees()), st.integers(0, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_any_interleaving_ends_with_the_promised_sums(program, whole, seed):
    program.check()
    plans = rank_plans(program)
    inputs = inputs_of(plans, whole, seed)
    chance = np.random.default_rng(seed)
    # Some worlds prefer the ranks, some the network, some neither.
    taste = float(chance.choice([0.2, 1.0, 5.0]))
    results = run_interleaved(plans, inputs, whole, lambda count: min(int(count * chance.random() ** taste), count - 1))
    for result, expected in zip(results, expected_results(plans, inputs, whole), strict=True):
        assert result.tolist() == expected.tolist()


def test_a_rank_may_add_one_chunk_and_overwrite_another_from_the_same_peer():
    pattern = Pattern(
        *(np.array(ends, np.int32) for ends in ([0, 0], [1, 1])),
        np.ones(2, np.int64),
        np.array([True, False]),
        np.zeros(2, np.int32),
    )
    back = arrows([1], [0], [1], reduces=False)
    program = Program(
        "both kinds",
        2,
        2,
        (
            Round(pattern, lambda: (np.arange(3), np.arange(2))),
            Round(back, lambda: (np.arange(2), np.zeros(1, np.int64))),
        ),
        pre=lambda chunk: np.stack([np.ones(len(chunk), bool), chunk == 0]),
        post=everyone(2),
    )
    program.check()
    plans = rank_plans(program)
    inputs = inputs_of(plans, 5, seed=1)
    results = run_interleaved(plans, inputs, 5, lambda count: count - 1)
    assert [r.tolist() for r in results] == [e.tolist() for e in expected_results(plans, inputs, 5)]


def test_the_interpreter_sees_a_deadlock():
    plans = rank_plans(ring_all_gather([range(3)]))
    silent = replace(plans[0], steps=plans[0].steps[:1])
    with pytest.raises(Deadlock):
        run_interleaved([silent, *plans[1:]], inputs_of(plans, 6, seed=0), 6, lambda _: 0)


def test_the_interpreter_sees_a_step_that_does_not_wait():
    plans = [
        replace(plan, steps=tuple(replace(step, after=-1) for step in plan.steps))
        for plan in rank_plans(ring_all_reduce([range(3)]))
    ]
    inputs = inputs_of(plans, 6, seed=0)
    results = run_interleaved(plans, inputs, 6, lambda _: 0)
    expected = expected_results(plans, inputs, 6)
    assert any(not np.array_equal(result, wanted) for result, wanted in zip(results, expected, strict=True))


def test_a_chunk_that_only_one_rank_brings_reaches_those_who_want_it():
    rounds = (Round(arrows([2], [0], [2], reduces=False), lambda: (np.array([0, 2]), np.arange(2))),)
    program = Program("hand over", 3, 2, rounds, only(3, 2), only(3, 0))
    plans = rank_plans(program)
    inputs = inputs_of(plans, 3, seed=2)
    assert run_interleaved(plans, inputs, 3, lambda _: 0)[0].tolist() == inputs[2].tolist()
