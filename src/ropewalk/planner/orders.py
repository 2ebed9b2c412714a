"""Orders of gradients that the study of overlap finds for plain data parallelism, as other options of a search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ropewalk.errors import InputError
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.study import answer
from ropewalk.planner.answer import Option
from ropewalk.planner.question import PlannerQuestion
from ropewalk.strategy.strategy import Strategy


def orders(question: PlannerQuestion, option: Option) -> Iterator[Strategy]:
    """The strategy of an option with its gradients merged, cut, by priority or across steps; none if that is unknown.

    The study knows data parallelism that runs one micro-batch. Gradients in an order of their own are whole on every
    rank, so nothing is sharded.
    """
    strategy = option.strategy
    if strategy.data != question.cluster.gpus or strategy.parts or strategy.micro_batches > 1 or strategy.expert > 1:
        return
    if strategy.zero > 1 or not strategy.order.is_plain:
        return
    try:
        asked = OverlapQuestion(
            question.model, question.cluster, question.batch, question.sequence, question.precision,
            strategy.optimiser, question.use(option.algorithm), seed=question.seed,
        )  # fmt: skip
        ways = answer(asked, simulate=False).ways
    except InputError:
        return
    for way in ways:
        if way.order is not None and not way.order.is_plain:
            yield replace(strategy, zero=0, order=way.order)
