"""Plans in elements: both ends of a message agree, nothing that waits is overwritten, results are complete."""

import itertools
from collections import defaultdict

import pytest

from ropewalk.collectives import (
    binomial_broadcast,
    chain_reduce,
    double_tree_all_reduce,
    halving_doubling_all_reduce,
    mesh_all_reduce,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    shift_all_to_all,
)
from ropewalk.execute import rank_plans
from ropewalk.execute.spans import DIRECT, sized

PROGRAMS = {
    "ring": ring_all_reduce([range(4), (0, 3, 2, 1)]),
    "trees": double_tree_all_reduce(5, 3),
    "halving and doubling": halving_doubling_all_reduce(6),
    "mesh": mesh_all_reduce(4),
    "gather": ring_all_gather([range(5)]),
    "scatter": ring_reduce_scatter([range(3)]),
    "all-to-all": shift_all_to_all(4),
    "chain": chain_reduce((4,), 3),
    "broadcast": binomial_broadcast(5, 2),
}
every_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
sizes = pytest.mark.parametrize("multiple", [0, 1, 7])
"""Elements per chunk."""


def plans(program, multiple):
    return [sized(plan, multiple * program.chunks) for plan in rank_plans(program)]


@every_program
@sizes
def test_what_a_rank_sends_its_peer_expects_in_the_same_order(program, multiple):
    sent, expected = defaultdict(list), defaultdict(list)
    for rank, plan in enumerate(plans(program, multiple)):
        for step in plan.steps:
            for one in step.sends:
                sent[rank, one.peer, one.tag].append(one.elements)
            for one in step.receives:
                expected[one.peer, rank, one.tag].append(one.elements)
    assert sent == expected
    assert bool(sent) == bool(multiple)


@every_program
@sizes
def test_spans_lie_in_the_work_buffer_in_order_and_apart(program, multiple):
    for plan in plans(program, multiple):
        messages = [one for step in plan.steps for one in (*step.sends, *step.receives)]
        for spans in (plan.takes, plan.gives, plan.zeroed, *(one.spans for one in messages)):
            ends = [end for span in spans for end in span]
            assert ends == sorted(ends)
            assert all(start < stop for start, stop in spans)
            assert all(stop < start for (_, stop), (start, _) in itertools.pairwise(spans))  # else joined
            assert not ends or 0 <= ends[0] <= ends[-1] <= plan.work_elements
        assert all(one.elements == sum(stop - start for start, stop in one.spans) for one in messages)


@every_program
def test_what_waits_in_staging_in_one_step_never_overlaps_and_fits(program):
    for plan in plans(program, 7):
        for step in plan.steps:
            waiting = sorted(
                (one.staged, one.staged + one.elements) for one in (*step.sends, *step.receives) if one.staged != DIRECT
            )
            assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(waiting))
            assert not waiting or 0 <= waiting[0][0] <= waiting[-1][1] <= plan.staging_elements


@every_program
def test_whatever_is_added_waits_first_and_one_span_that_overwrites_goes_straight(program):
    for plan in plans(program, 7):
        for step in plan.steps:
            for one in step.receives:
                assert (one.staged == DIRECT) == (len(one.spans) == 1 and not one.adds)
            for one in step.sends:
                assert (one.staged == DIRECT) == (len(one.spans) == 1)


@pytest.mark.parametrize(
    ("name", "taken", "given"),
    [
        ("ring", [8] * 4, [8] * 4), ("gather", [1] * 5, [5] * 5), ("scatter", [3] * 3, [1] * 3),
        ("all-to-all", [4] * 4, [4] * 4), ("broadcast", [0, 0, 1, 0, 0], [1] * 5),
    ],
)  # fmt: skip
def test_ranks_bring_and_get_what_their_collective_says(name, taken, given):
    found = plans(PROGRAMS[name], 10)
    assert [plan.taken_elements for plan in found] == [10 * chunks for chunks in taken]
    assert [plan.given_elements for plan in found] == [10 * chunks for chunks in given]


def test_a_result_is_the_work_buffer_only_where_a_rank_touches_nothing_else():
    assert all(plan.in_result for plan in plans(PROGRAMS["ring"], 2))
    assert not any(plan.in_result for plan in plans(PROGRAMS["scatter"], 2))
