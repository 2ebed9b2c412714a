"""Why not? What a strategy that somebody names would take, and where it loses, or by how much it does not fit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import InputError, PlanError
from ropewalk.planner.pricing import Priced
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import BLOCKS, EXCHANGE_NAMES, Space
from ropewalk.sim.level import LevelUse
from ropewalk.strategy.checks import check
from ropewalk.strategy.frameworks import runnable
from ropewalk.strategy.strategy import Strategy
from ropewalk.training.answer import StepAnswer
from ropewalk.units import show_percent, show_seconds, show_size

DEGREES = {
    "dp": "data", "tp": "tensor", "pp": "pipeline", "ep": "expert", "cp": "context", "mb": "micro_batch",
    "zero": "zero", "v": "interleave", "micro-batches": "micro_batches",
}  # fmt: skip
"""Degrees as people write them, and the columns they are."""
SAID = (
    ("sequence parallel", "sp"), ("folded experts", "folded"),
    (r"(\d+) micro-batch(?:es)? of (\d+)", r"micro-batches \1, mb \2"),
    (r" x (\d+)", r", v \1"), (r"([a-z-]+) (?:recomputation|attention)", r"\1"),
    (r"\d+ blocks? per piece recomputed", BLOCKS),
)  # fmt: skip
"""Parts of a strategy as tables say it, and how they are asked about: a row of a table can be asked about as it is."""
SPENT = {"exposed communication": "in exposed communication"}
"""Parts of a step in a sentence on what a GPU spends time on, where that is not their name."""
_WORD = re.compile(r"([a-z-]+?)[ =]?([0-9]{1,9})?")


class TakenStrategy(Protocol):
    """A strategy that was taken, with the time of its step."""

    @property
    def strategy(self) -> Strategy: ...
    @property
    def seconds(self) -> float: ...


class Explainable(Protocol):
    """An answer that others can be held to: that of a search, or an estimate."""

    @property
    def question(self) -> PlannerQuestion: ...
    @property
    def best(self) -> TakenStrategy: ...
    @property
    def training(self) -> StepAnswer: ...
    @property
    def priced(self) -> Priced: ...
    @property
    def capacity_bytes(self) -> float: ...


@dataclass(frozen=True)
class TimeShare:
    """Where an average GPU spends a part of the step, under the answer and under what was asked about."""

    name: str
    best_s: float
    other_s: float


@dataclass(frozen=True)
class Explanation:
    """What was asked about, and what is to be said about it."""

    asked: str
    sentences: tuple[str, ...]
    other: str = ""
    """The best strategy like that, where one fits and is not the answer itself."""
    parts: tuple[TimeShare, ...] = ()
    absent: bool = False
    """Is nothing like that in the space?"""

    def as_json(self) -> dict[str, Any]:
        parts = [{"name": one.name, "best_s": one.best_s, "other_s": one.other_s} for one in self.parts]
        return {"asked": self.asked, "sentences": list(self.sentences), "other": self.other or None, "parts": parts}


def explained(answer: Explainable, asked: str) -> Explanation:
    """Why the strategy that is named is not the answer: `tp 4, pp 8`, `zero 1`, `interleaved`."""
    priced = answer.priced
    chosen = _matching(priced, asked)
    if not len(chosen):
        return Explanation(asked, (_absent(answer, asked),), absent=True)
    fit = chosen[priced.fits[chosen]]
    if not len(fit):
        return Explanation(asked, (_too_large(answer, chosen),))
    best = int(fit[np.argsort(priced.replay(fit), kind="stable")[0]])
    workload = answer.training.workload
    strategy = priced.strategy(best, workload)
    if strategy == answer.best.strategy:
        return Explanation(asked, (f"{strategy.said()} is the answer.",))
    simulator = Simulator(answer.question)
    other = simulator.training_of(strategy, LevelUse())
    parts = _parts(answer.training, other)
    return Explanation(asked, tuple(_losses(answer, other, len(fit), parts)), strategy.said(), parts)


def _matching(priced: Priced, asked: str) -> NDArray[np.int64]:
    """Candidates with everything that is named."""
    column, space = priced.candidates.column, priced.candidates.space
    chosen = np.ones(len(priced.candidates), np.bool_)
    for name, value in named(asked, space).items():
        chosen &= column(name) == value
    return np.flatnonzero(chosen)


def named(asked: str, space: Space) -> dict[str, int]:
    """Columns of candidates with the values that are asked about.

    >>> named("dp 4, sequence parallel, interleaved x 2, 8 micro-batches of 1", Space(schedules=("interleaved",)))
    {'data': 4, 'sequence': 1, 'schedule': 0, 'interleave': 2, 'micro_batches': 8, 'micro_batch': 1}
    """
    found: dict[str, int] = {}
    text = asked.strip().lower()
    for said, short in SAID:
        text = re.sub(said, short, text)
    for word in filter(None, re.split(r"[,;]\s*|\s+(?=[a-z])", text)):
        met = _WORD.fullmatch(word.strip())
        name, number = (met.group(1), met.group(2)) if met else (word, None)
        if name in DEGREES and number is not None:
            found[DEGREES[name]] = int(number)
        elif name in ("sp", "folded") and number in (None, "0", "1"):
            found["sequence" if name == "sp" else "folded"] = 0 if number == "0" else 1
        elif word in EXCHANGE_NAMES:
            found["exchange"] = EXCHANGE_NAMES.index(word)
        elif word in space.schedules:
            found["schedule"] = space.schedules.index(word)
        elif word in space.recompute:
            found["recompute"] = space.recompute.index(word)
        else:
            known = [
                *(f"{key} N" for key in DEGREES),
                "sp [0]",
                "folded [0]",
                *EXCHANGE_NAMES,
                *space.schedules,
                *space.recompute,
            ]
            raise PlanError(f"cannot explain {word!r}: write some of {', '.join(known)}, such as 'tp 4, pp 8'")
    return found


def _absent(answer: Explainable, asked: str) -> str:
    """Why nothing like that is in the space: what the checks say about it, or the frameworks."""
    question, workload = answer.question, answer.training.workload
    asks = named(asked, question.space)
    one = max(1, asks.get("tensor", 1) * asks.get("pipeline", 1) * asks.get("context", 1))
    data = asks.get("data", max(1, question.cluster.gpus // one))
    micro_batch = asks.get("micro_batch", 1)
    pipeline = asks.get("pipeline", 1)
    plan = Strategy(
        data=data, tensor=asks.get("tensor", 1), pipeline=pipeline, context=asks.get("context", 1),
        expert=asks.get("expert", 1), sequence_parallel=bool(asks.get("sequence")), zero=asks.get("zero", 0),
        micro_batch=micro_batch, micro_batches=max(1, question.batch // (data * micro_batch)),
        schedule=question.space.schedules[asks.get("schedule", 0)] if pipeline > 1 else "1f1b",
        interleave=asks.get("interleave", 1), fold_experts=bool(asks.get("folded")),
        context_exchange=EXCHANGE_NAMES[asks.get("exchange", 0)],
    )  # fmt: skip
    try:
        check(plan, workload.at_batch(micro_batch), question.cluster.gpus)
    except InputError as problem:
        return f"No strategy of the space matches. {problem}"
    if plan.global_batch != question.batch:
        return f"No strategy of the space matches: {plan.said()} does not divide a batch of {question.batch}."
    reasons = "; ".join(f"{name} {why}" for name, why in runnable(plan, workload).items() if why is not None)
    return f"No strategy of the space matches: {reasons or 'it is outside the search space'}."


def _too_large(answer: Explainable, chosen: NDArray[np.int64]) -> str:
    priced, capacity = answer.priced, answer.capacity_bytes
    sized = chosen[np.isfinite(priced.memory_bytes[chosen])]
    at = int(sized[np.argmin(priced.memory_bytes[sized])])
    needed = float(priced.memory_bytes[at])
    return (
        f"None of the {len(chosen):,} matching strategies fits: the smallest, "
        f"{priced.candidates.strategy(at).said()}, needs {show_size(needed)} on a GPU of {show_size(capacity)}, "
        f"{show_size(needed - capacity)} too much."
    )


def _parts(best: StepAnswer, other: StepAnswer) -> tuple[TimeShare, ...]:
    """The step of an average GPU under both, part by part."""
    ours, theirs = best.statistics, other.statistics
    return (
        TimeShare("computing", ours.compute_s, theirs.compute_s),
        TimeShare("exposed communication", ours.exposed_communication_s, theirs.exposed_communication_s),
        TimeShare("waiting for other stages", ours.bubble_s, theirs.bubble_s),
    )


def _losses(answer: Explainable, other: StepAnswer, many: int, parts: tuple[TimeShare, ...]) -> list[str]:
    taken = other.statistics.step_time_s
    lost = taken - answer.best.seconds
    where = ", ".join(
        f"{show_seconds(abs(more))} {'more' if more > 0 else 'less'} {SPENT.get(name, name)}"
        for more, name in sorted(((one.other_s - one.best_s, one.name) for one in parts), key=lambda part: -part[0])
        if abs(more) > 1e-3 * abs(lost)
    )
    said = other.strategy.said()
    first = f"{said} takes" if many == 1 else f"The best of {many:,} matching strategies is {said}:"
    more = "longer" if lost >= 0 else "shorter"
    told = (
        f"{first} {show_seconds(taken)}, {show_percent(abs(lost) / answer.best.seconds)} ({show_seconds(abs(lost))}) "
        f"{more} than {answer.best.strategy.said()}."
    )
    return [told, f"On average a GPU spends {where}."] if where else [told]
