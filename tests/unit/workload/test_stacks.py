"""The same model under other software: other kernels, the same weights and the same arithmetic."""

from __future__ import annotations

import pytest

from ropewalk.device.pricer import pricer
from ropewalk.errors import WorkloadError
from ropewalk.strategy import Strategy, shares_of
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Linear
from ropewalk.workload.experts import Experts
from ropewalk.workload.kernel import Kernel, accumulation
from ropewalk.workload.loss import CrossEntropy
from ropewalk.workload.source import open_workload, under_stack
from ropewalk.workload.workload import Workload
from ropewalk.workload.written import Written
from ropewalk.workload.zoo import build
from ropewalk.workload.zoo.stacks import STACKS

MODELS = [
    "llama3-8b:layers=2",
    "mixtral-8x7b:layers=2",
    "deepseek-v3:layers=4",
    "gpt-oss-20b:layers=2",
    "nemotron-3-super:pattern=ME*-",
    "gemma3-1b:layers=6",
    "gpt2:layers=2",
    "bert-base:layers=2",
]


def kernels(workload: Workload) -> list[Kernel]:
    operators = [operator for layer in workload.layers for operator in layer.operators]
    return [kernel for operator in operators for kernel in (*operator.forward(), *operator.backward())]


def launched(workload: Workload) -> int:
    """Kernels by number, without those of attention and what products add to float32 numbers as they end."""
    attention = [op for layer in workload.layers for op in layer.operators if isinstance(op, FusedAttention)]
    inside = sum(len(op.forward()) + len(op.backward()) for op in attention)
    return sum(kernel != accumulation(kernel.dims[0]) for kernel in kernels(workload)) - inside


def products_flops(workload: Workload) -> float:
    """Of all products but those of attention, which are a kernel of their own where it is fused."""
    products = [kernel for kernel in kernels(workload) if kernel.kind in ("matmul", "grouped_matmul")]
    return sum(kernel.flops for kernel in products if not kernel.wide)


@pytest.mark.parametrize("model", MODELS)
def test_every_stack_has_the_same_weights_and_multiplies_as_much_but_for_padding(model: str) -> None:
    eager, *others = (build(model, 1, 512, stack=stack) for stack in STACKS)
    for other in others:
        assert other.parameters() == eager.parameters()
        padded = STACKS[other.stack].make.pads_products and model.startswith(("gpt2", "bert"))
        assert products_flops(other) == pytest.approx(products_flops(eager), rel=2e-4 if padded else 1e-12)


def test_a_compiler_pads_the_head_over_an_odd_vocabulary_and_copies_its_gradient() -> None:
    eager, compiled = (
        build("gpt2:layers=1", 1, 512, stack=stack).layers[-1].operators for stack in ("eager", "compiled")
    )
    widths = [[kernel.dims[2] for op in layer for kernel in op.forward() if kernel.kind == "matmul"]
              for layer in (eager, compiled)]  # fmt: skip
    assert widths == [[50257], [50264]]
    head = next(op for op in compiled if isinstance(op, Linear))
    copied, into_input, into_weight = head.backward()
    assert (copied.kind, copied.dims[0]) == ("pointwise", 512 * 50264)
    assert into_input.dims[3] == into_weight.dims[1] == 50264
    assert [head.backward()[at] for at in head.weight_kernels()] == [into_weight]
    prices = pricer("h200", "bf16")
    assert prices.forward(compiled) < prices.forward(eager) / 2


def test_scores_are_dropped_where_pytorch_runs_attention_and_not_without_dropout() -> None:
    forms = {
        (stack, options): [k.form for op in build(f"gpt2:layers=1{options}", 1, 512, stack=stack).layers[1].operators
                           for k in (*op.forward(), *op.backward()) if k.kind == "attention"]
        for stack in ("eager", "compiled", "megatron") for options in ("", ",dropout=false")
    }  # fmt: skip
    assert forms["eager", ""] == ["forward_dropped", "backward_dropped"]
    assert forms["eager", ",dropout=false"] == ["forward", "backward"]
    assert forms["compiled", ""] == ["forward_masked_dropped", "backward_masked_dropped"]
    assert forms["megatron", ""] == ["forward", "backward"]


