"""Policies side by side, and the bounds below them."""

from __future__ import annotations

import pytest

from ropewalk.overlap.bounds import lower_bounds
from ropewalk.overlap.comparison import compare, comparisons, ring_with_launches
from ropewalk.overlap.link import Link
from ropewalk.overlap.tensors import from_layers, tensors_of
from ropewalk.workload.source import open_workload

POLICIES = ("fifo_s", "ddp_s", "mg_wfbp_s", "dear_s", "pace_s", "streamed_s")


@pytest.fixture(scope="module")
def resnet():
    return tensors_of(open_workload("resnet50", batch=64))


@pytest.fixture(scope="module")
def rows(resnet):
    return list(comparisons([resnet], speeds_gbps=(10, 100), launches_s=(20e-6, 1e-3)))


def test_no_policy_beats_the_bound_and_the_plans_beat_what_frameworks_do(rows):
    for row in rows:
        for policy in POLICIES:
            assert getattr(row, policy) >= row.lower_bound_s * (1 - 1e-12), (row, policy)
        assert row.pace_s <= min(row.fifo_s, row.ddp_s, row.mg_wfbp_s) * (1 + 1e-12)
        assert row.streamed_s <= row.pace_s * (1 + 1e-12)


def test_order_helps_where_the_network_is_the_bottleneck_and_not_where_computing_is(rows):
    slow = next(row for row in rows if row.gbps == 10 and row.launch_s < 1e-4)
    fast = next(row for row in rows if row.gbps == 100 and row.launch_s < 1e-4)
    assert slow.ddp_s / slow.pace_s > 1.1
    assert fast.fifo_s / fast.pace_s < 1.01
    assert fast.pace_s < 1.01 * fast.compute_s


def test_streaming_gains_with_dear_launches_and_nothing_with_cheap_ones(rows):
    for row in rows:
        gain = row.pace_s / row.streamed_s
        if row.launch_s >= 1e-3:
            assert 1.01 < gain < 1.1, row
        else:
            assert gain < 1.005, row


def test_fewer_launches_are_streamed_than_cut(rows):
    assert all(row.streamed_launches <= row.pace_launches for row in rows)


def test_a_ring_with_launches_splits_its_start_up():
    link, rounds_s = ring_with_launches(16, 1.25e9, 20e-6, 2e-6)
    assert rounds_s == pytest.approx(30 * 2e-6)
    assert link.start_up_s == pytest.approx(80e-6)


def test_rows_come_with_all_their_inputs(resnet):
    row = compare(resnet, 25, 8, 50e-6).row()
    assert {"model", "gbps", "launch_s", "hop_s", "workers", "lower_bound_s"} <= row.keys()


def test_bounds_of_a_fork_count_its_branches_side_by_side_or_in_turn():
    fork = from_layers([1, 1, 1, 1], backward_s=[1, 5, 2, 1], forward_s=[1, 4, 2, 1], inputs=((), (0,), (0,), (1, 2)))
    bounds = lower_bounds(fork, Link(bandwidth=1))
    # Side by side: the stem's gradient exists at 7, is summed until 8, and 6 follow. In turn: 9, 10, and 8 follow.
    assert bounds.any_order_s == 14
    assert bounds.one_stream_s == bounds.step_s == 18
    assert (bounds.computing_s, bounds.network_s) == (17, 1 + 4 + 1)


def test_gradients_that_were_seen_early_lower_the_bound():
    early = from_layers([1, 1], backward_s=[5, 5], forward_s=[1, 1], ready_s=[2, 1])
    assert lower_bounds(early, Link(bandwidth=1)).step_s == 12
