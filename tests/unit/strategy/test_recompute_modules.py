"""Parts of blocks that are computed again: what that takes, what it frees, and what is said where there are none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_models import Products

from ropewalk.device.numbers import Numbers
from ropewalk.errors import StrategyError
from ropewalk.export.megatron import megatron_arguments
from ropewalk.hardware import Given, read_cluster
from ropewalk.plans import ModelUse, Plan
from ropewalk.strategy import LayerChoice, Strategy, check
from ropewalk.strategy.frameworks import runnable
from ropewalk.strategy.prices import KeptPrices, Pace
from ropewalk.strategy.recompute import MODULES
from ropewalk.strategy.shares import Share, kept_bytes, shares_of, working_bytes
from ropewalk.task.lower.moves import Move, Scope, backward_moves
from ropewalk.task.step import Act
from ropewalk.training import TrainingQuestion, answer
from ropewalk.training.quick import QuickSteps
from ropewalk.workload.zoo import build

SIZES = "hidden=64,heads=4,kv_heads=4,ffn=96,vocabulary=128,experts_per_layer=8,choices=2,expert_ffn=32,stack=megatron"
MODEL = f"deepseek-v3:layers=4,{SIZES}"
TOKENS, HIDDEN, HEADS, FFN, NEURONS, CHOICES, BYTES = 32, 64, 4, 96, 32, 2, 2
QUERIES, KEYS, KEY, PLAIN, VALUE = 1536, 512, 192, 128, 128
TINY = build(MODEL, 1, TOKENS)
DENSE, MIXED = 1, 4
NUMBERS = Numbers(BYTES)


def share(recompute: str, layer: int, **degrees: int) -> Share:
    return shares_of(TINY, Strategy(recompute=recompute, **degrees))[layer]


def again(recompute: str, layer: int) -> float:
    """Operations of products that are computed once more."""
    strategy = Strategy(recompute=recompute)
    moves = backward_moves(share(recompute, layer), strategy, Pace(KeptPrices(Products())))
    return sum(move.amount for move in moves if move.label.endswith("recompute"))


def freed(recompute: str, layer: int) -> float:
    return kept_bytes(share("none", layer), NUMBERS) - kept_bytes(share(recompute, layer), NUMBERS)


def product(*sizes: tuple[int, int]) -> float:
    return sum(2.0 * TOKENS * inputs * outputs for inputs, outputs in sizes)


def test_a_feed_forward_layer_keeps_its_input_alone():
    assert again("mlp", DENSE) == product((HIDDEN, 2 * FFN), (FFN, HIDDEN))
    assert freed("mlp", DENSE) == TOKENS * 3 * FFN * BYTES
    assert again("mlp", MIXED) == freed("mlp", MIXED) == 0


def test_compressed_attention_expands_its_heads_again():
    """Queries, keys and values of the width at which attention works as much are given up, the result is kept."""
    assert again("mla_up_proj", MIXED) == product((QUERIES, HEADS * KEY), (KEYS, HEADS * (PLAIN + VALUE)))
    assert freed("mla_up_proj", MIXED) == 3 * TOKENS * HEADS * (KEY + VALUE) // 2 * BYTES


def test_norms_are_computed_again_for_the_products_that_read_them():
    assert again("layernorm", DENSE) == 0
    assert freed("layernorm", DENSE) == 2 * TOKENS * HIDDEN * BYTES


def test_gates_of_experts_are_part_of_their_backward_pass():
    assert again("moe_act", MIXED) == 0
    assert freed("moe_act", MIXED) == TOKENS * CHOICES * NEURONS * BYTES


def test_shared_experts_alone_keep_their_input():
    assert again("shared_experts", MIXED) == product((HIDDEN, 2 * NEURONS), (NEURONS, HIDDEN))
    assert freed("shared_experts", MIXED) == TOKENS * 3 * NEURONS * BYTES


def test_a_whole_mixture_keeps_its_input_and_exchanges_tokens_again():
    strategy = Strategy(data=2, expert=2, recompute="moe")
    moves = backward_moves(shares_of(TINY, strategy)[MIXED], strategy, Pace(KeptPrices(Products())))
    sent = [move.label for move in moves if move.scope is Scope.EXPERT]
    both = ["block 3 recompute dispatch", "block 3 recompute combine"]
    assert sent == [*both, "block 3 backward combine", "block 3 backward dispatch"]
    rest = kept_bytes(share("moe", MIXED), NUMBERS) - kept_bytes(share("moe,layernorm", MIXED), NUMBERS)
    assert rest == 2 * TOKENS * HIDDEN * BYTES  # norms in front of attention and of the mixture


def test_selective_is_the_core_of_attention():
    assert again("core_attn", DENSE) == again("selective", DENSE)
    assert freed("core_attn", DENSE) == freed("selective", DENSE)


def test_a_part_of_a_part_is_not_counted_twice():
    assert again("moe,shared_experts", MIXED) == again("moe", MIXED)
    assert freed("moe,shared_experts", MIXED) == freed("moe", MIXED)


@pytest.mark.parametrize("layer", [0, DENSE, MIXED, 5])
@pytest.mark.parametrize("recompute", [*MODULES, ",".join(MODULES)])
def test_no_part_frees_or_takes_more_than_the_whole_layer(recompute, layer):
    assert 0 <= again(recompute, layer) <= again("full", layer)
    assert 0 <= freed(recompute, layer) <= kept_bytes(share("none", layer), NUMBERS)


@pytest.mark.parametrize("recompute", ["mlp", "moe", "layernorm,mla_up_proj"])
def test_what_was_given_up_comes_back_while_the_layer_goes_back(recompute):
    assert working_bytes(share(recompute, MIXED), NUMBERS) == pytest.approx(freed(recompute, MIXED))


@pytest.mark.parametrize("recompute", ["mlp,mla_up_proj", "moe,layernorm", "shared_experts,moe_act"])
def test_the_step_of_a_gang_takes_as_long_as_that_of_all_ranks(recompute):
    strategy = Strategy(
        data=2, tensor=2, expert=4, sequence_parallel=True, fold_experts=True, micro_batches=2, recompute=recompute
    )
    slow = Given(device="a100", nics=1, nic_bandwidth=1e9, nvlink_bandwidth=20e9)
    question = TrainingQuestion(MODEL, read_cluster("1x4", slow), sequence=TOKENS, decided=strategy, detail="stage")
    full = answer(question).run.makespan
    assert QuickSteps(question).run(strategy).step_time_s == pytest.approx(full, rel=1e-9)
    assert full >= answer(replace(question, decided=replace(strategy, recompute="none"))).run.makespan


def test_tensor_ranks_gather_and_scatter_once_more():
    strategy = Strategy(tensor=2, sequence_parallel=True, recompute="mlp", tensor_overlap=False)
    moves: list[Move] = backward_moves(shares_of(TINY, strategy)[DENSE], strategy, Pace(KeptPrices(Products())))
    met = [move.act for move in moves if move.label.startswith("block 0 recompute") and move.act is not Act.COMPUTE]
    assert met == [Act.ALL_GATHER, Act.REDUCE_SCATTER]


@pytest.mark.parametrize(
    ("strategy", "model", "text"),
    [
        (Strategy(recompute="mpl"), MODEL, "there is no recompute 'mpl': use one of none, selective, full, stage, or"),
        (Strategy(recompute="moe,x"), MODEL, "there is no recompute 'moe,x'"),
        (Strategy(recompute="mla_up_proj"), "gpt2", "no layer of gpt2 has mla_up_proj to recompute: leave it out"),
        (Strategy(recompute="mlp"), "mamba2-130m", "no layer of mamba2-130m has mlp to recompute"),
        (Strategy(recompute="moe_act"), "mixtral-8x7b:layers=2", "leave it out, or take --stack megatron"),
        (Strategy(choices=(LayerChoice("block 0", recompute="stage"),)), MODEL, "or parts of blocks such as"),
        (
            Strategy(data=2, expert=2, recompute="shared_experts", shared_overlap=True),
            MODEL,
            "shared experts that hide the token exchange are not recomputed",
        ),
    ],
)
def test_what_cannot_be_recomputed_is_said_with_a_remedy(strategy, model, text):
    with pytest.raises(StrategyError, match=text):
        check(strategy, build(model, 1, TOKENS))


def test_single_layers_may_recompute_parts_of_their_own():
    strategy = Strategy(choices=(LayerChoice("block 0", recompute="mlp"),))
    check(strategy, TINY)
    assert [one.recompute for one in shares_of(TINY, strategy)][:3] == ["none", "mlp", "none"]


def test_megatron_is_told_the_parts_and_others_are_not_asked():
    strategy = Strategy(data=8, recompute="layernorm,moe_act")
    assert strategy.said() == "dp 8, layernorm+moe_act recomputation, 1 micro-batch of 1"
    assert {name for name, why in runnable(strategy).items() if why is None} == {"megatron"}
    plan = Plan(ModelUse("mixtral-8x7b:layers=2,stack=megatron"), read_cluster("1x8"), strategy)
    assert "--recompute-modules layernorm moe_act" in megatron_arguments(plan)