@pytest.mark.parametrize("model", MODELS)
def test_what_fuses_more_launches_less_around_attention(model: str) -> None:
    launches = [launched(build(model, 1, 512, stack=stack)) for stack in ("eager", "compiled", "megatron")]
    assert launches == sorted(launches, reverse=True)
    assert launches[0] > launches[1]


def test_compiled_attention_skips_nothing_that_its_mask_hides() -> None:
    eager, compiled = (build("llama3-8b:layers=2", 1, 512, stack=stack) for stack in ("eager", "compiled"))
    work = [sum(kernel.flops for kernel in kernels(one) if kernel.kind == "attention") for one in (eager, compiled)]
    assert work[1] == 2 * work[0]


def test_a_workload_says_its_stack_and_keeps_it_for_another_batch() -> None:
    built = open_workload(under_stack("llama3-8b:layers=2", "megatron"), 1, 512)
    assert (built.stack, built.at_batch(2).stack, build("resnet50", 1).stack) == ("megatron", "megatron", "eager")


@pytest.mark.parametrize("model", ["gpt2:layers=2", "bert-base:layers=2", "mpt-125m:layers=2"])
def test_megatron_adds_biases_in_the_kernels_behind_products(model: str) -> None:
    eager, fused = (build(model, 2, 64, stack=stack) for stack in ("eager", "megatron"))
    block = [operator for operator in fused.layers[1].operators if isinstance(operator, Written)]
    assert [op.routine.name for op in block if op.routine.weights] == [
        "bias, dropout and residual" if "mpt" not in model else "bias and residual", "bias and gelu",
        "bias, dropout and residual" if "mpt" not in model else "bias and residual",
    ]  # fmt: skip
    assert fused.layers[1].parameters() == eager.layers[1].parameters()


def test_gpts_of_2021_run_as_megatron_core_runs_them_with_fused_attention_and_loss() -> None:
    then, now = (build("megatron-22b:layers=2", 1, stack=stack) for stack in ("eager", "megatron"))
    assert "attention" not in {kernel.kind for kernel in kernels(then)}
    assert "attention" in {kernel.kind for kernel in kernels(now)}
    assert now.parameters() == then.parameters()
    assert now.layers[-1].saved_bytes(2) < then.layers[-1].saved_bytes(2)


def test_torchtitan_skips_what_causal_attention_hides() -> None:
    flops = [
        sum(kernel.flops for kernel in kernels(build("llama3-8b:layers=2", 1, 512, stack=stack))
            if kernel.kind == "attention")
        for stack in ("eager", "fsdp2")
    ]  # fmt: skip
    assert flops[0] == flops[1]


def test_a_stack_that_does_not_run_a_model_is_refused_with_those_that_do() -> None:
    with pytest.raises(WorkloadError, match="mpt-125m: stack=compiled does not run it: give eager or megatron or"):
        build("mpt-125m:stack=compiled", 1)
    with pytest.raises(WorkloadError, match="resnet50: stack=megatron does not run it: give eager"):
        build("resnet50:stack=megatron", 1)
    assert build("resnet50:stack=eager", 1) == build("resnet50", 1)
    with pytest.raises(WorkloadError, match="there is no stack 'megatro': did you mean megatron"):
        build("llama-7b:stack=megatro", 1)


def test_a_file_has_the_kernels_it_was_traced_with() -> None:
    with pytest.raises(WorkloadError, match="leave --stack megatron out"):
        under_stack("net.onnx", "megatron")


