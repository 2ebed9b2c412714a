"""Parts of a model that the host launches at once: the same kernels, fewer calls."""

from __future__ import annotations

import pytest

from ropewalk.device.pricer import pricer
from ropewalk.device.work import Work
from ropewalk.errors import WorkloadError
from ropewalk.workload.document import write_operator
from ropewalk.workload.experts import Experts
from ropewalk.workload.zoo import build


def one_block(model: str, graphs: str = "") -> Work:
    """Both passes of the last block of a model with Megatron-Core's kernels."""
    given = f"{model}:stack=megatron" + (f",graphs={graphs}" if graphs else "")
    operators = build(given, 1, 1024).layers[-2].operators
    prices = pricer("h100", "bf16")
    return prices.forward_work(operators) + prices.backward_work(operators)


@pytest.mark.parametrize(
    ("model", "graphs"),
    [("llama3-8b", "mlp"), ("qwen3-30b-a3b", "router"), ("deepseek-v3", "attention+router"), ("mamba2-130m", "scan")],
)
def test_a_graph_spares_the_host_calls_and_leaves_the_kernels(model, graphs):
    alone, captured = one_block(model), one_block(model, graphs)
    assert captured.gpu_s == alone.gpu_s
    assert captured.host_s < alone.host_s


def test_more_parts_spare_more():
    spared = [one_block("qwen3-30b-a3b", graphs).host_s for graphs in ("router", "attention+router", "step")]
    assert spared == sorted(spared, reverse=True)
    assert spared[-1] == 0


def test_experts_stay_with_the_host_unless_whole_steps_are_captured():
    def captured(graphs: str) -> bool:
        layer = build(f"qwen3-30b-a3b:stack=megatron,graphs={graphs}", 1, 512).layers[1]
        return next(one.captured for one in layer.operators if isinstance(one, Experts))

    assert not captured("attention+router")
    assert captured("step")


def test_adapters_of_a_captured_layer_are_captured_too():
    adapted = build("llama3-8b:stack=megatron,graphs=mlp,lora=8", 1, 512).layers[1].operators
    plain = build("llama3-8b:stack=megatron,lora=8", 1, 512).layers[1].operators
    assert sum(one.captured for one in adapted) > 10
    assert pricer("h100", "bf16").forward_work(adapted).host_s < pricer("h100", "bf16").forward_work(plain).host_s


def test_a_workload_file_says_what_is_captured_and_nothing_else():
    captured = build("llama3-8b:stack=megatron,graphs=step", 1, 512).layers[1].operators[0]
    plain = build("llama3-8b:stack=megatron", 1, 512).layers[1].operators[0]
    assert write_operator(captured) == write_operator(plain) | {"captured": True}


def test_a_part_that_no_graph_holds_is_refused_with_those_that_one_does():
    with pytest.raises(WorkloadError, match="there is no part of a model for CUDA graphs 'atention': did you mean"):
        build("qwen3-30b-a3b:graphs=atention", 1, 512)
