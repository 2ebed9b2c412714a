"""LoRA: what is trained, what is not, and what that saves of work, memory and gradients."""

from __future__ import annotations

import pytest

from ropewalk.device.numbers import Numbers
from ropewalk.errors import WorkloadError
from ropewalk.strategy import Strategy
from ropewalk.strategy.memory import memory
from ropewalk.strategy.shares import shares_of
from ropewalk.strategy.stages import Pieces
from ropewalk.task.lower.passes import buckets
from ropewalk.workload.files import read_workload, write_workload
from ropewalk.workload.kernel import PRODUCTS
from ropewalk.workload.operator import Split
from ropewalk.workload.source import open_workload
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo import build

TINY = "llama:layers=2,hidden=64,heads=4,kv_heads=2,ffn=128,vocabulary=256"


def flops(model: Workload, *passes: str) -> float:
    return sum(
        kernel.flops
        for layer in model.layers
        for operator in layer.operators
        for name in passes
        for kernel in getattr(operator, name)()
        if kernel.kind in PRODUCTS
    )


def test_llama_3_8b_has_the_trained_parameters_that_peft_counts() -> None:
    """PEFT prints for rank 16 on all linear layers: trainable params: 41,943,040 || all params: 8,072,204,288."""
    model = build("llama3-8b:lora=16", 1, 128)
    assert (model.trained_parameters(), model.parameters()) == (41_943_040, 8_072_204_288)
    assert build("llama3-8b:lora=8", 1, 128).trained_parameters() == 20_971_520


def test_products_joined_by_a_stack_have_one_adapter() -> None:
    """Down from the width once for queries, keys and values together, and once for both halves of the gate."""
    joined = build("llama3-8b:lora=16,stack=megatron", 1, 128)
    assert joined.trained_parameters() == 41_943_040 - 32 * 16 * 3 * 4096


@pytest.mark.parametrize("stack", ["eager", "compiled", "megatron"])
def test_no_product_makes_gradients_of_frozen_weights(stack: str) -> None:
    whole, tuned = (build(f"{TINY},stack={stack}{more}", 1, 32) for more in ("", ",lora=4"))
    adapters = tuned.trained_parameters() * 2 * 32
    weights = sum(2 * 32 * op.parameters() for layer in whole.layers for op in layer.operators if op.weight_backward()
                  and layer.kind != "embedding")  # fmt: skip
    assert flops(tuned, "forward") == flops(whole, "forward") + adapters
    assert flops(tuned, "backward") == flops(whole, "backward") - weights + 2 * adapters


def test_frozen_weights_are_held_but_have_neither_gradients_nor_state() -> None:
    model, tuned = build(TINY, 1, 32), build(f"{TINY},lora=4", 1, 32)
    whole = memory(Strategy(), shares_of(model, Strategy()), Pieces((0,), 4, (0,)), Numbers(2.0))
    found = memory(Strategy(), shares_of(tuned, Strategy()), Pieces((0,), 4, (0,)), Numbers(2.0))
    assert found.weights[0] == 2 * tuned.parameters() == whole.weights[0] + 2 * tuned.trained_parameters()
    assert found.gradients[0] == 2 * tuned.trained_parameters()
    assert found.optimiser[0] == 12 * tuned.trained_parameters()
    assert found.activations[0] < whole.activations[0] * 1.05


def test_ranks_share_frozen_weights_out_under_zero_3() -> None:
    tuned, strategy = build(f"{TINY},lora=4", 1, 32), Strategy(data=4, zero=3, prefetch=False)
    found = memory(strategy, shares_of(tuned, strategy), Pieces((0,), 4, (0,)), Numbers(2.0))
    largest = max(layer.parameters() for layer in tuned.layers)
    assert found.weights[0] / 2 == pytest.approx(tuned.parameters() / 4 + largest, rel=0.02)


def test_data_ranks_sum_the_gradients_of_adapters_alone() -> None:
    tuned, strategy = build(f"{TINY},lora=4", 1, 32), Strategy(data=4)
    shares = shares_of(tuned, strategy)
    moves = [move for some in buckets(range(len(shares)), shares, strategy, 2.0).values() for move in some]
    assert sum(move.amount for move in moves) == 2 * tuned.trained_parameters()


def test_a_stage_holds_a_copy_of_a_frozen_embedding_but_sums_no_gradients_of_it() -> None:
    tuned = build(f"{TINY},lora=4,tied=true", 1, 32)
    head = shares_of(tuned, Strategy(pipeline=2))[-1]
    assert (head.tied, head.frozen_tied) == (0, 256 * 64)
    apart = memory(
        Strategy(pipeline=2), shares_of(tuned, Strategy(pipeline=2)), Pieces((0, 2), 4, (0, 1)), Numbers(2.0)
    )
    held = sum(layer.parameters() for layer in tuned.layers[2:]) + 256 * 64
    assert apart.weights[1] == 2 * held


def test_experts_and_routers_are_frozen_without_adapters() -> None:
    model = build("mixtral-8x7b:layers=1,lora=8", 1, 32)
    assert model.trained_parameters() == 8 * (2 * (4096 + 4096) + 2 * (4096 + 1024))
    share = shares_of(model, Strategy(data=2, expert=2))[1]
    assert share.expert_parameters == 0
    assert share.frozen_experts == 3 * 4 * 4096 * 14336


def test_tensor_ranks_split_adapters_with_their_layers() -> None:
    whole = build(f"{TINY},lora=4,stack=megatron", 1, 32).layers[1]
    part = whole.split(Split(tensor=2))
    assert part.trained_parameters() < 0.65 * whole.trained_parameters()


def test_a_model_with_adapters_is_written_and_read(tmp_path) -> None:
    model = build(f"{TINY},lora=4", 1, 32)
    write_workload(model, tmp_path / "model.yaml")
    assert read_workload(tmp_path / "model.yaml").trained_parameters() == model.trained_parameters()


def test_adapters_may_stand_on_queries_keys_and_values_alone():
    every, some = (
        open_workload(f"llama3-8b:layers=1,lora=16,stack=megatron,lora_on={where}", 1, 128) for where in ("all", "qkv")
    )
    assert some.trained_parameters() == 16 * (4096 + 6144)
    assert every.trained_parameters() > 4 * some.trained_parameters()


def test_adapters_stand_nowhere_else():
    with pytest.raises(WorkloadError, match=r"there are no adapters on 'ffn': give lora_on=all or lora_on=qkv"):
        open_workload("llama3-8b:layers=1,lora=16,lora_on=ffn", 1, 128)
