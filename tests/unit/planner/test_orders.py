"""Orders of gradients in a search: what frameworks run is tried, what they do not run is a remark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ropewalk.hardware import Given, read_cluster
from ropewalk.planner.answer import Option, PlannerAnswer
from ropewalk.planner.orders import orders
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import Space
from ropewalk.planner.study import answer
from ropewalk.strategy.frameworks import runnable
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.strategy import Strategy

SPACE = Space(tensor=(1,), pipeline=(1,), context=(1,), micro_batch=(4,), zero=(0,), recompute=("none",))
SLOW = read_cluster("4x1", Given(nic_bandwidth=1.25e9))
QUESTION = PlannerQuestion("gpt2", SLOW, batch=16, sequence=512, space=SPACE)


@pytest.fixture(scope="module")
def runs_today() -> PlannerAnswer:
    return answer(QUESTION)


@pytest.fixture(scope="module")
def may_be_anything() -> PlannerAnswer:
    return answer(replace(QUESTION, allow=("unrunnable",)))


def test_what_no_framework_runs_is_a_remark_with_its_time(runs_today, may_be_anything):
    assert any(why is None for why in runs_today.frameworks.values())
    assert may_be_anything.best.seconds < runs_today.best.seconds
    assert may_be_anything.best.strategy.order.across_steps
    (remark,) = runs_today.remarks
    assert "No framework supports this order of gradients" in remark
    assert "across steps" in remark


def test_the_order_that_is_allowed_is_the_answer_and_needs_no_remark(may_be_anything):
    assert not may_be_anything.remarks
    assert all(may_be_anything.frameworks.values())
    assert may_be_anything.bound.seconds <= may_be_anything.best.seconds


def test_elsewhere_launches_are_queued_prioritised_and_streamed_within_a_step():
    for strategy in (Strategy(data=2, tensor=2), Strategy(data=2, pipeline=2, micro_batches=2)):
        found = list(orders(QUESTION, Option(strategy, DEFAULT_ORDER, "ring", 1.0, 1e9)))
        assert len(found) == 3
        assert not any(one.order.across_steps for one in found)
        assert all(why for one in found for why in runnable(one).values())


def test_sharded_weights_and_ranks_alone_leave_no_order_to_choose():
    for strategy in (Strategy(data=4, zero=3), Strategy(tensor=4)):
        assert not list(orders(QUESTION, Option(strategy, DEFAULT_ORDER, "ring", 1.0, 1e9)))
