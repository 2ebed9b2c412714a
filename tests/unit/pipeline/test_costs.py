import numpy as np
import pytest

from ropewalk.errors import StrategyError
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.profile import from_states
from ropewalk.pipeline.state_prices import MeasuredPrices, WorkloadPrices
from ropewalk.pipeline.terms import Terms
from ropewalk.strategy.part import Part
from ropewalk.workload.zoo import build

THREE = from_states(
    "three", 4, forward_s=[4, 8, 4], backward_s=[8, 16, 8], parameter_bytes=[1e9, 2e9, 3e9],
    crossing_bytes=[4e9, 8e9, 0], kept_bytes=[4e8, 8e8, 4e8],
)  # fmt: skip


def costs(machines=None, **terms) -> Costs:
    return Costs(THREE, machines or Machines(4, (2, 4)), Terms(8, 4, **terms))


def test_the_fullest_replica_sets_the_pace():
    three = Part(0, 0, (0, 1, 2))
    assert costs().passes(three, micro_batch=4) == (2.0, 4.0)  # two samples of four on one of three GPUs
    assert costs(whole_samples=False).passes(three, micro_batch=4) == (pytest.approx(4 / 3), pytest.approx(8 / 3))


def test_a_micro_batch_crosses_at_the_speed_between_its_gpus():
    before, behind = Part(0, 0, (0, 1)), Part(1, 2, (2, 3))
    assert costs().handover(before, behind, micro_batch=2) == pytest.approx(2e9 / 1e9)
    assert costs().handover(before, Part(1, 2, (1,)), micro_batch=4) == pytest.approx(4e9 / 25e9)


def test_sums_hide_behind_the_backward_pass_of_states_before():
    # Between machines 1 GB takes 1 / 3 s for two GPUs. All of 3 GB is ready when 8/2 s of the backward pass are left.
    stage = Part(0, 1, (0, 2))
    behind = costs(overlap_sums=False).all_reduce(stage, 4, "1f1b")
    assert behind == pytest.approx(3e9 / 3e9)
    assert costs().all_reduce(stage, 4, "1f1b") == pytest.approx(1e9 / 3e9)


def test_sums_hide_behind_gradients_of_weights_alone_where_these_are_put_off():
    slow = Machines(4, (2, 4), collective_between=3e8)
    stage = Part(0, 1, (0, 2))
    assert costs(slow).all_reduce(stage, 4, "1f1b") == pytest.approx(3e9 / 3e8 - 4)
    assert costs(slow).all_reduce(stage, 4, "zb-h1") == pytest.approx(3e9 / 3e8 - 2)


def test_gpus_that_share_samples_divide_the_work_and_add_up_outputs():
    forward, backward = costs(tensor=(1, 2)).passes(Part(0, 0, (0, 1), tensor=2), micro_batch=4)
    met = 2 * 4e9 / 25e9  # the output, twice, at the speed of one pair: 2 (n - 1) / n = 1
    assert (forward, backward) == (pytest.approx(2 + met), pytest.approx(4 + met))


def test_recomputation_lengthens_backward_and_keeps_only_what_enters():
    made = costs()
    stages = (Part(0, 0, (0,)), Part(1, 2, (1,)))
    plain, again = (made.times(PipelinePlan(stages, "1f1b", 4, 2, recompute)) for recompute in (False, True))
    assert np.array_equal(again.backward, plain.backward + plain.forward)
    assert made.input_bytes(stages[0], 4) == 0
    assert made.input_bytes(stages[1], 4) == 4e9


def test_a_backward_pass_in_two_parts_is_as_long_as_in_one():
    stages = (Part(0, 0, (0,)), Part(1, 2, (1,)))
    split, whole = (costs(weight_share=0.25).times(PipelinePlan(stages, name, 4, 2)) for name in ("zb-h1", "1f1b"))
    assert np.allclose(split.backward + split.weight, whole.backward)
    assert np.allclose(split.weight, whole.backward / 4)


def test_workloads_are_priced_anew_for_every_share_and_split():
    prices = WorkloadPrices(build("gpt2", batch=8))
    whole, half, shared = prices.at(8), prices.at(4), prices.at(8, tensor=2)
    assert whole.forward_s[-1] / 2 < half.forward_s[-1] < whole.forward_s[-1]  # small kernels are less efficient
    assert shared.parameter_bytes[-1] < whole.parameter_bytes[-1]
    assert shared.met_forward_bytes[-1] > 0 == whole.met_forward_bytes[-1]
    with pytest.raises(StrategyError, match="whole samples"):
        prices.at(0.5)


def test_measured_profiles_take_any_part_of_a_sample():
    assert MeasuredPrices(THREE).at(0.5).forward_s.tolist() == [0.0, 0.5, 1.5, 2.0]
