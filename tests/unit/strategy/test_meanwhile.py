"""Shared experts that are computed while tokens travel to the others and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tiny_models import Products

from ropewalk.errors import StrategyError
from ropewalk.export.megatron import megatron_arguments
from ropewalk.hardware import Given, read_cluster
from ropewalk.plans import ModelUse, Plan
from ropewalk.strategy import Part, Strategy, check
from ropewalk.strategy.frameworks import runnable
from ropewalk.strategy.prices import KeptPrices, Pace
from ropewalk.strategy.shares import shares_of
from ropewalk.task.lower.moves import Move, backward_moves, forward_moves
from ropewalk.task.step import Act
from ropewalk.training import TrainingQuestion, answer
from ropewalk.training.quick import QuickSteps
from ropewalk.workload.zoo import build

MODEL = (
    "deepseek-moe-16b:layers=3,hidden=64,heads=4,kv_heads=4,ffn=96,vocabulary=128,experts_per_layer=8,choices=2,"
    "expert_ffn=32,stack=megatron"
)
TOKENS, HIDDEN, NEURONS = 32, 64, 2 * 32
TINY = build(MODEL, 1, TOKENS)
BEHIND = Strategy(data=4, expert=4)
MEANWHILE = replace(BEHIND, shared_overlap=True)
FOLDED = replace(MEANWHILE, data=2, tensor=2, sequence_parallel=True, fold_experts=True)


def moves(strategy: Strategy, walk: Any = forward_moves) -> list[Move]:
    return walk(shares_of(TINY, strategy)[2], strategy, Pace(KeptPrices(Products())))


def products(*sizes: tuple[int, int]) -> float:
    return sum(2.0 * TOKENS * inputs * outputs for inputs, outputs in sizes)


def test_each_product_of_shared_experts_hides_one_exchange():
    found = moves(MEANWHILE)
    at = [place for place, move in enumerate(found) if move.beside]
    assert [found[place].label for place in at] == ["block 1 forward dispatch", "block 1 forward combine"]
    first, second = (found[place + 1].amount for place in at)
    assert (first, second) == (products((HIDDEN, 2 * NEURONS)), products((NEURONS, HIDDEN)))


def test_on_the_way_back_the_same_products_hide_them():
    found = moves(MEANWHILE, backward_moves)
    at = [place for place, move in enumerate(found) if move.beside]
    assert [found[place].label for place in at] == ["block 1 backward combine", "block 1 backward dispatch"]
    first, second = (found[place + 1].amount for place in at)
    assert (first, second) == (2 * products((NEURONS, HIDDEN)), 2 * products((HIDDEN, 2 * NEURONS)))


@pytest.mark.parametrize("walk", [forward_moves, backward_moves])
def test_as_much_is_computed_and_sent_as_behind_the_others(walk):
    def sums(strategy: Strategy) -> tuple[float, list[float]]:
        found = moves(strategy, walk)
        sent = sorted(move.amount for move in found if move.act is not Act.COMPUTE)
        return sum(move.amount for move in found if move.act is Act.COMPUTE), sent

    assert sums(MEANWHILE) == sums(BEHIND)
    assert sums(FOLDED) == sums(replace(FOLDED, shared_overlap=False))


def test_tensor_ranks_gather_before_and_scatter_behind():
    labels = [move.label.removeprefix("block 1 forward ") for move in moves(FOLDED) if move.act is not Act.COMPUTE]
    assert labels == ["enter", "leave", "enter", "dispatch", "combine", "leave"]


def test_parameters_of_shared_experts_stay_those_of_all_ranks():
    meanwhile, behind = (shares_of(TINY, strategy)[2] for strategy in (MEANWHILE, BEHIND))
    assert meanwhile.parameters == behind.parameters
    assert meanwhile.expert_parameters == behind.expert_parameters


@pytest.mark.parametrize("strategy", [MEANWHILE, FOLDED, replace(MEANWHILE, pipeline=2, micro_batches=2, zero=1)])
def test_a_step_takes_no_longer_and_its_gang_as_long_as_all_ranks(strategy):
    slow = Given(device="a100", nics=1, nic_bandwidth=1e9, nvlink_bandwidth=20e9)
    question = TrainingQuestion(
        MODEL, read_cluster(f"{strategy.pipeline}x4", slow), sequence=TOKENS, decided=strategy, detail="stage"
    )
    full = answer(question).run.makespan
    assert QuickSteps(question).run(strategy).step_time_s == pytest.approx(full, rel=1e-9)
    assert full < answer(replace(question, decided=replace(strategy, shared_overlap=False))).run.makespan


@pytest.mark.parametrize(
    ("strategy", "model", "text"),
    [
        (MEANWHILE, "mixtral-8x7b:layers=2", "has no shared experts"),
        (replace(MEANWHILE, expert=1), MODEL, "and expert is 1: raise expert or leave shared_overlap out"),
        (replace(MEANWHILE, schedule="1f1b-overlap", micro_batches=2), MODEL, "hides the token exchange behind"),
        (
            Strategy(pipeline=2, shared_overlap=True, parts=(Part(0, 1, (0,)), Part(2, 4, (1,)))),
            MODEL,
            "leave shared_o",
        ),
    ],
)
def test_where_nothing_can_be_hidden_that_is_said(strategy, model, text):
    with pytest.raises(StrategyError, match=text):
        check(strategy, build(model, 1, TOKENS))


def test_only_megatron_runs_it_and_is_told():
    assert runnable(MEANWHILE)["megatron"] is None
    assert "leave shared_overlap out" in str(runnable(MEANWHILE)["torchtitan"])
    plan = Plan(ModelUse("deepseek-moe-16b:layers=3"), read_cluster("1x4"), MEANWHILE)
    assert "--moe-shared-expert-overlap" in megatron_arguments(plan)
