"""A model as a planner sees it."""

import numpy as np
import pytest

from ropewalk.device.pricer import pricer
from ropewalk.errors import WorkloadError
from ropewalk.pipeline.profile import Profile, from_states, profile_of
from ropewalk.workload.opaque import Measured
from ropewalk.workload.source import open_workload
from ropewalk.workload.workload import Layer, Workload


def layer(name: str, seconds: float, elements: int, *inputs: int) -> Layer:
    return Layer(name, (Measured(seconds, 2 * seconds, 100, 40.0),), elements, inputs)


def tiny() -> Workload:
    """0 is read by 1 and by 3; 2 reads 1; 3 reads 2 and 0."""
    layers = layer("a", 1, 10), layer("b", 2, 20, 0), layer("c", 3, 30, 1), layer("d", 4, 40, 0, 2)
    return Workload("tiny", layers, 8)


def test_costs_of_a_range_of_states_include_both_ends():
    profile = profile_of(tiny())
    assert profile.forward(1, 2) == 5
    assert profile.backward(0, 3) == 20
    assert profile.parameters(3, 3) == 400
    assert profile.kept(0, 1) == 80
    assert profile.seconds == 30


def test_a_tensor_read_by_a_later_layer_crosses_every_cut_before_it_once():
    profile = profile_of(tiny())
    assert [profile.handed_on(state) for state in range(4)] == [40, 120, 160, 0]


def test_half_the_samples_take_half_the_time_and_the_same_weights():
    profile = profile_of(tiny()).at_batch(4)
    assert profile.batch == 4
    assert profile.forward(0, 3) == 5
    assert profile.handed_on(0) == 20
    assert profile.parameters(0, 3) == 1600


def test_layers_of_the_zoo_cost_what_the_device_asks():
    workload = open_workload("llama-7b", batch=1, sequence=256)
    prices = pricer("h100", "bf16")
    profile = profile_of(workload, prices)
    assert profile.states == len(workload.layers)
    assert profile.forward(3, 3) == pytest.approx(prices.forward(workload.layers[3].operators))
    assert profile.parameters(0, profile.states - 1) == 2 * workload.parameters()
    assert profile.handed_on(3) == 2 * workload.layers[3].output_elements
    assert profile.source == prices.source


def test_measured_layers_keep_their_times_on_every_device():
    assert profile_of(tiny(), pricer("a100", "bf16")).forward(0, 3) == profile_of(tiny()).forward(0, 3)


def test_the_arrays_of_a_profile_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        profile_of(tiny()).forward_s[0] = 1


def test_a_profile_with_too_few_sums_says_how_many_it_needs():
    with pytest.raises(WorkloadError, match="backward_s has 2 sums for 2 states: give 3"):
        Profile("short", 1, ("a", "b"), np.zeros(3), np.zeros(2), np.zeros(3), np.zeros(3), np.zeros(2))


def test_no_samples_and_times_that_are_none_are_refused_together():
    with pytest.raises(WorkloadError, match="2 findings"):
        from_states("odd", 0, forward_s=[np.nan], backward_s=[1], parameter_bytes=[1])


def test_a_micro_batch_of_nothing_is_refused():
    with pytest.raises(WorkloadError, match="micro-batch of 0 samples: give 1 or more"):
        profile_of(tiny()).at_batch(0)
