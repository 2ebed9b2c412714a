"""Experts spread over tensor and context ranks too: who holds which, what travels, what a rank keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_models import FlopPrices, transformer

from ropewalk.errors import StrategyError
from ropewalk.export.megatron import megatron_arguments
from ropewalk.export.ranks import seats_of
from ropewalk.hardware import Given, read_cluster
from ropewalk.plans import ModelUse, Plan, read_plan, write_plan
from ropewalk.strategy import Placement, Strategy, check
from ropewalk.strategy.part import Part
from ropewalk.strategy.prices import KeptPrices, Pace
from ropewalk.strategy.shares import Share, shares_of
from ropewalk.task.lower.moves import Move, Scope, forward_moves
from ropewalk.task.lower.passes import buckets
from ropewalk.task.step import Act
from ropewalk.training import TrainingQuestion, answer
from ropewalk.training.planned import groups_of, plan_of, question_of
from ropewalk.training.quick import QuickSteps
from ropewalk.workload.experts import Experts
from ropewalk.workload.zoo import build

MODEL = (
    "deepseek-moe-16b:layers=3,hidden=64,heads=4,kv_heads=4,ffn=96,vocabulary=128,experts_per_layer=8,choices=2,"
    "expert_ffn=32"
)
TOKENS, HIDDEN, FFN, EXPERTS, CHOICES, BYTES = 32, 64, 32, 8, 2, 2
TINY = build(MODEL, 1, TOKENS)
FOLDED = Strategy(data=2, tensor=2, context=2, expert=4, sequence_parallel=True, fold_experts=True)
SPLIT = replace(FOLDED, expert=2, fold_experts=False)


def block(strategy: Strategy) -> Share:
    return shares_of(TINY, strategy)[2]


def met(strategy: Strategy) -> list[Move]:
    moves = forward_moves(block(strategy), strategy, Pace(KeptPrices(FlopPrices())))
    return [move for move in moves if move.act is not Act.COMPUTE]


def test_neighbours_share_out_the_experts_whichever_coordinates_they_differ_in():
    place = Placement(FOLDED)
    assert place.expert_groups.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert place.expert_data_groups.tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert place.data_groups.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_groups_of_a_pipeline_stay_in_their_stage():
    place = Placement(Strategy(tensor=2, data=2, pipeline=2, expert=4, sequence_parallel=True, fold_experts=True))
    assert place.expert_groups.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert place.expert_data_groups.tolist() == [[rank] for rank in range(8)]


def test_fewer_experts_than_tensor_ranks_leave_copies_among_these():
    place = Placement(Strategy(tensor=4, expert=2, sequence_parallel=True, fold_experts=True))
    assert place.expert_groups.tolist() == [[0, 1], [2, 3]]
    assert place.expert_data_groups.tolist() == [[0, 2], [1, 3]]


def test_a_rank_holds_whole_experts_and_computes_its_own_tokens():
    experts = next(op for op in block(FOLDED).layer.operators if isinstance(op, Experts))
    assert (experts.experts, experts.ffn) == (EXPERTS // 4, FFN)
    assert experts.slots == TOKENS * CHOICES // 4
    assert block(FOLDED).expert_parameters == EXPERTS // 4 * 3 * HIDDEN * FFN


def test_each_tensor_rank_sends_its_own_tokens_alone():
    sent = {
        plan.fold_experts: [move.amount for move in met(plan) if move.scope is Scope.EXPERT] for plan in (FOLDED, SPLIT)
    }
    whole = TOKENS * CHOICES * HIDDEN * BYTES
    assert sent == {True: [whole / 4, whole / 4], False: [whole / 2, whole / 2]}


def test_only_what_is_shared_by_all_tokens_is_still_split_over_tensor_ranks():
    """Of a block, attention enters and leaves, then the shared experts: no tokens are gathered for the router."""
    labels = [move.label.removeprefix("block 1 forward ") for move in met(FOLDED) if move.scope is not Scope.CONTEXT]
    assert labels == ["enter", "leave", "dispatch", "combine", "enter", "leave"]
    usual = [move.label.removeprefix("block 1 forward ") for move in met(SPLIT) if move.scope is not Scope.CONTEXT]
    assert usual == ["enter", "leave", "enter", "dispatch", "combine", "leave"]


@pytest.mark.parametrize("walk", ["forward", "backward"])
def test_all_ranks_together_multiply_as_much_however_experts_are_spread(walk):
    def products(plan: Strategy) -> float:
        kernels = (kernel for op in block(plan).layer.operators for kernel in getattr(op, walk)())
        return sum(kernel.flops for kernel in kernels if kernel.kind == "grouped_matmul")

    assert products(FOLDED) == products(SPLIT)


def test_gradients_of_experts_are_reduced_among_the_ranks_that_hold_them():
    """Two of eight ranks hold the same experts, with 4 of 8 of them; four hold the same of everything else."""
    shares = shares_of(TINY, FOLDED)
    found = {move.scope: move.amount for moves in buckets([2], shares, FOLDED, BYTES).values() for move in moves}
    assert found[Scope.EXPERT_DATA] == shares[2].expert_parameters * BYTES
    assert found[Scope.DATA] == shares[2].parameters * BYTES
    assert FOLDED.expert_replicas == 2
    alone = replace(FOLDED, expert=8)
    gone = buckets([2], shares_of(TINY, alone), alone, BYTES)
    assert {move.scope for moves in gone.values() for move in moves} == {Scope.DATA}


@pytest.mark.parametrize("zero", [0, 1, 3])
@pytest.mark.parametrize("pipeline", [1, 2])
@pytest.mark.parametrize("expert", [2, 4, 8])
def test_the_step_of_a_gang_takes_as_long_as_that_of_all_ranks(expert, pipeline, zero):
    strategy = replace(FOLDED, expert=expert, pipeline=pipeline, zero=zero, micro_batches=2)
    slow = Given(device="a100", nics=1, nic_bandwidth=1e9, nvlink_bandwidth=20e9)
    question = TrainingQuestion(
        MODEL, read_cluster(f"{2 * pipeline}x4", slow), sequence=TOKENS, decided=strategy, detail="stage"
    )
    full = answer(question)
    assert QuickSteps(question).run(strategy).step_time_s == pytest.approx(full.run.makespan, rel=1e-9)


def test_a_plan_file_keeps_folded_experts(tmp_path):
    question = TrainingQuestion(MODEL, read_cluster("2x4"), sequence=TOKENS, decided=FOLDED)
    found = answer(question)
    write_plan(plan_of(found), tmp_path / "plan.json")
    plan = read_plan(tmp_path / "plan.json")
    assert answer(question_of(plan)).run.makespan == pytest.approx(found.run.makespan, rel=1e-12)
    assert groups_of(plan)["expert"] == Placement(FOLDED).expert_groups.tolist()


def test_megatron_is_told_that_experts_are_not_split():
    plan = Plan(ModelUse("mixtral-8x7b"), read_cluster("1x8"), replace(FOLDED, context=1, data=4))
    assert "--expert-tensor-parallel-size 1" in megatron_arguments(plan)


def test_rank_files_say_which_experts_a_rank_has():
    plan = Plan(ModelUse(MODEL), read_cluster("1x8"), FOLDED)
    assert [seat.coordinates[2] for seat in seats_of(plan)] == [0, 1, 2, 3] * 2


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        (replace(FOLDED, sequence_parallel=False), "turn sequence parallelism on or leave fold_experts out"),
        (replace(FOLDED, expert=3), "over 8 tensor, context and data ranks, which expert degree 3 does not divide"),
        (replace(SPLIT, expert=8), "set expert to a divisor of 2, or fold experts over tensor and context ranks too"),
        (
            Strategy(data=2, tensor=2, expert=4),
            r"ranks too \(fold_experts\) and turn sequence parallelism on",
        ),
        (Strategy(pipeline=2, fold_experts=True, parts=(Part(0, 1, (0,)), Part(2, 4, (1,)))), "leave fold_experts out"),
    ],
)
def test_what_cannot_be_folded_is_said_with_a_remedy(strategy, text):
    with pytest.raises(StrategyError, match=text):
        check(strategy, TINY)


def test_a_model_without_experts_has_none_to_fold():
    with pytest.raises(StrategyError, match="tiny has no experts to fold over tensor and context ranks"):
        check(Strategy(tensor=2, sequence_parallel=True, fold_experts=True), transformer())
