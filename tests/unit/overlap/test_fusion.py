"""Groups of tensors: what the judge says, what the searches find."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from grouping_oracles import fuse_exactly, judge

from ropewalk.errors import GraphError
from ropewalk.overlap.fusion import fuse
from ropewalk.overlap.groups import Arrival, Groups
from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.link import ExchangeKind, Link
from ropewalk.overlap.tensors import from_layers

CASES = json.loads((Path(__file__).parents[2] / "data" / "fused_sums.json").read_text())["fusion"]


def setting(case):
    sums = one_stream_sums(from_layers(case["sizes"], backward_s=case["backward"], forward_s=case["forward"]))
    return sums, Link(1 / case["seconds_per_byte"], case["start_up"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case['sizes'])} tensors, best {case['best']}")
def test_no_fusion_all_fused_and_the_best_are_the_known_values(case):
    sums, link = setting(case)
    assert judge(sums, link, Groups.singles(sums.in_ready_order)) == case["no_fusion"]
    assert judge(sums, link, Groups.one(sums.in_ready_order)) == case["all_fused"]
    exact = fuse_exactly(sums, link)
    assert exact.value_s == case["best"] == judge(sums, link, exact.groups)
    grown = fuse(sums, link)
    assert grown.value_s == case["best"] == judge(sums, link, grown.groups)


def test_six_equal_gradients_at_once_are_best_fused_into_one():
    # All gradients exist at time 1 and one layer reads them all: every further start-up is lost.
    tensors = from_layers([1] * 6, backward_s=[1], forward_s=[1], layer=[0] * 6)
    sums = one_stream_sums(tensors)
    link = Link(1, start_up_s=2)
    assert fuse(sums, link).groups == fuse_exactly(sums, link).groups == Groups.one(sums.in_ready_order)
    assert fuse(sums, link).value_s == 1 + 2 + 6 + 1


def test_streaming_keeps_one_start_up_and_lets_the_urgent_tensor_go_first():
    sums = one_stream_sums(from_layers([1] * 4, backward_s=[0] * 4, forward_s=[1] * 4))
    link = Link(1, start_up_s=1)
    one = Groups.one(sums.in_ready_order)
    assert judge(sums, link, one) == 1 + 4 + 4
    assert judge(sums, link, one, Arrival.GATHERED) == 1 + 2 + 0.5 + 4
    assert judge(sums, link, one, Arrival.THROUGH) == 1 + 1 + 4


def test_rounds_are_paid_again_by_every_tensor_that_streams():
    sums = one_stream_sums(from_layers([1] * 4, backward_s=[0] * 4, forward_s=[0] * 4))
    link = Link(1, start_up_s=1)
    one = Groups.one(sums.in_ready_order)
    assert judge(sums, link, one, Arrival.THROUGH, rounds_s=0.25) == 1 + 4 + 3 * 0.25
    assert judge(sums, link, one, Arrival.GATHERED, rounds_s=0.25) == 1 + 4 + 3 * 0.125
    assert judge(sums, link, one, Arrival.TOGETHER, rounds_s=0.25) == 1 + 4


def test_groups_no_wider_than_asked_for():
    tensors = from_layers([1] * 6, backward_s=[1], forward_s=[1], layer=[0] * 6)
    found = fuse(one_stream_sums(tensors), Link(1, start_up_s=2), widest=2)
    assert max(map(len, found.groups.members)) == 2


def test_groups_are_judged_in_the_order_in_which_they_are_ready():
    sums = one_stream_sums(from_layers([3, 6, 3], backward_s=[2] * 3, forward_s=[2] * 3))
    late_first, early_first = Groups(((0,), (1, 2))), Groups(((1, 2), (0,)))
    assert judge(sums, Link(1), late_first) == judge(sums, Link(1), early_first)
    assert early_first.by_ready(sums.head_s).members == ((1, 2), (0,))


def test_groups_that_miss_a_tensor_or_are_empty_are_refused():
    with pytest.raises(GraphError, match="exactly once"):
        Groups(((0, 2),))
    with pytest.raises(GraphError, match="empty"):
        Groups(((0,), ()))
    sums = one_stream_sums(from_layers([1, 1], backward_s=[1, 1], forward_s=[1, 1]))
    with pytest.raises(GraphError, match="list every tensor"):
        judge(sums, Link(1), Groups(((0,),)))


def test_more_tensors_than_can_be_tried_out_are_refused_with_the_alternative():
    many = one_stream_sums(from_layers(np.ones(21), backward_s=np.ones(21), forward_s=np.ones(21)))
    with pytest.raises(GraphError, match="use fuse"):
        fuse_exactly(many, Link(1))


def test_a_parameter_server_is_not_one_resource():
    sums = one_stream_sums(from_layers([1], backward_s=[1], forward_s=[1]))
    with pytest.raises(GraphError, match="two resources"):
        fuse(sums, Link(1, kind=ExchangeKind.PARAMETER_SERVER))


def test_rounds_longer_than_the_start_up_are_refused():
    sums = one_stream_sums(from_layers([1], backward_s=[1], forward_s=[1]))
    with pytest.raises(GraphError, match="part of the start-up"):
        fuse(sums, Link(1, start_up_s=1), rounds_s=2)
