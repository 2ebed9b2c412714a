"""Orders of gradients as other options of a search: those of the study of overlap where all ranks are data ranks.

Elsewhere gradients that are reduced together may go first on links one by one, by priority, or layer by layer. No
framework does that: all of them fill buckets as gradients are ready.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from ropewalk.errors import InputError
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.study import answer
from ropewalk.planner.answer import Option
from ropewalk.planner.question import PlannerQuestion
from ropewalk.strategy.order import Order
from ropewalk.strategy.strategy import Strategy


def orders(question: PlannerQuestion, option: Option) -> Iterator[Strategy]:
    """The strategy of an option with its gradients merged, cut, by priority or across steps; none if that is unknown.

    The study knows data parallelism that runs one micro-batch. Gradients in an order of their own are whole on every
    rank, so nothing is sharded.
    """
    strategy = replace(option.strategy, gather_ahead=False)
    if strategy.zero > 1 or not strategy.order.is_plain or strategy.parts:
        return
    if strategy.data != question.cluster.gpus or strategy.micro_batches > 1 or strategy.expert > 1:
        yield from (replace(strategy, order=order) for order in within_a_step(strategy))
        return
    try:
        asked = OverlapQuestion(
            question.model, question.cluster, question.batch, question.sequence, question.precision,
            strategy.optimiser, question.use(option.algorithm), seed=question.seed,
        )  # fmt: skip
        methods = answer(asked, simulate=False).methods
    except InputError:
        return
    for method in methods:
        if method.order is not None and not method.order.is_plain:
            yield replace(strategy, zero=0, order=method.order)


def within_a_step(strategy: Strategy) -> Iterator[Order]:
    """Other orders that end with the step.

    >>> [order.said() for order in within_a_step(Strategy(data=2, tensor=2, order=Order(fusion=0.0)))]
    ['layer by layer, queued', 'layer by layer, forward first, credit without limit', 'layer by layer, streamed']
    """
    if strategy.replicas > 1:
        yield replace(strategy.order, priority="queued")
        yield replace(strategy.order, fusion=0.0, priority="forward", credit_bytes=inf)
        yield replace(strategy.order, arrival="streamed")
