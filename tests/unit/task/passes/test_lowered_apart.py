"""Gradients of lowered models: one for each layer, whatever else the step does."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_models import EvenPrices, FlopPrices, clocked, step_time, transformer

from ropewalk.errors import GraphError
from ropewalk.strategy import Placement, Strategy
from ropewalk.task.lower import lower
from ropewalk.task.passes import cross_barrier, fuse, gradients_of_layers, lowered_apart, with_barrier, woven

PARAMETERS = 12 * 16**2 + 13 * 16
"""Of a block of the tiny transformer."""


def apart(strategy, prices=EvenPrices, **model):
    return lowered_apart(transformer(**model), strategy, Placement(strategy), prices())


def test_every_layer_is_summed_by_itself_in_as_many_groups_as_it_has_parts():
    gradients = apart(Strategy(data=2, tensor=2), blocks=3)
    assert gradients.names == ("block 0", "block 1", "block 2")
    assert len(gradients.size_bytes) == 6
    assert len(set(gradients.lane.tolist())) == 2
    assert gradients.lots == 3


def test_bytes_are_those_of_the_parameters():
    gradients = apart(Strategy(data=2), blocks=3)
    bytes_each = gradients.size_bytes / PARAMETERS
    assert np.ptp(bytes_each) == 0
    assert bytes_each[0] in (2.0, 4.0)


def test_pipeline_stages_sum_their_own_layers():
    gradients = apart(Strategy(data=2, pipeline=2, micro_batches=2), blocks=4)
    lane = {gradients.names[tensor]: int(lane) for tensor, lane in zip(gradients.tensor, gradients.lane, strict=True)}
    assert lane["block 0"] == lane["block 1"] != lane["block 2"] == lane["block 3"]


def test_experts_are_launched_with_their_layer_among_those_who_have_them():
    gradients = apart(Strategy(data=4, expert=2), blocks=2, mixture=2)
    assert gradients.names == ("block 0", "block 1")
    assert gradients.lots == 2
    assert sorted({len(gradients.base.groups[lane]) for lane in gradients.lane}) == [2, 4]


def test_an_embedding_that_two_stages_share_is_summed_between_them_after_its_gradients():
    gradients = apart(Strategy(data=2, pipeline=2, micro_batches=2), blocks=2, words=10)
    step = woven(cross_barrier(gradients, 2)).step
    assert sum(step.name_of(at) == "tied embedding" for at in range(step.operations)) == 4
    assert step_time(step, 1e-3) > 0


def test_three_steps_with_a_barrier_take_three_times_one():
    gradients = apart(Strategy(data=2), blocks=3)
    one, three = (step_time(woven(with_barrier(gradients, steps)).step, 1e-3) for steps in (1, 3))
    assert three == pytest.approx(3 * one)


def test_across_the_barrier_computing_is_the_same():
    strategy = Strategy(data=2, micro_batches=2)
    gradients = apart(strategy, FlopPrices, blocks=3)
    kept, crossed = (woven(way(gradients, 2)).step for way in (with_barrier, cross_barrier))
    # The last step's update is left to the step behind it.
    left = gradients.base.amount[gradients.updates()].sum()
    assert crossed.amount[crossed.act == 0].sum() == pytest.approx(kept.amount[kept.act == 0].sum() - left)


def test_fusing_what_buckets_would_hold_gives_the_step_that_lowering_makes():
    strategy = Strategy(data=2)
    gradients = apart(strategy, blocks=4)
    size = float(gradients.size_bytes[0])
    buckets = replace(strategy, bucket_bytes=2 * size)
    step = lower(transformer(4), buckets, Placement(buckets), EvenPrices(), detail="layer")
    fused = woven(fuse(gradients, [[3, 2], [1, 0]])).step
    assert sorted(clocked(fused, 1e-3)[1]) == pytest.approx(sorted(clocked(step, 1e-3)[1]))


@pytest.mark.parametrize("strategy", [Strategy(data=2, zero=1), Strategy(data=2, overlap_gradients=False)])
def test_steps_whose_order_is_fixed_are_refused(strategy):
    with pytest.raises(GraphError, match="give zero 0 and overlap_gradients"):
        apart(strategy)


def test_a_step_of_whole_stages_names_no_layers():
    strategy = Strategy(data=2)
    step = lower(transformer(2), strategy, Placement(strategy), EvenPrices(), detail="stage")
    gradients = gradients_of_layers(step)
    assert gradients.names == ("stage 0",)
