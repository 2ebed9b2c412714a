"""Laws of mixtures of experts, however they are spread, overlapped and recomputed."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.device.numbers import Numbers
from ropewalk.hardware import Given, read_cluster
from ropewalk.strategy import Placement, Strategy, check
from ropewalk.strategy.recompute import MODULES
from ropewalk.strategy.shares import kept_bytes, shares_of, working_bytes
from ropewalk.training import TrainingQuestion, answer
from ropewalk.training.quick import QuickSteps
from ropewalk.workload.zoo import build

MODEL = (
    "deepseek-v3:layers=5,hidden=64,heads=4,kv_heads=4,ffn=96,vocabulary=128,experts_per_layer=8,choices=2,"
    "expert_ffn=32,stack=megatron"
)
GPUS, TOKENS = 8, 32
TINY = build(MODEL, 1, TOKENS)
SLOW = Given(device="a100", nics=1, nic_bandwidth=1e9, nvlink_bandwidth=20e9)


@st.composite
def mixtures(draw):
    tensor, context = draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 2]))
    pipeline = draw(st.sampled_from([1, 2]))
    data = GPUS // (tensor * context * pipeline)
    folded = draw(st.booleans())
    over = data * tensor * context if folded else data
    expert = draw(st.sampled_from([degree for degree in (1, 2, 4, 8) if over % degree == 0]))
    schedule = draw(st.sampled_from(["1f1b", "zb-h1"] if pipeline > 1 else ["1f1b"]))
    names = draw(st.lists(st.sampled_from(tuple(MODULES)), unique=True, max_size=3))
    meanwhile = expert > 1 and "shared_experts" not in names and draw(st.booleans())
    return Strategy(
        data=data, tensor=tensor, context=context, pipeline=pipeline, expert=expert, fold_experts=folded,
        sequence_parallel=tensor > 1, shared_overlap=meanwhile, micro_batches=2 * pipeline, schedule=schedule,
        recompute=",".join(names) or "none", zero=draw(st.sampled_from([0, 1, 3])) if data * context > 1 else 0,
    )  # fmt: skip


QUESTION = TrainingQuestion(MODEL, read_cluster("2x4", SLOW), sequence=TOKENS, memory_check=False)


@cache
def quick():
    return QuickSteps(QUESTION)


@settings(max_examples=10)
@given(mixtures())
def test_the_step_of_a_gang_takes_as_long_as_that_of_all_ranks(strategy):
    question = replace(QUESTION, decided=strategy, detail="stage")
    assert quick().run(strategy).step_time_s == pytest.approx(answer(question).run.makespan, rel=1e-9)


@settings(max_examples=40)
@given(mixtures())
def test_every_expert_is_held_as_often_as_ranks_hold_the_same(strategy):
    check(strategy, TINY, GPUS)
    plain, split = shares_of(TINY, Strategy()), shares_of(TINY, strategy)
    copies = strategy.expert_replicas * (1 if strategy.fold_experts else strategy.tensor)
    ranks = strategy.data * strategy.context * strategy.tensor
    for whole, mine in zip(plain, split, strict=True):
        held = mine.expert_parameters * ranks * (1 if strategy.fold_experts else strategy.tensor)
        assert held == whole.expert_parameters * copies
    place = Placement(strategy)
    for groups, size in (
        (place.expert_groups, strategy.expert), (place.expert_data_groups, strategy.expert_replicas)
    ):  # fmt: skip
        assert groups.shape[1] == size
        assert sorted(groups.ravel().tolist()) == list(range(GPUS))


@settings(max_examples=40)
@given(mixtures())
def test_recomputing_parts_never_keeps_more(strategy):
    numbers = Numbers(2.0)
    for less, whole in zip(
        shares_of(TINY, strategy), shares_of(TINY, replace(strategy, recompute="none")), strict=True
    ):
        kept, all_kept = kept_bytes(less, numbers), kept_bytes(whole, numbers)
        assert 0 <= kept <= all_kept
        assert kept + working_bytes(less, numbers) <= all_kept * (1 + 1e-12)
