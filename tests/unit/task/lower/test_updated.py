"""Updated weights that are gathered ahead of the layers that need them: the same bytes, earlier in the step."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tiny_models import FlopPrices, on_stream, transformer

from ropewalk.errors import StrategyError
from ropewalk.export.megatron import megatron_arguments
from ropewalk.hardware import Given, read_cluster
from ropewalk.plans import ModelUse, Plan
from ropewalk.strategy import Order, Placement, Strategy, runnable
from ropewalk.strategy.checks import check
from ropewalk.task.lower import lower
from ropewalk.task.step import Act, Step
from ropewalk.training import TrainingQuestion, answer
from ropewalk.training.quick import QuickSteps

TINY = transformer()
AHEAD = Strategy(data=4, zero=1, gather_ahead=True, micro_batches=2, order=Order(fusion=0.0))
BEHIND = replace(AHEAD, gather_ahead=False)


def lowered(strategy: Strategy) -> Step:
    return lower(TINY, strategy, Placement(strategy), FlopPrices(), "layer")


def gathers(step: Step) -> list[int]:
    return np.flatnonzero(on_stream(step, "zero") & (step.act == Act.ALL_GATHER)).tolist()


def waits(step: Step, operation: int) -> list[int]:
    return step.dep[step.dep_start[operation] : step.dep_start[operation + 1]].tolist()


@pytest.mark.parametrize("pipeline", [{}, {"pipeline": 2}, {"pipeline": 2, "schedule": "interleaved", "interleave": 2}])
def test_as_many_bytes_are_gathered_ahead_as_behind(pipeline: dict[str, object]) -> None:
    steps = [lowered(replace(one, **pipeline)) for one in (AHEAD, BEHIND)]
    ahead, behind = (float(step.amount[gathers(step)].sum()) for step in steps)
    assert ahead == behind > 0


def test_the_first_pass_of_every_layer_waits_for_its_own_bucket_and_no_other_pass_does() -> None:
    step = lowered(AHEAD)
    found = gathers(step)
    assert len(found) == len(TINY.layers)  # a bucket for each
    assert waits(step, found[0]) == []
    assert all(waits(step, later) == [before] for before, later in pairwise(found))
    waiting = [at for at in range(step.operations) if set(waits(step, at)) & set(found) and step.act[at] == Act.COMPUTE]
    assert [step.name_of(at) for at in waiting] == [f"block {at} forward" for at in range(4) for _ in range(4)]
    assert max(waiting) < np.flatnonzero(on_stream(step, "data")).min()


def test_layers_of_one_bucket_wait_together_and_the_step_ends_with_the_update() -> None:
    step = lowered(replace(AHEAD, order=Order()))
    assert len(gathers(step)) == 1
    assert step.name_of(step.operations - 1) == "update"


def test_on_a_network_the_gang_takes_as_long_as_all_ranks_and_less_than_with_gathers_behind() -> None:
    cluster = read_cluster("2x2", Given(device="h100", nics=1, nic_bandwidth=25e9))
    usual = replace(AHEAD, order=Order())
    question = TrainingQuestion("llama-7b:layers=4,stack=megatron", cluster, sequence=2048, decided=usual)
    full = answer(question).run.makespan
    assert QuickSteps(question).run(usual).step_time_s == pytest.approx(full, rel=1e-9)
    assert full < answer(replace(question, decided=replace(usual, gather_ahead=False))).run.makespan


@pytest.mark.parametrize(
    ("strategy", "complaint"),
    [
        (replace(AHEAD, zero=0), "not under zero 0: set zero to 1 or leave gather_ahead out"),
        (replace(AHEAD, zero=3), "not under zero 3: set zero to 1 or leave gather_ahead out"),
        (replace(AHEAD, order=Order(priority="queued")), "use an order of plain buckets or leave gather_ahead out"),
        (replace(AHEAD, pipeline=2, schedule="dualpipe"), "two copies of the model: take 1f1b or leave gather_ahead"),
    ],
)
def test_where_nothing_can_be_gathered_ahead_that_is_said(strategy: Strategy, complaint: str) -> None:
    with pytest.raises(StrategyError, match=complaint):
        check(strategy, TINY)


def test_megatron_alone_runs_it_and_is_told() -> None:
    assert runnable(AHEAD)["megatron"] is None
    assert "leave gather_ahead out" in str(runnable(AHEAD)["torchtitan"])
    told = [megatron_arguments(Plan(ModelUse("llama-3.2-1b"), read_cluster("1x4"), one)) for one in (AHEAD, BEHIND)]
    assert ["--overlap-param-gather" in arguments for arguments in told] == [True, False]
    assert all("--overlap-grad-reduce" in arguments for arguments in told)
