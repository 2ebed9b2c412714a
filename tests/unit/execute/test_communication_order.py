"""Orders cover every element once, survive files, and say what the plans say they were made of."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import measured_overlap
from ropewalk.errors import ProgramError, StrategyError
from ropewalk.execute.overlap import (
    CommunicationOrder,
    OperationLaunch,
    Piece,
    fused,
    order_of_groups,
    order_of_launches,
    order_of_run,
    order_of_streamed,
    read_order,
    schedule,
    streamed_through,
)
from ropewalk.execute.overlap.layer_times import LayerTimes
from ropewalk.execute.overlap.link_times import LinkTimes
from ropewalk.execute.overlap.order import order_of_document
from ropewalk.overlap.buckets import buckets
from ropewalk.overlap.groups import Arrival, Groups
from ropewalk.overlap.heads_tails import one_stream_sums
from ropewalk.overlap.launches import planned
from ropewalk.overlap.link import Link
from ropewalk.overlap.plans import fused_plan
from ropewalk.overlap.policy import OverlapPolicy
from ropewalk.overlap.scheduler import schedule as modelled
from ropewalk.overlap.tensors import from_layers


def world(elements, seconds=2.0):
    count = len(elements)
    names = tuple(f"p{at}" for at in range(count))
    return from_layers(4 * np.array(elements), backward_s=[seconds] * count, forward_s=[seconds] * count, names=names)


def test_the_drawn_example_of_bytescheduler_is_launched_piece_by_piece():
    run = modelled(world([3, 6, 3]), Link(bandwidth=4), OverlapPolicy(partition_bytes=4))
    order = order_of_run(run)
    assert [(piece.tensor, piece.start) for launch in order.launches for piece in launch.pieces] == [
        ("p2", 0), ("p2", 1), ("p1", 0), ("p1", 1), ("p0", 0), ("p0", 1), ("p0", 2),
        ("p1", 2), ("p1", 3), ("p1", 4), ("p1", 5), ("p2", 2),
    ]  # fmt: skip
    assert (order.credit_bytes, order.barrier) == (0.0, False)


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 500), min_size=1, max_size=7),
    st.floats(1.0, 400.0),
    st.floats(0.0, 3.0),
    st.floats(3.0, 900.0),
)
@example([67], 1.0, 0.0, 8.600000000000001)
def test_every_plan_covers_every_element_once(elements, bandwidth, start_up, partition):
    tensors, link = world(elements), Link(bandwidth, start_up)
    wanted = dict(zip(tensors.names, elements, strict=True))
    orders = [
        order_of_groups(tensors, buckets(tensors, (300.0,))),
        order_of_run(modelled(tensors, link, OverlapPolicy(partition_bytes=partition))),
        order_of_launches(tensors, fused_plan(tensors, link).launches),
        order_of_streamed(tensors, streamed_through(tensors, link, rounds_s=start_up / 2)),
    ]
    for order in orders:
        assert order.elements == wanted  # the constructor refuses gaps and overlaps
        order.check_against(wanted)


def test_a_streamed_group_is_one_launch_in_which_the_most_urgent_tensor_comes_first():
    tensors, link = world([8, 8, 8]), Link(bandwidth=1e6, start_up_s=1.0)
    run = planned(one_stream_sums(tensors), link, Groups.one(tensors.in_ready_order), Arrival.THROUGH)
    order = order_of_launches(tensors, run.launches)
    assert order.launches == (OperationLaunch(((Piece("p0", 0, 8),), (Piece("p1", 0, 8),), (Piece("p2", 0, 8),))),)


def test_a_group_that_arrives_together_is_one_operation():
    tensors = world([8, 4])
    run = planned(one_stream_sums(tensors), Link(1e6, 1.0), Groups.one(tensors.in_ready_order))
    assert order_of_launches(tensors, run.launches).launches == (fused(Piece("p0", 0, 8), Piece("p1", 0, 4)),)


def test_plans_that_need_halves_of_all_reduces_are_refused():
    tensors = world([8, 4])
    run = planned(one_stream_sums(tensors), Link(1e6, 1.0), Groups.one(tensors.in_ready_order), Arrival.GATHERED)
    with pytest.raises(StrategyError, match=r"plan with Arrival\.THROUGH"):
        order_of_launches(tensors, run.launches)


def test_parts_of_elements_are_refused():
    with pytest.raises(StrategyError, match="p0 of model is not a whole number of elements of 8 bytes"):
        order_of_groups(world([3, 2]), Groups.one([1, 0]), element_bytes=8)


@pytest.mark.parametrize("credit", [0.0, 12.5, float("inf")])
def test_an_order_survives_a_file(tmp_path, credit):
    launches = (fused(Piece("a", 0, 3), Piece("b", 0, 1)), OperationLaunch(((Piece("b", 1, 2),), (Piece("a", 3, 4),))))
    order = CommunicationOrder(launches, credit, barrier=credit > 0)
    order.write(tmp_path / "order.json")
    assert read_order(tmp_path / "order.json") == order


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"credit": 4}, "has the entry 'credit', which no order has: use launches, credit_bytes, barrier, stream"),
        ({"barrier": "no"}, "barrier is 'no': give true or false"),
        ({"credit_bytes": True}, "credit_bytes is True: give a number"),
        ({"credit_bytes": "4"}, "credit_bytes is '4': give a number"),
        ({"launches": [[[["a", 0, 2.5]]]]}, "is not a piece"),
        ({"launches": [[[[7, 0, 2]]]]}, "is not a piece"),
        ({"launches": [[[["a", False, 2]]]]}, "is not a piece"),
        ({"stream": {"mix": 1}}, "mix is 1"),
    ],
)
def test_orders_are_read_field_by_field(change, complaint):
    order = CommunicationOrder((fused(Piece("a", 0, 3)),))
    with pytest.raises(StrategyError, match=complaint):
        order_of_document(order.document() | change)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}", "is not in the format"),
        ('{"format": "ropewalk communication order 1", "launches": [[["a", 0]]]}', "cannot be read"),
        ('{"format": "ropewalk communication order 1", "launches": []}', "nothing is launched"),
    ],
)
def test_files_that_hold_no_order_are_refused(tmp_path, text, complaint):
    (tmp_path / "order.json").write_text(text)
    with pytest.raises(StrategyError, match=complaint):
        read_order(tmp_path / "order.json")


@pytest.mark.parametrize(
    ("launches", "complaint"),
    [
        ((fused(Piece("a", 0, 2)), fused(Piece("a", 3, 4))), "pieces of a overlap or leave a gap"),
        ((fused(Piece("a", 0, 2)), fused(Piece("a", 1, 4))), "pieces of a overlap or leave a gap"),
        ((fused(Piece("a", 1, 2)),), "do not begin at element 0"),
        ((fused(Piece("a", 0, 2)), OperationLaunch(())), "launch 1 has an operation without pieces"),
    ],
)
def test_orders_that_miss_or_repeat_elements_are_refused(launches, complaint):
    with pytest.raises(StrategyError, match=complaint):
        CommunicationOrder(launches)


def test_without_pytorch_scheduling_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ProgramError, match='pip install "ropewalk\\[torch\\]"'):
        schedule(None, lambda parameters: None, CommunicationOrder((fused(Piece("a", 0, 1)),)))


def test_a_line_of_times_gives_its_link_back():
    sizes = (1000, 10_000, 100_000)
    link = LinkTimes(sizes, tuple(1e-3 + size / 5e7 for size in sizes)).link()
    assert (link.start_up_s, link.bandwidth) == (pytest.approx(1e-3), pytest.approx(5e7))


def test_the_recipe_predicts_no_way_below_its_bound():
    """A large last layer: orders that reach into the next step beat every barrier."""
    layers = LayerTimes(
        ("conv", "fc"),
        (0.04, 0.01),
        (0.08, 0.01),
        ("conv.weight", "fc.weight"),
        (400_000, 8_000_000),
        (0, 1),
        (0.09, 0.01),
    )
    sizes = (4096, 65536, 1 << 20)
    times = LinkTimes(sizes, tuple(4e-4 + size * 1.5 / 1.25e8 for size in sizes))
    predicted = {way.name: way.predicted_s for way in measured_overlap.ways(layers, times, times, "toy")}
    bound = measured_overlap._bound(layers.tensors("toy"), times.link(), "toy", 1000).predicted_s
    assert predicted.pop("no communication") <= bound <= min(predicted.values())
    assert max(predicted["priority, pieces"], predicted["fused and cut"], predicted["fused, streamed"]) < min(
        predicted["ddp, default buckets"], predicted["ddp, 1 MiB buckets"], predicted["as ready, barrier"]
    )