def test_megatron_adds_gradients_of_every_weight_to_float32_numbers() -> None:
    built = build("mixtral-8x7b:layers=2,stack=megatron", 1, 512)
    added = sum(
        kernel.bytes_fixed for kernel in kernels(built) if kernel.kind == "pointwise" and not kernel.elements_read
    )
    products = sum(
        operator.parameters() for layer in built.layers[1:] for operator in layer.operators if operator.parameters()
    )
    norms = 5 * 4096
    assert added >= 6 * (products - norms)


@pytest.mark.parametrize(
    ("stack", "masked"), [("eager", True), ("compiled", False), ("megatron", False), ("fsdp2", False)]
)
def test_only_code_of_transformers_that_is_not_compiled_sets_slots_without_an_expert_to_zero_by_itself(
    stack: str, masked: bool
) -> None:
    operators = build(f"mixtral-8x7b:layers=1,stack={stack}", 1, 128).layers[1].operators
    assert [operator.masked for operator in operators if isinstance(operator, Experts)] == [masked]


def test_megatron_without_a_fused_loss_passes_over_wide_logits_step_by_step():
    fused, stepwise = (
        open_workload(f"llama-7b:layers=1,stack=megatron,loss_fusion={told}", 1, 512).layers[-1].operators
        for told in ("true", "false")
    )
    (one,), (several,) = ([op for op in ops if isinstance(op, CrossEntropy)] for ops in (fused, stepwise))
    logits = 512 * 32000
    moved = [sum(kernel.moved_bytes(2) for kernel in (*loss.forward(), *loss.backward())) for loss in (one, several)]
    assert moved[1] > 4 * moved[0]
    assert several.saved_bytes() == pytest.approx(4 * logits, rel=0.01)  # probabilities in float32


def test_a_loss_that_is_not_fused_is_wide_in_other_stacks():
    (loss,) = (
        operator
        for operator in open_workload("llama-7b:layers=1,stack=fsdp2,loss_fusion=false", 1, 512).layers[-1].operators
        if isinstance(operator, CrossEntropy)
    )
    assert loss.widened
    assert not loss.stepwise


def test_where_no_loss_is_fused_none_can_be_taken_apart():
    with pytest.raises(WorkloadError, match=r"stack=eager has no fused loss: leave loss_fusion=false out"):
        open_workload("llama-7b:loss_fusion=false", 1, 512)


def test_gradients_are_added_up_in_the_numbers_that_are_sent():
    workload = open_workload("llama-7b:layers=1,stack=megatron", 1, 512)
    written = [
        sum(
            kernel.bytes_fixed
            for operator in shares_of(workload, Strategy(gradient_bytes=width))[1].layer.operators
            for kernel in operator.backward()
            if kernel.kind == "pointwise" and kernel.bytes_fixed
        )
        for width in (None, 4.0, 2.0)
    ]
    weights = workload.layers[1].parameters()
    assert written[0] == written[1]
    assert written[1] - written[2] == pytest.approx(4 * weights, rel=0.01)


NOT_RUN = {
    "compiled": ("mpt-125m", "xlnet-24", "megatron-22b", "vit-b-16", "gnmt-8"),
    "megatron": ("xlnet-24", "gpt-j-6b", "falcon-7b", "vit-b-16", "gnmt-8"),
    "fsdp": ("xlnet-24", "megatron-22b", "gpt-j-6b", "vit-b-16"),
    "fsdp2": ("xlnet-24", "megatron-22b", "palm-8b", "vit-b-16"),
}
RUN = (
    "gpt2:layers=2",
    "bert-base:layers=2",
    "mixtral-8x7b:layers=2",
    "mamba2-2.7b:pattern=MM",
    "llava-1.5-7b:layers=2",
)


@pytest.mark.parametrize("stack", NOT_RUN)
def test_a_stack_runs_the_models_that_its_line_says(stack: str) -> None:
    for name in RUN:
        assert build(f"{name},stack={stack}", 1).stack == stack
    for name in NOT_RUN[stack]:
        with pytest.raises(WorkloadError, match=f"stack={stack} does not run it: give eager"):
            build(f"{name}:stack={stack}", 1)
    assert "transformers on text" in STACKS[stack].where
