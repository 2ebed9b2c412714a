"""Plans: chunks in the order of PyTorch's tensors, messages joined, nothing sent that has no elements."""

from __future__ import annotations

import importlib.util
import pickle

import numpy as np
import pytest

from ropewalk.collectives import (
    Program,
    Round,
    arrows,
    binomial_broadcast,
    binomial_reduce,
    dedicated_servers,
    everyone,
    hips_two_levels,
    mesh_all_reduce,
    owner,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    shift_all_to_all,
)
from ropewalk.errors import ProgramError
from ropewalk.execute import LocalRanks, comm_hook, rank_plan, rank_plans, run_locally, run_program
from ropewalk.execute.kinds import equal_shards, kind_of, require_kind, whole_multiple
from ropewalk.execute.spans import DIRECT, sized

TWO_RINGS = [range(3), [2, 1, 0]]


def test_shards_of_an_all_gather_stand_in_the_order_of_ranks_however_many_rings_there_are():
    plans = rank_plans(ring_all_gather(TWO_RINGS))
    assert [plan.takes.tolist() for plan in plans] == [[0, 1], [2, 3], [4, 5]]
    assert all(plan.gives.tolist() == list(range(6)) for plan in plans)


def test_blocks_of_an_all_to_all_stand_by_receiver_before_and_by_sender_after():
    plans = rank_plans(shift_all_to_all(3))
    assert plans[1].takes.tolist() == [3, 4, 5]
    assert plans[1].gives.tolist() == [1, 4, 7]
    assert plans[1].held.tolist() == [1, 3, 4, 5, 7]
    start, stop = plans[1].offsets(plans[1].gives, plans[1].whole_elements(6))
    assert (stop - start).tolist() == [2, 2, 2]


def test_one_rank_compiled_alone_is_the_same_as_among_all():
    program = hips_two_levels(2, 3).all_reduce("hips")
    assert pickle.dumps(rank_plan(program, 4)) == pickle.dumps(rank_plans(program)[4])


def test_a_lane_waits_for_itself_alone():
    steps = rank_plan(ring_all_reduce(TWO_RINGS), 0).steps
    assert [(step.lane, step.after) for step in steps[:6]] == [(0, -1), (1, -1), (0, 0), (1, 1), (0, 2), (1, 3)]


def test_neighbouring_chunks_travel_as_one_span_without_staging():
    todo = sized(rank_plan(hips_two_levels(2, 2).all_gather("hips"), 0), 8)
    assert [send.spans for step in todo.steps for send in step.sends] == [((0, 2),), ((0, 2), (4, 6))]
    assert [send.staged == DIRECT for step in todo.steps for send in step.sends] == [True, False]
    assert todo.staging_elements == 8  # two spans out, two spans in
    assert todo.in_result


def test_what_is_to_be_added_waits_in_staging_that_each_lane_reuses():
    todo = sized(rank_plan(ring_all_reduce(TWO_RINGS), 0), 60)
    assert todo.staging_elements == 2 * 10
    waiting = [one.staged for step in todo.steps for one in step.receives]
    assert set(waiting) == {0, 10, DIRECT}


def test_fewer_elements_than_chunks_leave_messages_out_at_both_ends():
    plans = rank_plans(ring_all_reduce([range(4)]))
    messages = [[0, 0] for _ in range(4)]
    for rank, plan in enumerate(plans):
        for step in sized(plan, 2).steps:
            for one in step.sends:
                assert one.elements == 1
                messages[rank][0] += 1
                messages[one.peer][1] -= 1
            messages[rank][1] += len(step.receives)
    assert [balance for _, balance in messages] == [0] * 4
    assert sum(sent for sent, _ in messages) == 2 * 6


def test_a_server_that_brings_nothing_begins_with_zero_and_keeps_nothing():
    plan = rank_plan(dedicated_servers(3), 3)
    assert (plan.takes.size, plan.gives.size, plan.zeroed.tolist()) == (0, 0, [0])
    assert plan.members == (0, 1, 2)
    assert plan.whole_elements(7) == 7


def test_unequal_shards_are_cut_in_proportion_and_refused_where_that_is_no_whole_number():
    swap = arrows([0, 1], [1, 0], [2, 1], reduces=False)
    program = Program(
        "two parts and one",
        2,
        3,
        (Round(swap, lambda: (np.array([0, 2, 3]), np.arange(3))),),
        owner(2, lambda chunk: chunk // 2),
        everyone(2),
    )
    program.check()
    first, second = rank_plans(program)
    assert (first.whole_elements(4), second.whole_elements(2)) == (6, 6)
    assert (equal_shards(first), whole_multiple(first)) == (False, 3)
    with pytest.raises(ProgramError, match=r"rank 0 brings 2 of 3 chunks.*give a multiple of 2 elements"):
        first.whole_elements(5)


def test_a_rank_that_the_program_does_not_have_is_refused():
    with pytest.raises(ProgramError, match="mesh all-reduce has no rank 4: it is for 4 ranks"):
        rank_plan(mesh_all_reduce(4), 4)


@pytest.mark.parametrize(
    ("program", "kind", "multiple"),
    [
        (ring_all_reduce([range(3)]), "allreduce", 1),
        (dedicated_servers(3), "allreduce", 1),
        (ring_all_gather([range(3)]), "allgather", 3),
        (ring_reduce_scatter([range(3)]), "reducescatter", 3),
        (binomial_broadcast(3, 1), "broadcast", 1),
        (binomial_reduce(3, 1), "reduce", 1),
        (shift_all_to_all(3), "alltoall", 9),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_kind_of_a_collective_is_told_from_its_conditions(program, kind, multiple):
    plan = rank_plan(program, 0)
    assert (kind_of(plan), whole_multiple(plan), equal_shards(plan)) == (kind, multiple, True)


def test_a_program_of_another_kind_is_refused():
    plan = rank_plan(ring_all_gather([range(3)]), 0)
    with pytest.raises(ProgramError, match="one way is not an allreduce but an allgather"):
        require_kind(plan, "allreduce")
    with pytest.raises(ProgramError, match="there is no collective 'gossip': choose allreduce, allgather"):
        require_kind(plan, "gossip")


def test_without_pytorch_everything_that_runs_names_the_extra(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else found(name, *rest)
    )
    program = mesh_all_reduce(2)
    for run in (
        lambda: run_program(program, None),
        lambda: comm_hook(program),
        lambda: run_locally(program, "allreduce"),
        lambda: LocalRanks(2),
    ):
        with pytest.raises(ProgramError, match=r'needs PyTorch.*pip install "ropewalk\[torch\]"'):
            run()


def test_mistakes_in_a_local_run_are_reported_together():
    with pytest.raises(ProgramError) as refused:
        run_locally(mesh_all_reduce(2), "allreduce", sizes=[0], dtypes=["float7"], repeats=0)
    text = str(refused.value)
    for part in ("3 findings", "'float7': choose float32", "a buffer of 0 bytes", "0 runs cannot be timed"):
        assert part in text
