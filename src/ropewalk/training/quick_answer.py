"""The answer about a step from quick steps: the numbers of the full simulation, without writing all ranks out."""

from __future__ import annotations

from ropewalk.training.answer import StepAnswer
from ropewalk.training.collectives import collectives_of, notes_of
from ropewalk.training.prepared import prepared
from ropewalk.training.question import TrainingQuestion
from ropewalk.training.quick import QuickSteps


def quick_answer(quick: QuickSteps, question: TrainingQuestion) -> StepAnswer:
    """How long a step takes and why, at flow level; the question names its strategy and its collectives.

    >>> from ropewalk.strategy import Strategy
    >>> from ropewalk.training import answer
    >>> asked = TrainingQuestion("gpt2", gpus=2, decided=Strategy(data=2), detail="stage")
    >>> found, full = quick_answer(QuickSteps(asked), asked).statistics, answer(asked).statistics
    >>> round(found.exposed_communication_s / full.exposed_communication_s, 9)
    1.0
    """
    made = prepared(question)
    asked, strategy = made.question, made.strategy
    read = quick.read(strategy, order=asked.order, algorithm=asked.network.algorithm)
    found = read.statistics(peak_flops=made.peak_flops, samples=strategy.global_batch, tokens=made.tokens)
    written = read.run.written
    return StepAnswer(
        asked, made.workload, strategy, made.pieces, made.stage_of_rank, made.fabric, made.router, made.memory,
        made.prices, made.cost_source, read.seen, found,
        (*made.notes, *notes_of(written.step, asked.network, None)), collectives_of(written.step, written.routed), None,
    )  # fmt: skip
