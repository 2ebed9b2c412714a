"""What frameworks do without a plan: buckets, merged gradients, decoupled all-reduce."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gather_phases import best_gather_phase, gather_phase_s, streamed_gather_phase_s

from ropewalk.errors import GraphError
from ropewalk.overlap.buckets import MIB, bucket_caps, buckets, groups_with_barrier_s
from ropewalk.overlap.dear import dear, tuned
from ropewalk.overlap.groups import Groups
from ropewalk.overlap.link import ExchangeKind, Link
from ropewalk.overlap.merging import merged_gradients
from ropewalk.overlap.tensors import from_layers

GATHERS = json.loads((Path(__file__).parents[2] / "data" / "fused_sums.json").read_text())["gather_phase"]


def layers(sizes, backward=1.0, forward=1.0):
    return from_layers(sizes, backward_s=[backward] * len(sizes), forward_s=[forward] * len(sizes))


def test_the_first_bucket_is_small_and_a_bucket_is_closed_by_the_tensor_that_fills_it():
    sizes = [10 * MIB, 20 * MIB, 4 * MIB, 0.5 * MIB, 0.75 * MIB]
    assert buckets(layers(sizes)).members == ((4, 3), (2, 1, 0))
    assert buckets(layers([30 * MIB, *sizes])).members == ((5, 4), (3, 2, 1), (0,))


def test_a_cap_that_is_given_is_the_cap_of_the_first_bucket_too():
    sizes = [10 * MIB, 20 * MIB, 4 * MIB, 0.5 * MIB, 0.75 * MIB]
    assert buckets(layers(sizes), bucket_caps(25 * MIB)).members == ((4, 3, 2, 1), (0,))


def test_buckets_wait_at_a_barrier():
    # The second bucket ends at 3 + 3; then the whole forward pass follows.
    assert groups_with_barrier_s(layers([2, 1, 1]), Link(1), Groups(((2,), (1, 0)))) == 3 + 3 + 3


def test_caps_that_cannot_be_filled_are_refused():
    with pytest.raises(GraphError, match="positive cap"):
        buckets(layers([1]), ())
    with pytest.raises(GraphError, match="positive cap"):
        buckets(layers([1]), (0,))


def test_gradients_far_apart_are_not_merged():
    assert merged_gradients(layers([1] * 4, backward=3), Link(1, start_up_s=1)).members == ((3,), (2,), (1,), (0,))


def test_gradients_that_exist_before_the_exchange_could_begin_are_merged():
    # Tensor 3 is sent from 1 to 7; tensors 2, 1 and 0 all exist before the network is free, and go together.
    assert merged_gradients(layers([1, 1, 1, 5]), Link(1, start_up_s=1)).members == ((3,), (2, 1, 0))


def test_waiting_less_than_a_start_up_is_worth_a_merge_and_waiting_as_long_is_not():
    close = from_layers([1, 1], backward_s=[0.9, 1], forward_s=[1, 1])
    assert merged_gradients(close, Link(1, start_up_s=1)).members == ((1, 0),)
    assert merged_gradients(layers([1, 1]), Link(1, start_up_s=1)).members == ((1,), (0,))


@pytest.mark.parametrize("case", GATHERS, ids=lambda case: f"{case['tensors']} tensors, start-up {case['start_up']}")
def test_gathering_in_groups_against_one_streamed_launch(case):
    count, start_up = case["tensors"], case["start_up"]
    ones = [1.0] * count
    assert gather_phase_s(ones, ones, [count], start_up) == case["whole"]
    assert gather_phase_s(ones, ones, range(1, count + 1), start_up) == case["one_by_one"]
    best, ends = best_gather_phase(ones, ones, start_up)
    assert best == case["best_groups"] == gather_phase_s(ones, ones, ends, start_up)
    assert streamed_gather_phase_s(ones, ones, start_up) == case["streamed"]


def test_the_halves_meet_at_the_end_of_the_backward_pass():
    # Gradients at 2, 4, 6; reduce-scatters from 2 to 3.5, 4 to 7 and 7 to 8.5.
    tensors = from_layers([3, 6, 3], backward_s=[2] * 3, forward_s=[2] * 3)
    whole = dear(tensors, Link(1), Groups(((2,), (1,), (0,))))
    assert whole.barrier_s == 8.5
    # All-gathers end at 10, 13, 14.5; the layers start at 10, 13, 15.
    assert whole.step_s == 17
    assert whole.scatter_s.tolist() == [[2, 3.5], [4, 7], [7, 8.5]]
    assert whole.gather_s.tolist() == [[13, 14.5], [10, 13], [8.5, 10]]
    assert whole.arrival_s.tolist() == [10, 13, 14.5]


def test_each_half_is_launched_on_its_own_but_shares_the_rounds():
    tensors = layers([2])
    assert dear(tensors, Link(1, start_up_s=1), Groups(((0,),))).step_s == 1 + 2 + 2 * 1 + 1
    assert dear(tensors, Link(1, start_up_s=1), Groups(((0,),)), rounds_s=1).step_s == 1 + 2 + 1 + 1


def test_a_group_waits_as_a_whole_at_its_first_layer():
    tensors = layers([2, 2], backward=0)
    assert dear(tensors, Link(1), Groups(((1, 0),))).step_s == 2 + 2 + 2
    assert dear(tensors, Link(1), Groups(((1,), (0,)))).step_s == 2 + 1 + 1 + 1


def test_tuned_groups_are_the_best_of_those_tried():
    tensors = layers([4 * MIB] * 6, backward=0.1, forward=0.1)
    link = Link(16 * MIB, start_up_s=0.05)
    best = tuned(tensors, link, thresholds_mib=(4, 8, 24))
    assert best.step_s == min(dear(tensors, link, buckets(tensors, (cap * MIB,))).step_s for cap in (4, 8, 24))


def test_halves_of_pushes_and_pulls_are_refused():
    with pytest.raises(GraphError, match="two resources"):
        dear(layers([1]), Link(1, kind=ExchangeKind.PARAMETER_SERVER), Groups(((0,),)))
