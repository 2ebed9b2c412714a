"""Whole steps in true float32 (no TF32) on an H200, with PyTorch 2.11 and torchvision 0.26: medians of 8 runs."""

from __future__ import annotations

import pytest

from ropewalk.device.cost import step_cost
from ropewalk.device.pricer import pricer
from ropewalk.workload.source import open_workload

MEASURED_MS = {
    ("resnet50", 32): (12.521, 42.933, 43.596),
    ("resnet50", 64): (21.553, 77.782, 78.171),
    ("vgg16", 32): (22.939, 55.459, 58.618),
    ("vgg19", 64): (63.447, 134.016, 137.232),
    ("alexnet", 256): (8.693, 28.175, 29.448),
    ("vit-b-16", 32): (32.257, 95.946, 97.771),
}
"""Forward, forward and backward, step with AdamW; none of them was used to make the table of kernels."""


@pytest.mark.parametrize(("model", "batch"), MEASURED_MS, ids=lambda value: str(value))
def test_float32_steps_are_predicted_within_a_tenth(model, batch):
    cost = step_cost(open_workload(model, batch=batch), pricer("h200", "fp32"))
    predicted = (cost.forward_s, cost.forward_backward_s, cost.step_s)
    for seconds, measured_ms in zip(predicted, MEASURED_MS[model, batch], strict=True):
        assert seconds * 1e3 == pytest.approx(measured_ms, rel=0.1)


def test_float32_is_slower_than_tf32_where_numbers_are_multiplied():
    model = open_workload("vgg16", batch=32)
    times = {name: step_cost(model, pricer("h200", name)).step_s for name in ("tf32", "fp32")}
    assert times["fp32"] > 2 * times["tf32"]
