"""Large products under load. H200 and Blackwell: medians of those of more than 1e13 FLOPs, 4096 and more on each side.

From the tables that NVIDIA publishes with its planner of inference (github.com/ai-dynamo/aiconfigurator,
systems/data/*/gemm, TensorRT-LLM 1.3.0rc20), random numbers. The H200 of the same tables, whose energies are measured
here, stands 5 % above ours there, and so do the others.
"""

from __future__ import annotations

import pytest

from ropewalk.device.device import device, precision
from ropewalk.device.pricer import pricer
from ropewalk.workload.kernel import matmul

LARGE = matmul("forward", 8192, 8192, 8192)


def sustained_tflops(name: str, numbers: str) -> float:
    """TFLOP/s of a large product that runs for long under the limit of the data sheet."""
    prices, power = pricer(name, numbers), device(name).power
    seconds = prices.alone(LARGE)
    joules = power.joules(LARGE, precision(numbers).rate, precision(numbers).element_bytes)
    return LARGE.flops / (seconds / power.clock(seconds, 0.0, joules)) / 1e12


@pytest.mark.parametrize(
    ("name", "numbers", "tflops"),
    [
        ("h200", "bf16", 695), ("h200", "fp8", 1289),
        ("gb200", "bf16", 1481), ("gb200", "fp8", 2807), ("gb200", "mxfp8", 2655), ("gb200", "nvfp4", 4270),
        ("b300", "bf16", 1468), ("b300", "fp8", 2782), ("b300", "mxfp8", 2658),
        ("gb300", "bf16", 1801), ("gb300", "fp8", 3351), ("gb300", "mxfp8", 3117), ("gb300", "nvfp4", 5902),
    ],
)  # fmt: skip
def test_large_products_run_as_fast_as_published(name, numbers, tflops):
    assert sustained_tflops(name, numbers) == pytest.approx(tflops, rel=0.12)


@pytest.mark.parametrize(("numbers", "tflops", "mhz"), [("bf16", 708, 1207), ("fp16", 654, 1115), ("fp8", 1273, 1230)])
def test_an_mi300x_keeps_what_amd_measured_at_its_clock(numbers: str, tflops: float, mhz: float) -> None:
    """AMD, Measuring Max-Achievable FLOPs, part 2 (2025): 750 W, of 2,100 MHz; its own size of a product."""
    product, prices, power = matmul("forward", 4096, 4864, 32896), pricer("mi300x", numbers), device("mi300x").power
    assert power is not None
    seconds = prices.alone(product)
    clock = power.clock(seconds, 0.0, power.joules(product, numbers, 2))
    assert product.flops / (seconds / clock) / 1e12 == pytest.approx(tflops, rel=0.03)
    assert 2100 * clock == pytest.approx(mhz, rel=0.05)


def test_products_of_an_a100_draw_its_limit_at_the_rate_that_was_measured_under_it() -> None:
    power, rate = device("a100").power, device("a100").peak(precision("bf16")) * device("a100").achievable
    assert power is not None
    assert power.idle + rate * power.flop["bf16"] == pytest.approx(power.limit, rel=0.01)


def test_large_products_of_training_shapes_on_b200_run_as_fast_as_simumax_measured():
    assert sustained_tflops("b200", "bf16") == pytest.approx(1102, rel=0.06)
