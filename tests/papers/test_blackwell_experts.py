"""Products of experts on a B200, as Transformer Engine runs them: a launch for each expert, on four streams.

From SimuMax's table of kernels (github.com/MooreThreads/SimuMax, configs/system/b200_bf16_ceperm.json, group_matmul;
bf16 with gradients in float32), where launches are not what limits them. What a product of one expert takes beyond its
share (`expert_s`) is fitted to the 52 of these that go forth or make gradients of inputs; those of weights need none.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ropewalk.device.device import device
from ropewalk.device.pricer import Pricer, pricer
from ropewalk.workload.kernel import Kernel, accumulation, grouped_matmul

FORTH = (
    (20, 1232, 3072, 5120, 671), (20, 1232, 5120, 1536, 433), (32, 1024, 4096, 7168, 1871),
    (32, 1024, 7168, 2048, 1113), (40, 616, 3072, 5120, 746), (40, 616, 5120, 1536, 529), (64, 512, 4096, 7168, 2330),
    (64, 512, 7168, 2048, 1000),
    (40, 2460, 3072, 5120, 2826), (40, 2460, 5120, 1536, 1387), (40, 9832, 3072, 5120, 11585),
    (40, 9832, 5120, 1536, 6182),
)  # fmt: skip
"""Experts, rows of each, columns, inner length, measured microseconds."""
INPUTS = (
    (20, 1232, 5120, 3072, 817), (20, 1232, 1536, 5120, 443), (32, 1024, 7168, 4096, 1964), (32, 1024, 2048, 7168, 994),
    (40, 616, 5120, 3072, 1072), (40, 616, 1536, 5120, 614), (64, 512, 7168, 4096, 2113), (64, 512, 2048, 7168, 1453),
    (40, 2460, 5120, 3072, 3044), (40, 2460, 1536, 5120, 1407), (40, 9832, 5120, 3072, 11563),
    (40, 9832, 1536, 5120, 5932),
)  # fmt: skip
WEIGHTS = (
    (20, 1232, 3072, 5120, 1052), (20, 1232, 5120, 1536, 539), (32, 1024, 4096, 7168, 2961),
    (32, 1024, 7168, 2048, 1559), (40, 616, 3072, 5120, 1336), (40, 616, 5120, 1536, 633), (64, 512, 4096, 7168, 3902),
    (64, 512, 7168, 2048, 1993), (40, 2460, 3072, 5120, 3302), (40, 2460, 5120, 1536, 1709),
    (40, 9832, 3072, 5120, 13136), (40, 9832, 5120, 1536, 6650),
)  # fmt: skip


def under_load(prices: Pricer, product: Kernel, added: Kernel | None) -> float:
    """Seconds of a product that runs for long under the power limit, and of what adds its result to gradients."""
    power = device("b200").power
    assert power is not None
    clocked = replace(product, apart=False)
    rest_s = prices.alone(product) - prices.alone(clocked) + (prices.alone(added) if added else 0.0)
    joules = sum(power.joules(kernel, "bf16", 2) for kernel in (product, added) if kernel)
    clock = power.clock(prices.alone(clocked), rest_s, joules)
    return prices.alone(clocked) / clock + rest_s


def errors(form: str, rows: tuple[tuple[int, ...], ...], *, apart: bool = True) -> list[float]:
    found = []
    for experts, each, columns, inner, measured_us in rows:
        product = grouped_matmul(form, experts, experts * each, columns, inner, apart=apart)
        added = accumulation(experts * columns * inner) if form == "weight_grad" else None
        found.append(under_load(pricer("b200", "bf16"), product, added) / (1e-6 * measured_us) - 1)
    return found


@pytest.mark.parametrize(("form", "rows"), [("forward", FORTH), ("input_grad", INPUTS), ("weight_grad", WEIGHTS)])
def test_products_of_experts_take_as_long_as_measured(form, rows):
    found = errors(form, rows)
    assert sum(map(abs, found)) / len(found) < 0.12
    assert abs(sum(found) / len(found)) < 0.07


@pytest.mark.parametrize(("form", "rows", "least"), [("forward", FORTH, 0.06), ("input_grad", INPUTS, 0.12)])
def test_as_one_launch_for_all_experts_they_would_be_too_fast(form, rows, least):
    found = errors(form, rows, apart=False)
    assert sum(found) / len(found) < -least
