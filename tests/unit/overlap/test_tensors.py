"""What is to be synchronised, from numbers, profiles and models."""

import numpy as np
import pytest

from ropewalk.device.pricer import pricer
from ropewalk.errors import WorkloadError
from ropewalk.overlap.tensors import from_layers, tensors_of
from ropewalk.workload.zoo import build


def test_the_gradient_of_the_last_layer_is_ready_first() -> None:
    tensors = from_layers([1, 1, 1], backward_s=[1, 2, 4], forward_s=[8, 16, 32])
    assert tensors.ready_s.tolist() == [7.0, 6.0, 4.0]
    assert tensors.tail_s.tolist() == [56.0, 48.0, 32.0]
    assert tensors.in_ready_order.tolist() == [2, 1, 0]
    assert (tensors.backward_end_s, tensors.compute_s) == (7.0, 63.0)


def test_two_tensors_of_a_layer_are_ready_together_and_leave_in_backward_order() -> None:
    tensors = from_layers([1, 2, 3], backward_s=[1, 1], forward_s=[1, 1], layer=[0, 0, 1])
    assert tensors.ready_s.tolist() == [2.0, 2.0, 1.0]
    assert tensors.in_ready_order.tolist() == [2, 1, 0]


def test_a_layer_starts_when_its_own_tensors_are_there_or_with_a_barrier_when_all_are() -> None:
    tensors = from_layers([1, 1, 1], backward_s=[1, 1], forward_s=[5, 1], layer=[0, 1, 1])
    assert tensors.forward_start([3, 2, 9]).tolist() == [3.0, 9.0]
    assert tensors.forward_start([3, 2, 7]).tolist() == [3.0, 8.0]
    assert tensors.forward_start([3, 2, 9], barrier=True).tolist() == [9.0, 14.0]


def test_times_that_were_seen_replace_times_that_were_derived() -> None:
    assert from_layers([1], backward_s=[2], forward_s=[1], ready_s=[1.5]).ready_s.tolist() == [1.5]


@pytest.mark.parametrize(("name", "batch"), [("vgg16", 32), ("bert-base", 2), ("inception-v3", 4)])
def test_tensors_of_a_model_hold_its_parameters_and_take_the_time_of_a_step(name: str, batch: int) -> None:
    workload, prices = build(name, batch=batch), pricer("v100", "fp32")
    tensors = tensors_of(workload, prices)
    assert tensors.total_bytes == pytest.approx(4 * workload.parameters(), rel=1e-12)
    operators = [operator for layer in workload.layers for operator in layer.operators]
    step = prices.forward_work(operators) + prices.backward_work(operators)
    assert tensors.compute_s == pytest.approx(step.seconds, rel=1e-9)
    assert (np.diff(tensors.ready_s) <= 0).all()


def test_layers_of_a_graph_read_the_end_of_the_layers_they_read() -> None:
    workload = build("dlrm", batch=8)
    tensors = tensors_of(workload)
    assert not workload.is_chain
    assert not tensors.is_chain
    readers = sum(len(reads) for reads in tensors.inputs)
    inside = tensors.layers - len(workload.layers)
    assert readers == inside + sum(len(layer.inputs) for layer in workload.layers)


def test_vgg16_is_sixteen_tensors_of_which_one_holds_three_quarters() -> None:
    tensors = tensors_of(build("vgg16", batch=1), gradient_bytes=4)
    assert len(tensors) == 16
    assert tensors.size_bytes.max() / tensors.total_bytes == pytest.approx(102_764_544 / 138_357_544)


def test_the_update_waits_with_the_forward_pass() -> None:
    workload = build("vgg16", batch=64)
    plain, updated = tensors_of(workload), tensors_of(workload, optimiser="adamw")
    assert (updated.forward_s - updated.update_s).tolist() == pytest.approx(plain.forward_s.tolist(), rel=1e-3)
    assert updated.backward_s.tolist() == pytest.approx(plain.backward_s.tolist(), rel=1e-3)
    assert updated.update_s[updated.layer] / updated.update_s.sum() == pytest.approx(
        updated.size_bytes / updated.total_bytes
    )


def test_whole_layers_are_those_of_a_lowered_step() -> None:
    workload = build("bert-large", batch=4)
    fine, whole = tensors_of(workload), tensors_of(workload, whole_layers=True)
    assert whole.names == tuple(layer.name for layer in workload.layers if layer.parameters())
    assert len(fine) > len(whole)
    assert whole.total_bytes == fine.total_bytes
    assert whole.compute_s == pytest.approx(fine.compute_s)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"size_bytes": []}, "nothing to synchronise"),
        ({"size_bytes": [-1, 1]}, "negative or not finite"),
        ({"forward_s": [1, float("nan")]}, "negative or not finite"),
        ({"layer": [1, 0]}, "not in model order"),
        ({"layer": [0, 2]}, "say in `layer` where tensors belong"),
        ({"size_bytes": [1, 1, 1]}, "say in `layer` where tensors belong"),
        ({"forward_s": [1]}, "backward_s has 2 entries: give 1"),
        ({"inputs": ((1,), ())}, "reads a later layer or itself"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(given: dict[str, object], said: str) -> None:
    right: dict[str, object] = {"size_bytes": [1, 1], "backward_s": [1, 1], "forward_s": [1, 1]}
    with pytest.raises(WorkloadError, match=said):
        from_layers(**(right | given))  # type: ignore[arg-type]
