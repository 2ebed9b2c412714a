"""Why not? What a strategy that somebody names would take, and where it loses, or by how much it does not fit."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import InputError, PlanError
from ropewalk.planner.answer import PlannerAnswer
from ropewalk.planner.pricing import Priced
from ropewalk.planner.simulated import Simulator
from ropewalk.planner.space import EXCHANGE_NAMES, Space
from ropewalk.sim.level import LevelUse
from ropewalk.strategy.checks import check
from ropewalk.strategy.frameworks import runnable
from ropewalk.strategy.strategy import Strategy
from ropewalk.training.answer import StepAnswer
from ropewalk.units import show_seconds, show_size

DEGREES = {
    "dp": "data", "tp": "tensor", "pp": "pipeline", "ep": "expert", "cp": "context", "mb": "micro_batch",
    "zero": "zero", "v": "interleave",
}  # fmt: skip
"""Degrees as people write them, and the columns they are."""
_WORD = re.compile(r"([a-z-]+?)[ =]?(\d+)?")


@dataclass(frozen=True)
class Explanation:
    """What was asked about, and what is to be said about it."""

    asked: str
    sentences: tuple[str, ...]


def explained(answer: PlannerAnswer, asked: str) -> Explanation:
    """Why the strategy that is named is not the answer: `tp 4, pp 8`, `zero 1`, `interleaved`."""
    priced = answer.priced
    chosen = _matching(priced, asked)
    if not len(chosen):
        return Explanation(asked, (_absent(answer, asked),))
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
    return Explanation(asked, tuple(_losses(answer, other, len(fit))))


def _matching(priced: Priced, asked: str) -> NDArray[np.int64]:
    """Candidates with everything that is named."""
    column, space = priced.candidates.column, priced.candidates.space
    chosen = np.ones(len(priced.candidates), np.bool_)
    for name, value in named(asked, space).items():
        chosen &= column(name) == value
    return np.flatnonzero(chosen)


def named(asked: str, space: Space) -> dict[str, int]:
    """Columns of candidates with the values that are asked about."""
    found: dict[str, int] = {}
    for word in filter(None, re.split(r"[,;]\s*|\s+(?=[a-z])", asked.strip().lower())):
        met = _WORD.fullmatch(word.strip())
        name, number = (met.group(1), met.group(2)) if met else (word, None)
        if name in DEGREES and number is not None:
            found[DEGREES[name]] = int(number)
        elif word in ("sp", "folded"):
            found["sequence" if word == "sp" else "folded"] = 1
        elif word in EXCHANGE_NAMES:
            found["exchange"] = EXCHANGE_NAMES.index(word)
        elif word in space.schedules:
            found["schedule"] = space.schedules.index(word)
        elif word in space.recompute:
            found["recompute"] = space.recompute.index(word)
        else:
            known = [
                *(f"{key} N" for key in DEGREES),
                "sp",
                "folded",
                *EXCHANGE_NAMES,
                *space.schedules,
                *space.recompute,
            ]
            raise PlanError(f"cannot explain {word!r}: write some of {', '.join(known)}, such as 'tp 4, pp 8'")
    return found


def _absent(answer: PlannerAnswer, asked: str) -> str:
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
        return f"No strategy of the space is like that. {problem}"
    if plan.global_batch != question.batch:
        return f"No strategy of the space is like that: {plan.said()} does not divide a batch of {question.batch}."
    reasons = "; ".join(f"{name} {why}" for name, why in runnable(plan, workload).items() if why is not None)
    return f"No strategy of the space is like that: {reasons or 'it lies outside of what may be chosen'}."


def _too_large(answer: PlannerAnswer, chosen: NDArray[np.int64]) -> str:
    priced, capacity = answer.priced, answer.capacity_bytes
    sized = chosen[np.isfinite(priced.memory_bytes[chosen])]
    at = int(sized[np.argmin(priced.memory_bytes[sized])])
    needed = float(priced.memory_bytes[at])
    return (
        f"None of the {len(chosen):,} strategies like that fits: the smallest, "
        f"{priced.candidates.strategy(at).said()}, needs {show_size(needed)} on a GPU of {show_size(capacity)}, "
        f"{show_size(needed - capacity)} too much."
    )


def _losses(answer: PlannerAnswer, other: StepAnswer, many: int) -> list[str]:
    best, theirs = answer.training.statistics, other.statistics
    lost = theirs.step_time_s - answer.best.seconds
    parts = {
        "computing": theirs.compute_s - best.compute_s,
        "communication that is not hidden": theirs.exposed_communication_s - best.exposed_communication_s,
        "waiting for other stages": theirs.bubble_s - best.bubble_s,
    }
    where = ", ".join(
        f"{show_seconds(abs(seconds))} {'more' if seconds > 0 else 'less'} {name}"
        for name, seconds in sorted(parts.items(), key=lambda part: -part[1])
        if abs(seconds) > 1e-3 * abs(lost)
    )
    return [
        f"The best of {many:,} strategies like that is {other.strategy.said()}: {show_seconds(theirs.step_time_s)}, "
        f"{lost / answer.best.seconds:+.1%} ({show_seconds(abs(lost))}) against {answer.best.strategy.said()}.",
        f"On average a GPU spends {where}.",
    ]
