"""Experts as Megatron-Core runs them: what stands around their products, and what is launched for each of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from ropewalk.device.device import PRECISIONS
from ropewalk.device.pricer import EXPERT_S, pricer
from ropewalk.workload.core_experts import permuted
from ropewalk.workload.experts import Experts
from ropewalk.workload.operator import Split
from ropewalk.workload.source import open_workload

CORE = Experts(slots=512, experts=8, hidden=64, ffn=96, masked=False, fused=True, accumulates=True, apart=True)


def kinds(kernels):
    return Counter((kernel.kind, kernel.form) for kernel in kernels)


def test_a_plain_mixture_has_one_kernel_between_its_products():
    assert [kernel.kind for kernel in CORE.forward()] == ["grouped_matmul", "pointwise", "grouped_matmul"]


def test_tokens_that_arrive_by_sender_are_sorted_before_and_behind_the_products():
    resorted = replace(CORE, resorted=True)
    for kernels in (resorted.forward(), resorted.backward()):
        assert kernels[0] == kernels[-1] == permuted(512 * 64)
    assert len(resorted.backward()) == len(CORE.backward()) + 2


def test_clamped_gates_and_biases_of_results_are_kernels_of_their_own():
    oss = replace(CORE, biased=True, clamped=True)
    more = kinds(oss.forward()) - kinds(CORE.forward())
    assert more[("pointwise", "cat")] == 2
    assert more[("pointwise", "cast")] == 1
    assert sum(kernel.moved_bytes(2) for kernel in oss.backward()) > sum(k.moved_bytes(2) for k in CORE.backward())


def test_gates_that_are_computed_again_are_not_kept():
    again = replace(CORE, remade=True)
    assert CORE.saved_elements() - again.saved_elements() == 512 * 96
    assert kinds(again.backward()) - kinds(CORE.backward()) == Counter({("pointwise", "map"): 1})


@pytest.mark.parametrize("experts", [CORE, replace(CORE, biased=True, clamped=True, resorted=True, remade=True)])
def test_gradients_of_weights_are_the_products_and_what_adds_them_up(experts):
    assert [kernel.kind for kernel in experts.weight_backward()] == ["grouped_matmul", "pointwise"] * 2


def test_every_expert_of_a_rank_is_launched_by_itself():
    assert CORE.host().count("expert") == 16
    assert CORE.split(Split(expert=4)).host().count("expert") == 4
    prices = pricer("h100")
    eight, two = (prices.host(one.host()) for one in (CORE, CORE.split(Split(expert=4))))
    assert eight - two >= 12 * EXPERT_S


def test_the_stack_decides_who_runs_experts():
    eager, core = (
        next(op for layer in open_workload(f"qwen3-30b-a3b:layers=1,stack={stack}").layers
             for op in layer.operators if isinstance(op, Experts))
        for stack in ("eager", "megatron")
    )  # fmt: skip
    assert (eager.apart, core.apart, core.resorted) == (False, True, True)


def test_the_clock_of_a_mixture_is_that_of_busy_experts():
    """Experts that ranks share out get the tokens of all of them, so many experts do not make for little work."""
    few, many = (
        open_workload(f"qwen3-30b-a3b:layers=2,experts_per_layer={experts},stack=megatron") for experts in (16, 128)
    )
    clocks = [pricer("b200@1000W").sustained(one).clock for one in (few, many)]
    assert clocks[0] < 0.9
    assert clocks[1] == pytest.approx(clocks[0], rel=0.03)


def test_operands_are_narrowed_expert_by_expert():
    wide, narrow = (pricer("h100", numbers).host(("expert",) * 8) for numbers in ("bf16", "fp8"))
    assert narrow == pytest.approx(3 * wide)


MULTIPLES = {"bf16": 1, "fp8": 16, "fp8-delayed": 16, "fp8-block": 16, "mxfp8": 32, "nvfp4": 128}


@pytest.mark.parametrize("precision", MULTIPLES)
def test_rows_of_each_expert_come_in_multiples_of_what_narrow_products_want(precision):
    """By chance an expert has any rest, so half a multiple is added on average."""
    rows = PRECISIONS[precision].expert_rows
    assert rows == MULTIPLES[precision]
    assert replace(CORE, slots=8 * 500).padded(rows).slots == 8 * 500 + 8 * (rows - 1) // 2
    assert replace(CORE, slots=8).padded(rows).slots == 8 * rows


def test_padded_rows_take_as_long_as_others():
    prices = pricer("b200", "nvfp4")
    few, full = replace(CORE, slots=8 * 40), replace(CORE, slots=8 * 40).padded(128)
    assert full.slots == 8 * 128
    assert prices.forward_work([few]).gpu_s == pytest.approx(prices.gpu(full.forward()))
    assert prices.backward_work([few]).gpu_s == pytest.approx(prices.gpu(full.backward()))
    assert prices.weight_work([few]).gpu_s == pytest.approx(prices.gpu(full.weight_backward()))


@pytest.mark.parametrize("walk", ["forward", "backward"])
def test_rows_that_nccl_brought_are_copied_to_be_padded(walk):
    copied = replace(CORE, resorted=True).padded(16)
    plain, more = (getattr(one, walk)() for one in (replace(copied, filled=False), copied))
    assert len(more) == len(plain) + 2
    assert more[1] == more[-2]
    assert more[1].elements_read == copied.slots * 64
    assert copied.host().count("copy") == 2


def test_nothing_is_copied_where_routers_or_dispatchers_pad():
    assert not replace(CORE, resorted=True, router_pads=True).padded(16).filled
    assert not CORE.padded(16).filled


def test_fused_kernels_of_experts_want_256_rows_in_any_precision():
    assert replace(CORE, glued=True, slots=8 * 300).padded(1).slots == 8 * 300 + 8 * 255 // 2


def test_patterns_with_experts_say_how_these_run():
    said = "nemotron-3-nano:pattern=ME,dispatch=deepep,glued=true,stack=megatron"
    experts = [op for layer in open_workload(said, 1, 64).layers for op in layer.operators if isinstance(op, Experts)]
    assert [(one.glued, one.resorted) for one in experts] == [(True, False)]


def test_only_experts_that_are_not_glued_together_are_products_of_their_own():
    products = [kernel for kernel in (*CORE.forward(), *CORE.backward()) if kernel.kind == "grouped_matmul"]
    assert all(kernel.apart for kernel in products)
    assert not any(kernel.apart for kernel in replace(CORE, glued=True).forward())
    assert not any(kernel.apart for kernel in replace(CORE, apart=False).forward())
