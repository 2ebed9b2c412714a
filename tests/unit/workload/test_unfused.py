"""Attention that looks both ways under torch.compile: products in float32 whose scores go to memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ropewalk.device.pricer import DRAW_S, pricer
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.kernel import Kernel, matmul
from ropewalk.workload.operator import Split
from ropewalk.workload.wide import pointwise
from ropewalk.workload.zoo import build
from ropewalk.workload.zoo.stacks import STACKS

FUSED = FusedAttention(4, 16, 16, 384, 384, 64, dropped=True)
UNFUSED = replace(FUSED, unfused=True)


def cores(model: str, stack: str) -> list[FusedAttention]:
    workload = build(model, 2, 512, stack=stack)
    return [op for layer in workload.layers for op in layer.operators if isinstance(op, FusedAttention)]


@pytest.mark.parametrize("stack", list(STACKS))
def test_only_a_compiler_keeps_attention_that_looks_both_ways_from_being_fused(stack: str) -> None:
    assert {core.unfused for core in cores("bert-base:layers=1", stack)} == {stack == "compiled"}
    assert {core.unfused for core in cores("gpt2:layers=1", stack)} == {False}


def test_images_get_no_mask_and_stay_fused_under_a_compiler() -> None:
    workload = build("qwen2-vl-7b:layers=1", 1, 2048, stack="compiled")
    found = [op for layer in workload.layers for op in layer.operators if isinstance(op, FusedAttention)]
    assert {core.causal for core in found} == {True, False}
    assert not any(core.unfused for core in found)


def test_it_multiplies_what_fused_attention_does_but_for_scores_that_are_not_made_again() -> None:
    def flops(kernels: tuple[Kernel, ...]) -> float:
        return sum(kernel.flops for kernel in kernels if kernel.kind in ("matmul", "attention"))

    assert flops(UNFUSED.forward()) == flops(FUSED.forward())
    assert flops(UNFUSED.backward()) == pytest.approx(flops(FUSED.backward()) * 4 / 5)


def test_scores_cross_the_memory_a_dozen_times_and_random_numbers_are_made_once() -> None:
    scores = 4 * 16 * 384 * 384
    forward = sum(kernel.moved_bytes(2) for kernel in UNFUSED.forward() if kernel.kind == "pointwise")
    widened = 4 * 6 * 4 * 16 * 384 * 64
    assert forward == pytest.approx(9 * scores + widened)
    assert sum(kernel.draws for kernel in (*UNFUSED.forward(), *UNFUSED.backward())) == scores
    assert not any(kernel.draws for kernel in replace(UNFUSED, dropped=False).forward())


@pytest.mark.parametrize(("precision", "multiplied"), [("bf16", "tf32"), ("tf32", "tf32"), ("fp32", "fp32")])
def test_its_products_are_those_of_float32_numbers(precision: str, multiplied: str) -> None:
    wide, plain = (matmul("forward", 384, 384, 64, 64, wide=wide) for wide in (True, False))
    assert pricer("h200", precision).kernel(wide) == pricer("h200", multiplied).kernel(plain)


def test_a_gpu_without_tf32_multiplies_them_as_float32() -> None:
    wide, plain = (matmul("forward", 384, 384, 64, 64, wide=wide) for wide in (True, False))
    assert pricer("v100", "fp16").kernel(wide) == pricer("v100", "fp32").kernel(plain)


def test_random_numbers_made_one_by_one_take_longer_than_the_memory_they_go_to() -> None:
    drawn, read = (pointwise("map", 10**8, 1, 1.25, draws=draws) for draws in (10**8, 0))
    prices = pricer("h200", "bf16")
    assert prices.kernel(drawn) == pytest.approx(1e8 * DRAW_S)
    assert prices.kernel(drawn) > 1.5 * prices.kernel(read)
    assert pricer("b200", "bf16").kernel(drawn) == pytest.approx(1e8 * DRAW_S * 132 / 148)


def test_a_rank_has_its_heads_of_it() -> None:
    mine = UNFUSED.split(Split(tensor=4))
    assert isinstance(mine, FusedAttention)
    assert (mine.heads, mine.unfused) == (4, True)
    assert mine.saved_bytes() == UNFUSED.saved_bytes() / 4


@pytest.mark.parametrize("precision", ["tf32", "fp32"])
@pytest.mark.parametrize("model", ["llama-7b:layers=1", "gpt2:layers=1", "bert-base:layers=1"])
def test_models_in_float32_can_be_priced_under_a_compiler(model: str, precision: str) -> None:
    eager, compiled = (build(model, 1, 512, stack=stack) for stack in ("eager", "compiled"))
    prices = pricer("h200", precision)
    seconds = [
        sum(prices.gpu(op.forward()) + prices.gpu(op.backward()) for op in one.layers[1].operators)
        for one in (eager, compiled)
    ]
    assert 0.3 * seconds[0] < seconds[1] < 1.5 * seconds[0]
