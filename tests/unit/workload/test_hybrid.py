"""Models of layers in a pattern: what a scan computes, what is split, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ropewalk.device.pricer import pricer
from ropewalk.errors import StrategyError, WorkloadError
from ropewalk.strategy import Strategy, check
from ropewalk.workload.operator import Split
from ropewalk.workload.scan import Scan
from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo import build, family_of

NANO = "nemotron-3-nano:pattern=ME*-"
TOKENS = 256


def products(layer: Layer) -> float:
    kernels = [kernel for op in layer.operators for kernel in op.forward()]
    return sum(kernel.flops for kernel in kernels if kernel.kind in ("matmul", "grouped_matmul", "attention", "scan"))


def test_a_letter_is_a_layer() -> None:
    layers = build(NANO, 1, TOKENS).layers
    assert [layer.kind for layer in layers[1:-1]] == [
        "mamba block", "expert block", "attention block", "feed-forward block"
    ]  # fmt: skip


def test_the_pattern_says_how_many_layers_there_are() -> None:
    found = family_of(NANO)
    assert found is not None
    assert found.shape.layers == 4


def test_a_mamba_layer_has_the_parameters_of_its_parts() -> None:
    """Product in, convolution of four with biases, three numbers a head, norm of the gated scan, product out, norm."""
    inner, convolved = 64 * 64, 64 * 64 + 2 * 8 * 128
    expected = 2688 * (inner + convolved + 64) + 5 * convolved + 3 * 64 + inner + inner * 2688 + 2688
    assert build(NANO, 1, TOKENS).layers[1].parameters() == expected


def test_a_scan_multiplies_by_chunks() -> None:
    """Of a token and a head: what is written into the state and read, and what tokens of a chunk take of each other."""
    scan = Scan(2, 512, heads=8, size=64, state=128, groups=2)
    flops = sum(kernel.flops for kernel in scan.forward() if kernel.kind == "scan")
    assert flops == 2 * 2 * 512 * (8 * 64 * (2 * 128 + 128) + 2 * 128 * 128)
    assert sum(kernel.flops for kernel in scan.backward() if kernel.kind == "scan") > 2 * flops


def test_a_scan_takes_as_long_for_each_token_however_long_the_sequence() -> None:
    prices = pricer("h200", "bf16")
    short, long = (prices.gpu(Scan(1, length, 64, 64, 128, 8).forward()) for length in (16384, 65536))
    assert long == pytest.approx(4 * short, rel=0.15)


def test_experts_without_gates_behind_a_narrower_vector() -> None:
    """Router, both ways of the vector, 22 experts of two products each, and the shared one on whole tokens."""
    layer = build("nemotron-3-super:pattern=E", 1, TOKENS).layers[1]
    each = 4096 * 512 + 2 * 4096 * 1024 + 22 * 2 * 1024 * 2688 + 2 * 4096 * 5376
    assert products(layer) == 2 * TOKENS * each
    assert layer.parameters() == 4096 + 4096 * 512 + 2 * 4096 * 1024 + 512 * 2 * 1024 * 2688 + 2 * 4096 * 5376


def test_tensor_ranks_share_the_products_of_a_mamba_layer() -> None:
    layer = build(NANO, 1, TOKENS).layers[1]
    assert 8 * products(layer.split(Split(tensor=8))) == pytest.approx(products(layer), rel=1e-9)


@pytest.mark.parametrize(
    ("degrees", "complaint"),
    [
        ({"context": 2}, "scans of nemotron-3-nano need whole sequences, which 2 ranks cut: set context to 1"),
        ({"tensor": 16}, "8 groups of states do not split over 16 tensor ranks: set tensor to a divisor"),
    ],
)
def test_what_scans_cannot_split_is_refused(degrees: dict[str, Any], complaint: str) -> None:
    with pytest.raises(StrategyError, match=complaint):
        check(Strategy(**degrees), build(NANO, 1, TOKENS))


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("nemotron-3-nano:pattern=MX", r"pattern=MX is not a pattern of layers: write M mamba, \* attention"),
        ("mamba2-130m:pattern=ME", "has experts, but this model has none: leave E out"),
        ("mamba2-130m:groups=7", "7 groups do not divide 24 heads of states"),
        ("nemotron-h-8b:layers=4", "it has no option 'layers'"),
    ],
)
def test_patterns_that_make_no_model_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(WorkloadError, match=complaint):
        build(name, 1)
