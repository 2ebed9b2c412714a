"""The released planner's search and estimate on worlds small enough to count by hand."""

import numpy as np
import pytest
from released_data_parallel import overlapped_speedup, plain_speedup, samples_at_once

from ropewalk.errors import StrategyError, WorkloadError
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.profile import from_states
from ropewalk.pipeline.released import States, in_a_row, released_plan
from ropewalk.pipeline.released_estimate import REPAIRED, Habits, ReleasedEstimate, ReleasedStage

SLOW = Machines(2, (1, 2), p2p_between=1.0, collective_between=1.0)


def chain(*, forward, weights, crossing, batch=1) -> States:
    profile = from_states(
        "chain", batch, forward_s=forward, backward_s=forward, parameter_bytes=weights, crossing_bytes=crossing,
        kept_bytes=np.ones(len(forward)),
    )  # fmt: skip
    return in_a_row(profile)


EVEN = chain(forward=[1, 1], weights=[0, 0], crossing=[0, 0])


def test_two_equal_layers_without_weights_fill_a_pipeline_of_two():
    plan = released_plan(EVEN, SLOW, global_batch=4, micro_batch=1).straight[0]
    # T = 16 s; 4 micro-batches of 2 s in each stage: 3 blocks, then one micro-batch through all of the model.
    assert plan.slowest_s == 8
    assert plan.speedup == 16 / (3 * 2 + 4)
    assert plan.strategy == "straight"


def test_one_stage_sums_its_gradients_behind_all_micro_batches():
    heavy = chain(forward=[1, 1], weights=[3, 4], crossing=[0, 0])
    (plan,) = released_plan(heavy, SLOW, 4, 1).data_parallel
    # The first micro-batch takes 4 s as on one GPU, three others 2 s; then 7 bytes are summed at 1 byte/s.
    assert plan.speedup == 16 / (3 * 2 + 4 + 7)
    assert plan.strategy == "DP"


def test_with_too_few_samples_for_the_copies_there_is_no_speed_up():
    four = Machines(4, (4,))
    assert released_plan(EVEN, four, 1, 1).straight[0].speedup == 0


def test_the_first_state_of_the_next_stage_is_summed_twice_as_released_and_once_repaired():
    model = chain(forward=[1, 1, 1], weights=[0, 5, 0], crossing=[0, 0, 0]).profile
    machines = Machines(3, (1, 2, 3), collective_between=1.0)
    stages = ReleasedStage(0, 0, (0, 1)), ReleasedStage(1, 2, (2,))
    plan = ReleasedEstimate(model, machines, 1, 1).plan(stages, 1)
    assert plan.speedup == 6 / (6 + 5)
    once = Habits(first_of_next_counted_twice=False)
    assert ReleasedEstimate(model, machines, 1, 1, once).plan(stages, 1).speedup == 1


def test_gradients_at_the_cut_are_paid_for_by_straight_pipelines_alone_until_repaired():
    model = chain(forward=[1, 1], weights=[0, 0], crossing=[5, 0]).profile
    stages = ReleasedStage(0, 0, (0,)), ReleasedStage(1, 1, (1,))
    released, repaired = ReleasedEstimate(model, SLOW, 1, 1), ReleasedEstimate(model, SLOW, 1, 1, REPAIRED)
    assert released.plan(stages, 1).slowest_s == 5
    assert released.plan(stages, 1, straight=True).slowest_s == 10
    assert repaired.plan(stages, 1).slowest_s == 10


def test_the_first_micro_batch_uses_all_replicas_only_when_repaired():
    model = chain(forward=[2, 2], weights=[0, 0], crossing=[0, 0]).profile
    stages = (ReleasedStage(0, 1, (0, 1)),)
    assert ReleasedEstimate(model, SLOW, 1, 1).plan(stages, 1).speedup == 1
    assert ReleasedEstimate(model, SLOW, 1, 1, REPAIRED).plan(stages, 1).speedup == 2


def test_cuts_that_are_equally_good_go_to_the_earliest():
    idle = chain(forward=[1, 0, 0, 1], weights=[0] * 4, crossing=[0] * 4)
    assert released_plan(idle, SLOW, 1, 1).straight[0].stages[1].first == 1


def test_only_states_that_contain_each_other_become_stages():
    side_by_side = States(EVEN.profile, np.zeros((2, 2), bool))
    with pytest.raises(StrategyError, match="no 2 states of 2 are consecutive"):
        released_plan(side_by_side, SLOW, 1, 1)


def test_batches_and_machines_that_make_no_pipeline_are_refused():
    with pytest.raises(StrategyError, match="needs two GPUs"):
        released_plan(EVEN, Machines(1, (1,)), 1, 1)
    with pytest.raises(StrategyError, match="global batch of 0 in micro-batches of 1"):
        released_plan(EVEN, SLOW, 0, 1)


def test_sums_hide_behind_what_is_left_of_the_backward_pass():
    model = chain(forward=[4, 4], weights=[1, 3], crossing=[0, 0]).profile
    # Both GPUs pass one of two samples, 8 s forward and 8 s back. The 3 bytes of layer 1 are summed during the 4 s
    # of layer 0; the byte of layer 0 is left.
    assert plain_speedup(model, SLOW, 2) == 32 / (16 + 4)
    assert overlapped_speedup(model, SLOW, 2, at_once=1) == 32 / (16 + 1)


def test_sums_queue_behind_each_other():
    model = chain(forward=[4, 4], weights=[1, 9], crossing=[0, 0]).profile
    assert overlapped_speedup(model, SLOW, 2, at_once=1) == 32 / (16 + 10 - 4)


def test_a_gpu_takes_an_even_part_of_its_samples_that_fits():
    model = chain(forward=[1], weights=[1e9], crossing=[0], batch=2).profile
    assert samples_at_once(model, 4, 64, used_bytes=6e9) == 8  # 4 GB of optimiser, 1 GB a sample, room for 12 of 16
    assert samples_at_once(model, 4, 16, used_bytes=6e9) == 4
    assert samples_at_once(model, 4, 64, used_bytes=17e9) == 0
    assert samples_at_once(model, 4, 64, used_bytes=3e9) == 2


def test_models_that_fit_nowhere_and_states_side_by_side_are_not_judged():
    with pytest.raises(StrategyError, match="not for a single sample"):
        overlapped_speedup(EVEN.profile, SLOW, 2, at_once=0)
    odd = from_states("odd", 1, forward_s=[2, -1], backward_s=[0, 0], parameter_bytes=[1, 1])
    with pytest.raises(WorkloadError, match="not one after the other"):
        overlapped_speedup(odd, SLOW, 2, at_once=1)
