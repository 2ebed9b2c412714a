"""A planner's answer in sentences and small tables: verdict, five numbers, the ladder of the bound, counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ropewalk.planner.answer import PlannerAnswer
from ropewalk.planner.plain import ABOUT
from ropewalk.report import quantity
from ropewalk.strategy.frameworks import FRAMEWORKS
from ropewalk.strategy.placement import DEFAULT_ORDER

FOUND = "found"
NOTICEABLE = 5e-4
"""A part below this is no gain and no gap."""
NOTICED = 0.005
"""Choices that alone gain less than this part are named, but neither drawn nor counted."""

Facts = list[tuple[str, str]]


@dataclass(frozen=True)
class LadderRow:
    """A rung of the bound, and how much higher it is than the one below."""

    name: str
    seconds: float
    added: float
    about: str


def headline(answer: PlannerAnswer) -> str:
    """`Train gpt2-xl on 32 GPUs with dp 32, zero 3, 1 micro-batch of 2: 109.2 ms per step, 1.82× as fast as …`"""
    gain = answer.plain.seconds / answer.best.seconds
    beside = f"{quantity.times(gain)} as fast as the baseline" if gain > 1 + NOTICEABLE else "as fast as the baseline"
    return (
        f"Train {answer.training.workload.name} on {quantity.count(answer.training.gpus)} GPUs with "
        f"{answer.best.strategy.said()}: {quantity.seconds(answer.training.statistics.step_time_s)} per step, {beside}"
    )


def bound_in_words(answer: PlannerAnswer) -> str:
    """How much is left to gain, whatever is chosen, and with what most people choose."""
    bound, gap = answer.bound, answer.bound.gap(answer.best.seconds)
    above = f"and this one is {quantity.percent(gap)} above it"
    found = "and this one reaches the bound" if gap < NOTICEABLE else above
    said = (
        f"No strategy takes less than {quantity.seconds(bound.seconds)}, whatever its cuts, collectives, order of "
        f"gradients and placement, {found}."
    )
    if answer.training.question.network.designed is not None:
        said = f"On any wiring of these ports, no{said[2:]}"
    many, least = quantity.count(answer.counts.fit), quantity.seconds(bound.uniform_s)
    proved = "is the best" if bound.complete else "is a bound"
    return f"{said} With even cuts, rings and default buckets {least} {proved} of the {many} that fit."


def proof_in_words(answer: PlannerAnswer) -> str:
    stopped = "" if answer.bound.complete else " The search ended before every candidate below the best was simulated."
    return sentence(answer.bound.proof) + stopped


def sentence(text: str) -> str:
    """With a capital letter and a full stop.

    >>> sentence("rings are fast")
    'Rings are fast.'
    """
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith(".") else ".")


def numbers(answer: PlannerAnswer) -> Facts:
    """The five that people ask for first."""
    found, gain = answer.training.statistics, answer.plain.seconds / answer.best.seconds
    held, room = answer.training.memory.most, answer.capacity_bytes
    rate = (
        ("Tokens per second", quantity.rate(found.tokens_per_s))
        if found.tokens_per_s
        else ("Samples per second", quantity.rate(found.samples_per_s or 0.0))
    )
    return [
        ("Step time", quantity.seconds(found.step_time_s)),
        rate,
        ("Model flops utilisation", "unknown" if found.mfu is None else quantity.percent(found.mfu)),
        (f"Peak memory, of {quantity.size(room)}", quantity.size(held)),
        ("Gain over the baseline", quantity.times(gain)),
    ]


def facts(answer: PlannerAnswer) -> Facts:
    """What was asked, and what was decided."""
    asked, best = answer.question, answer.best
    workload = answer.training.workload
    listed = [
        ("Bound", _bound(answer)),
        ("Strategy", best.strategy.said()),
        ("Collectives", best.algorithm.replace(",", ", ").replace("=", ": ")),
        ("Placement of ranks", "default" if best.placement == DEFAULT_ORDER else best.placement),
        ("Baseline", f"{answer.plain.said()}: {quantity.seconds(answer.plain.seconds)}"),
        ("Cluster", asked.cluster.said),
        ("Global batch, samples", quantity.count(asked.batch)),
        ("Sequence length, tokens", quantity.count(workload.sequence) if workload.sequence else ""),
        ("Parameters", quantity.count(workload.parameters())),
        ("Precision", asked.precision),
        ("Stack", workload.stack),
        ("Interval of the step time", answer.training.expected.said()),
        ("Routing", answer.training.router),
        ("Seed", str(asked.seed)),
    ]  # fmt: skip
    return [(name, value) for name, value in listed if value]


def _bound(answer: PlannerAnswer) -> str:
    gap = answer.bound.gap(answer.best.seconds)
    reached = "reached" if gap < NOTICEABLE else f"the step is {quantity.percent(gap)} above it"
    return f"{quantity.seconds(answer.bound.seconds)}, {reached}"


def ladder_rows(answer: PlannerAnswer) -> list[LadderRow]:
    """The rungs of the bound and the step that was found, in ascending order; each adds to the one below.

    What is bounded with rings and even cuts alone may be above the step, where others were found to be faster.
    """
    rungs = [(rung.name, float(rung.seconds), rung.about) for rung in answer.bound.ladder]
    rungs.append((FOUND, float(answer.best.seconds), "the step as simulated, with contention"))
    rows, below = [], 0.0
    for name, seconds, about in sorted(rungs, key=lambda rung: rung[1]):
        rows.append(LadderRow(name, seconds, seconds - below, about))
        below = seconds
    return rows


def where_to_gain(answer: PlannerAnswer) -> str:
    """The largest rung above the first, in a sentence."""
    rows = ladder_rows(answer)
    largest = max(rows[1:], key=lambda row: row.added, default=None)
    if largest is None or largest.added <= 0:
        return ""
    part = quantity.percent(largest.added / answer.best.seconds)
    return f"The largest share besides arithmetic, {part} of the step: {largest.about}."


def strands_in_words(answer: PlannerAnswer) -> str:
    """What strands give together, beside what they give one by one."""
    single = [strand for strand in answer.strands[:-1] if strand.gain >= 1 + NOTICED]
    together = answer.strands[-1].gain
    if not single:
        return "No single choice gains anything over the baseline." if together > 1 + NOTICEABLE else ""
    best = max(single, key=lambda strand: strand.gain)
    product = math.prod(strand.gain for strand in single)
    if len(single) == 1:
        return f"One choice alone gains: {best.name}, {quantity.times(best.gain)}; together {quantity.times(together)}."
    return (
        f"The largest gain of a single choice is {quantity.times(best.gain)} ({best.name}). The {len(single)} that "
        "gain "
        f"alone multiply to {quantity.times(product)}; all together give {quantity.times(together)}."
    )


def counts(answer: PlannerAnswer) -> Facts:
    found = answer.counts
    return [
        ("Possible", quantity.count(found.possible)),
        ("Runnable by a framework", quantity.count(found.runnable)),
        ("Fit into memory", quantity.count(found.fit)),
        ("Bounded", quantity.count(found.priced)),
        ("Replayed", quantity.count(found.replayed)),
        ("Simulated", quantity.count(found.simulated)),
    ]


def frameworks(answer: PlannerAnswer) -> list[tuple[str, bool, str]]:
    """(framework, can it run the best strategy, how or why not)."""
    return [
        (FRAMEWORKS[name].label, why is None, FRAMEWORKS[name].about if why is None else why)
        for name, why in answer.frameworks.items()
    ]


def reading() -> list[str]:
    """What is assumed."""
    return [
        f"The baseline is {ABOUT}.",
        "Bounds hold for the model of this page: kernel times as priced, max-min fair links, no noise.",
        "Model flops utilisation counts the arithmetic of the model once, without recomputation.",
    ]
