"""Multi-token prediction: what the layer adds, and what it shares with the model."""

from __future__ import annotations

import pytest

from ropewalk.device.numbers import Numbers
from ropewalk.errors import WorkloadError
from ropewalk.strategy import Strategy
from ropewalk.strategy.memory import memory
from ropewalk.strategy.shares import shares_of
from ropewalk.strategy.stages import Pieces
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo import build

SMALL = "mixtral-8x7b:layers=2,hidden=64,heads=4,kv_heads=2,expert_ffn=96,vocabulary=256"


def products(model: Workload) -> float:
    kernels = [kernel for layer in model.layers for op in layer.operators for kernel in op.forward()]
    return sum(kernel.flops for kernel in kernels if kernel.kind in ("matmul", "grouped_matmul", "attention"))


@pytest.mark.parametrize("stack", ["eager", "megatron"])
def test_a_depth_adds_a_block_a_joint_and_a_head(stack: str) -> None:
    plain, deeper, deep = (build(f"{SMALL},stack={stack},mtp={depth}", 1, 32) for depth in (0, 1, 2))
    block = plain.layers[2]
    joint, norms = 2 * 64 * 64, 3 * 64
    assert deeper.parameters() - plain.parameters() == block.parameters() + joint + norms
    assert deep.parameters() - deeper.parameters() == deeper.parameters() - plain.parameters()
    one_block = products(build(f"{SMALL},stack={stack},layers=3".replace("layers=2,", ""), 1, 32)) - products(plain)
    assert products(deeper) - products(plain) == one_block + 2 * 32 * (joint + 256 * 64)


def test_the_head_gets_what_every_depth_made() -> None:
    assert [layer.output_elements // (32 * 64) for layer in build(f"{SMALL},mtp=2", 1, 32).layers[1:-1]] == [1, 1, 2, 3]


def test_the_last_stage_holds_a_copy_of_the_table() -> None:
    model, strategy = build(f"{SMALL},mtp=1", 1, 32), Strategy(pipeline=2)
    shares = shares_of(model, strategy)
    assert [share.tied for share in shares] == [0, 0, 0, 256 * 64, 0]
    held = memory(strategy, shares, Pieces((0, 3), 5, (0, 1)), Numbers(2.0)).weights[1]
    assert held == 2 * (sum(layer.parameters() for layer in model.layers[3:]) + 256 * 64)


def test_a_head_that_is_the_table_is_refused() -> None:
    with pytest.raises(WorkloadError, match="mtp=1 needs a head that is not the table of words: give tied=false"):
        build(f"{SMALL},mtp=1,tied=true", 1)


def test_a_model_of_a_pattern_predicts_by_attention_and_experts() -> None:
    small = "nemotron-3-super:pattern=M*E,hidden=64,heads=4,kv_heads=2,vocabulary=256,scan_heads=8"
    plain, deep = (build(f"{small},stack=megatron,mtp={depth}", 1, 32) for depth in (0, 2))
    _, _, attention, experts, _ = plain.layers
    joint, norms = 2 * 64 * 64, 3 * 64
    added = attention.parameters() + experts.parameters() + joint + norms
    assert deep.parameters() - plain.parameters() == 2 * added
    assert [layer.name for layer in deep.layers[-3:]] == ["prediction 0", "prediction 1", "head"]
