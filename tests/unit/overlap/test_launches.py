"""Static plans: pieces in a fixed order on a library that works in order."""

from __future__ import annotations

import numpy as np
import pytest
from grouping_oracles import judge

from ropewalk.overlap.groups import Arrival, Groups
from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.launches import cut_as_planned, in_ready_order, planned, timed, without_useless_cuts
from ropewalk.overlap.link import Link
from ropewalk.overlap.plans import fused_plan, streamed_plan
from ropewalk.overlap.tensors import from_layers

TENSORS = from_layers([3, 6, 3], backward_s=[2] * 3, forward_s=[2] * 3)
SUMS = one_stream_sums(TENSORS)
SINGLES = Groups.singles(SUMS.in_ready_order)


def plan_of(launches):
    return list(zip(launches.tensor.tolist(), launches.size_bytes.tolist(), strict=True))


def test_the_plan_cuts_tensors_where_a_more_urgent_one_gets_ready():
    cut = cut_as_planned(SUMS, Link(1), SINGLES, Arrival.TOGETHER)
    assert plan_of(cut) == [(2, 2), (1, 2), (0, 3), (1, 4), (2, 1)]
    run = timed(SUMS, Link(1), cut)
    assert run.arrival_s.tolist() == [9, 13, 14]
    assert run.step_s == TENSORS.step_s(run.arrival_s) == 17


def test_whole_tensors_in_ready_order_take_20():
    run = timed(SUMS, Link(1), in_ready_order(SUMS, SINGLES))
    assert run.arrival_s.tolist() == [14, 11, 5]
    assert run.step_s == 20


def test_every_piece_of_a_cut_tensor_starts_up():
    link = Link(1, start_up_s=0.25)
    cut = cut_as_planned(SUMS, link, SINGLES, Arrival.TOGETHER)
    run = timed(SUMS, link, cut)
    assert cut.count == 5
    # Five start-ups after the first gradient at 2, and no idle time in between.
    assert run.end_s.max() == pytest.approx(2 + 12 + 5 * 0.25)
    assert run.step_s > judge(SUMS, link, SINGLES)


def test_cuts_that_cost_more_than_they_gain_are_taken_back():
    dear = Link(1, start_up_s=1.5)
    cut = cut_as_planned(SUMS, dear, SINGLES, Arrival.TOGETHER)
    joined = without_useless_cuts(SUMS, dear, cut)
    assert (cut.count, timed(SUMS, dear, cut).step_s) == (5, 23.5)
    assert (joined.count, timed(SUMS, dear, joined).step_s) == (4, 22)
    assert joined.size_bytes.sum() == pytest.approx(12)


def test_a_sum_put_aside_while_it_starts_up_is_launched_only_once():
    # Tensor 1 starts up from 1 to 4; tensor 0 gets ready at 2 and is more urgent.
    sums = one_stream_sums(from_layers([1, 1], backward_s=[1, 1], forward_s=[1, 1]))
    cut = cut_as_planned(sums, Link(1, start_up_s=3), Groups(((1,), (0,))), Arrival.TOGETHER)
    assert plan_of(cut) == [(0, 1), (1, 1)]


def test_a_streamed_group_hands_over_its_tensors_in_the_order_of_their_tails():
    one = Groups.one(SUMS.in_ready_order)
    through = in_ready_order(SUMS, one, Arrival.THROUGH)
    assert plan_of(through) == [(0, 3), (1, 6), (2, 3)]
    assert timed(SUMS, Link(1, start_up_s=1), through).arrival_s.tolist() == [10, 16, 19]
    gathered = in_ready_order(SUMS, one, Arrival.GATHERED)
    assert plan_of(gathered) == [(0, 7.5), (1, 3), (2, 1.5)]
    assert timed(SUMS, Link(1, start_up_s=1), gathered).arrival_s.tolist() == [14.5, 17.5, 19]
    together = in_ready_order(SUMS, one)
    assert timed(SUMS, Link(1, start_up_s=1), together).arrival_s.tolist() == [19, 19, 19]


def test_launches_are_listed_with_their_tensors_and_bytes():
    listed = in_ready_order(SUMS, Groups(((2, 1), (0,)))).listed(SUMS.names)
    assert listed == [
        {"tensors": ["tensor 2", "tensor 1"], "size_bytes": 9.0},
        {"tensors": ["tensor 0"], "size_bytes": 3.0},
    ]
    streamed = in_ready_order(SUMS, Groups.one([2, 1, 0]), Arrival.THROUGH).listed(SUMS.names)
    assert streamed == [{"tensors": ["tensor 0", "tensor 1", "tensor 2"], "size_bytes": 12.0}]


def test_a_plan_is_never_slower_than_its_groups_in_ready_order():
    for start_up in (0, 0.25, 1, 4, 16):
        link = Link(1, start_up_s=start_up)
        assert planned(SUMS, link, SINGLES).step_s <= timed(SUMS, link, in_ready_order(SUMS, SINGLES)).step_s


def test_the_known_is_known_a_latency_later():
    quick = timed(SUMS, Link(1), in_ready_order(SUMS, SINGLES))
    late = timed(SUMS, Link(1, latency_s=0.5), in_ready_order(SUMS, SINGLES))
    np.testing.assert_allclose(late.arrival_s, quick.arrival_s + 0.5)


def test_streaming_helps_where_one_start_up_weighs_more_than_the_order_of_tensors():
    # Eight gradients that exist almost at once, and a start-up as long as one of them.
    tensors = from_layers([1] * 8, backward_s=[0.01] * 8, forward_s=[1] * 8)
    link = Link(1, start_up_s=1)
    fused, streamed = fused_plan(tensors, link), streamed_plan(tensors, link)
    assert streamed.run.launches.count == 1
    # The launch waits for the last gradient, starts up once, and the first layer waits for its own tensor only.
    assert streamed.step_s == pytest.approx(0.08 + 1 + 1 + 8)
    assert fused.step_s >= streamed.step_s + 1


def test_streaming_does_not_help_where_all_of_a_start_up_is_rounds():
    tensors = from_layers([1] * 8, backward_s=[0.01] * 8, forward_s=[1] * 8)
    link = Link(1, start_up_s=1)
    assert streamed_plan(tensors, link, rounds_s=1.0).step_s == pytest.approx(fused_plan(tensors, link).step_s)


def test_a_streamed_plan_tells_when_every_tensor_is_there():
    tensors = from_layers([1] * 8, backward_s=[0.01] * 8, forward_s=[1] * 8)
    plan = streamed_plan(tensors, Link(1, start_up_s=1), rounds_s=0.1)
    assert tensors.step_s(plan.arrival_s) == pytest.approx(plan.step_s)
    assert sorted(tensor for group in plan.groups.members for tensor in group) == list(range(8))


def test_a_plan_streams_only_in_the_ways_that_can_be_run():
    tensors = from_layers([1] * 8, backward_s=[0.01] * 8, forward_s=[1] * 8)
    link = Link(1, start_up_s=1)
    for arrival in (Arrival.THROUGH, Arrival.GATHERED):
        plan = streamed_plan(tensors, link, rounds_s=0.1, arrivals=(arrival,))
        assert plan.run.launches.arrival is arrival
    assert streamed_plan(tensors, link).run.launches.arrival is Arrival.THROUGH
