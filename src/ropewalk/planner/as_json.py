"""The answer of the planner as plain numbers and text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ropewalk import __version__
from ropewalk.planner.answer import Option, PlannerAnswer
from ropewalk.records import plain


def as_json(answer: PlannerAnswer) -> dict[str, Any]:
    """Everything but the candidates themselves, the most asked-for first."""
    found = answer.training.statistics
    return {
        "model": answer.training.workload.name,
        "step_time_s": found.step_time_s,
        "tokens_per_s": found.tokens_per_s,
        "samples_per_s": found.samples_per_s,
        "mfu": found.mfu,
        "best": option_as_json(answer.best),
        "plain": option_as_json(answer.plain),
        **search_as_json(answer),
        "nearest": [{"strategy": one.strategy.said(), "memory_bytes": one.memory_bytes} for one in answer.nearest],
        "frameworks": answer.frameworks,
        "memory_capacity_bytes": answer.capacity_bytes,
        "training": answer.training.as_json(),
        "versions": {"ropewalk": __version__},
    }


def option_as_json(option: Option) -> dict[str, Any]:
    """A strategy in words and in full, with its time."""
    return {
        "said": option.said(),
        "step_time_s": option.seconds,
        "memory_bytes": option.memory_bytes,
        "placement": option.placement,
        "algorithm": option.algorithm,
        "strategy": plain(option.strategy),
    }


def search_as_json(answer: PlannerAnswer) -> dict[str, Any]:
    """How it was found, and how much is left."""
    bound = answer.bound
    return {
        "bound": {
            "step_time_s": bound.seconds,
            "uniform_step_time_s": bound.uniform_s,
            "gap": bound.gap(answer.best.seconds),
            "proof": bound.proof,
            "complete": bound.complete,
            "ladder": [asdict(rung) for rung in bound.ladder],
        },
        "counts": asdict(answer.counts),
        "strands": [
            {"name": one.name, "about": one.about, "gain": one.gain, **_said(one.option)} for one in answer.strands
        ],
        "notes": list(answer.remarks),
    }


def _said(option: Option) -> dict[str, Any]:
    return {"said": option.said(), "step_time_s": option.seconds}
