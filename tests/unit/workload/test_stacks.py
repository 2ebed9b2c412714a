"""The same model under other software: other kernels, the same weights and the same arithmetic."""

from __future__ import annotations

import pytest

from ropewalk.errors import WorkloadError
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.source import open_workload, under_stack
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo import build
from ropewalk.workload.zoo.stacks import STACKS

MODELS = ["llama3-8b:layers=2", "mixtral-8x7b:layers=2", "deepseek-v3:layers=4"]


def kernels(workload: Workload) -> list[Kernel]:
    operators = [operator for layer in workload.layers for operator in layer.operators]
    return [kernel for operator in operators for kernel in (*operator.forward(), *operator.backward())]


def products_flops(workload: Workload) -> float:
    return sum(kernel.flops for kernel in kernels(workload) if kernel.kind in ("matmul", "grouped_matmul"))


@pytest.mark.parametrize("model", MODELS)
def test_every_stack_has_the_same_weights_and_multiplies_as_much(model: str) -> None:
    eager, *others = (build(model, 1, 512, stack=stack) for stack in STACKS)
    for other in others:
        assert other.parameters() == eager.parameters()
        assert products_flops(other) == pytest.approx(products_flops(eager), rel=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_what_fuses_more_launches_less(model: str) -> None:
    launches = [len(kernels(build(model, 1, 512, stack=stack))) for stack in ("eager", "compiled", "megatron")]
    assert launches == sorted(launches, reverse=True)
    assert len(set(launches)) == 3


def test_compiled_attention_skips_nothing_that_its_mask_hides() -> None:
    eager, compiled = (build("llama3-8b:layers=2", 1, 512, stack=stack) for stack in ("eager", "compiled"))
    work = [sum(kernel.flops for kernel in kernels(one) if kernel.kind == "attention") for one in (eager, compiled)]
    assert work[1] == 2 * work[0]


def test_a_workload_says_its_stack_and_keeps_it_for_another_batch() -> None:
    built = open_workload(under_stack("llama3-8b:layers=2", "megatron"), 1, 512)
    assert (built.stack, built.at_batch(2).stack, build("resnet50", 1).stack) == ("megatron", "megatron", "eager")


def test_a_stack_that_does_not_run_a_model_is_refused_with_those_that_do() -> None:
    with pytest.raises(WorkloadError, match="gpt2: stack=megatron does not run it: give eager"):
        build("gpt2:stack=megatron", 1)
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
