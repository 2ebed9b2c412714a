"""What a question leaves open is filled in; what cannot be meant is refused with a remedy."""

import pytest

from ropewalk.errors import InputError, StrategyError
from ropewalk.fabric import Dgx, IdealSwitch, Torus
from ropewalk.training import NetworkUse, TrainingQuestion


@pytest.mark.parametrize(
    ("given", "gpus"),
    [
        ({}, 8),
        ({"gpus": 3}, 3),
        ({"tensor": 4}, 8),
        ({"tensor": 16}, 16),
        ({"tensor": 8, "pipeline": 3}, 24),
        ({"data": 2, "tensor": 8}, 16),
        ({"data": 1}, 1),
    ],
)
def test_the_number_of_gpus_follows_from_the_degrees(given, gpus):
    assert TrainingQuestion("gpt2", **given).gpu_count == gpus


def test_data_parallelism_is_what_the_others_leave():
    plan = TrainingQuestion("gpt2", gpus=32, tensor=4, pipeline=2, batch=64, micro_batch=2).strategy()
    assert (plan.data, plan.tensor, plan.pipeline) == (4, 4, 2)
    assert (plan.micro_batch, plan.micro_batches, plan.global_batch) == (2, 8, 64)


def test_degrees_that_do_not_divide_the_gpus_are_refused():
    with pytest.raises(StrategyError, match="does not divide 8 GPUs"):
        TrainingQuestion("gpt2", gpus=8, tensor=3).strategy()


def test_all_that_cannot_be_meant_is_refused_at_once():
    asked = TrainingQuestion("gpt2", gpus=8, tensor=0, jitter=50.0, stragglers={9: 2.0})
    with pytest.raises(StrategyError) as refused:
        asked.strategy()
    for part in ("tensor is 0", "straggler 9:2", "jitter of 50"):
        assert part in str(refused.value)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_a_straggler_is_slower_by_a_number_that_can_be(factor):
    with pytest.raises(StrategyError, match="straggler 0:"):
        TrainingQuestion("gpt2", stragglers={0: factor}).strategy()


def test_jitter_beyond_the_time_itself_is_refused():
    """The factors have mean 1 however much they vary: with a sigma of 5 almost all computations would vanish."""
    with pytest.raises(StrategyError, match="a jitter of 5 is out of range"):
        TrainingQuestion("gpt2", jitter=5.0).strategy()


def test_routing_fits_the_fabric():
    assert NetworkUse().router_on(Torus((4, 4)).build()) == "dimension-rotated"
    assert NetworkUse("ecmp").router_on(Dgx(2).build()) == "ecmp"
    with pytest.raises(InputError, match=r"router dmodk needs a tree of switches .* torus:4x4"):
        NetworkUse("dmodk").router_on(Torus((4, 4)).build())
    with pytest.raises(InputError, match="there is no router 'fastest'"):
        NetworkUse("fastest").router_on(IdealSwitch(2).build())
