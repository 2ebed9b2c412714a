"""Parts of layers as Megatron-Core runs them, measured on one H200: scans, rotations of latent attention, its host."""

import pytest

from ropewalk.device.pricer import pricer
from ropewalk.workload.operator import Operator, Split
from ropewalk.workload.scan import Scan
from ropewalk.workload.source import open_workload
from ropewalk.workload.written import Written

LINEAR_ON_A_XEON_S = 13.48e-6
"""The forward call of a `torch.nn.Linear` on the host of a DGX H100 (TransformerEngine, issue 2053)."""


@pytest.mark.parametrize(
    ("samples", "heads", "groups", "forward_ms", "backward_ms"),
    [
        (1, 32, 4, 0.180, 0.673),
        (1, 64, 8, 0.323, 1.178),
        (1, 80, 1, 0.391, 1.278),
        (1, 128, 8, 0.598, 2.027),
        (2, 64, 8, 0.632, 2.252),
        (1, 256, 8, 1.149, 3.721),
    ],
)
def test_scans_of_mamba_2_layers(samples: int, heads: int, groups: int, forward_ms: float, backward_ms: float) -> None:
    scan, prices = Scan(samples, 8192, heads, 64, 128, groups), pricer("h200")
    assert 1e3 * prices.gpu(scan.forward()) == pytest.approx(forward_ms, rel=0.07)
    assert 1e3 * prices.gpu(scan.backward()) == pytest.approx(backward_ms, rel=0.12)


def test_scans_gain_nothing_from_the_tensor_cores_of_blackwell() -> None:
    """NVIDIA's own table of a B200: 0.72 ms for two samples of 64 heads, 1.42 ms for 256 heads."""
    prices = pricer("b200")
    assert prices.gpu(Scan(2, 8192, 64, 64, 128, 8).forward()) == pytest.approx(0.721e-3, rel=0.05)
    assert prices.gpu(Scan(1, 8192, 256, 64, 128, 8).forward()) == pytest.approx(1.420e-3, rel=0.05)


def test_latent_attention_is_rotated_and_joined_by_two_kernels() -> None:
    """4,096 tokens and 128 heads: queries 68 and 82 µs, keys and values 154 and 153 µs."""
    block = open_workload("deepseek-v3:layers=1,stack=megatron", 1, 4096).layers[1].operators
    turned = {op.routine.name: op for op in block if isinstance(op, Written)}
    prices = pricer("h200")
    for name, forward_us, backward_us in (
        ("rotary embedding of pairs, in place", 68.5, 81.6), ("keys of parts, one kernel", 154.1, 153.2)
    ):  # fmt: skip
        assert 1e6 * prices.gpu(turned[name].forward()) == pytest.approx(forward_us, rel=0.1)
        assert 1e6 * prices.gpu(turned[name].backward()) == pytest.approx(backward_us, rel=0.1)


def test_a_layer_of_eight_experts_keeps_the_host_busy_as_long_as_385_linear_layers() -> None:
    assert host_s("qwen3-30b-a3b:layers=1,stack=megatron", experts=16) == pytest.approx(
        385 * LINEAR_ON_A_XEON_S, rel=0.1
    )


def test_a_dispatcher_that_sorts_tokens_spares_the_host_their_permutation() -> None:
    nccl = host_s("qwen3-30b-a3b:layers=1,stack=megatron", experts=16)
    once = host_s("qwen3-30b-a3b:layers=1,stack=megatron,dispatch=deepep,domain=8", experts=16)
    assert nccl - once > 0.9e-3


def host_s(model: str, experts: int) -> float:
    """Seconds of the host in both passes of a block."""
    prices = pricer("h100")
    block: list[Operator] = [
        op.split(Split(expert=experts)) for op in open_workload(model, 1, 4096).layers[1].operators
    ]
    return (prices.forward_work(block) + prices.backward_work(block)).host_s
