"""Candidates by what they differ in: columns of values with names, from which pages filter and say them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.planner.space import BLOCKS, EXCHANGE_NAMES, Candidates
from ropewalk.timetable.named import TIMETABLES


@dataclass(frozen=True, eq=False)
class Described:
    """One thing that candidates differ in."""

    title: str
    """Nothing where nobody chooses by it: it is only said."""
    labels: tuple[str, ...]
    """What each value is called in a filter."""
    words: tuple[str, ...]
    """What each value adds to a strategy in words; nothing where it is the plain one."""
    at: Ints
    """By candidate: which value it has."""

    def as_json(self) -> dict[str, Any]:
        return {
            "title": self.title, "labels": list(self.labels), "words": list(self.words), "at": self.at.tolist()
        }  # fmt: skip


def in_words(columns: Sequence[Described], at: int) -> str:
    """A candidate as its strategy is said: `dp 32, zero 3, 1 micro-batch of 2`."""
    return ", ".join(filter(None, (column.words[column.at[at]] for column in columns)))


def described(candidates: Candidates, chosen: Ints) -> tuple[Described, ...]:
    """What these candidates are made of, in the order in which a strategy is said."""
    space = candidates.space

    def of(name: str) -> Ints:
        return candidates.column(name)[chosen]

    def degree(title: str, name: str, short: str) -> Described:
        return _column(title, (of(name),), lambda one: f"{one}", lambda one: f"{short} {one}" if one > 1 else "")

    piped = of("pipeline") > 1
    schedule = np.where(piped, of("schedule"), -1)
    return (
        degree("Data", "data", "dp"),
        degree("Tensor", "tensor", "tp"),
        degree("Pipeline", "pipeline", "pp"),
        degree("Context", "context", "cp"),
        degree("Expert", "expert", "ep"),
        _column("", (of("folded"),), lambda one: "", lambda one: "folded experts" if one else ""),
        _column("", (of("exchange"),), lambda one: "", lambda one: f"{EXCHANGE_NAMES[one]} attention" if one else ""),
        _column("Sequence", (of("sequence"),), lambda one: "on" if one else "off",
                lambda one: "sequence parallel" if one else ""),
        _column("ZeRO", (of("zero"),), lambda one: f"{one}", lambda one: f"zero {one}" if one else ""),
        _column("Schedule", (schedule, np.where(piped, of("interleave"), 1)),
                lambda one, pieces: _schedule(space.schedules, one, pieces) or "no pipeline",
                lambda one, pieces: _schedule(space.schedules, one, pieces)),
        _column("Recomputation", (of("recompute"),), lambda one: space.recompute[one], lambda one: ""),
        _column("", (of("recompute"), of("again")), lambda one, again: "",
                lambda one, again: _recomputed(space.recompute[one], again)),
        _column("Micro-batch", (of("micro_batch"),), lambda one: f"{one}", lambda one: ""),
        _column("", (of("micro_batches"), of("micro_batch")), lambda many, size: "",
                lambda many, size: f"{many} micro-batch{'es' if many > 1 else ''} of {size}"),
    )  # fmt: skip


def _schedule(names: Sequence[str], schedule: int, pieces: int) -> str:
    if schedule < 0:
        return ""
    return names[schedule] + (f" x {pieces}" if TIMETABLES[names[schedule]].any_pieces else "")


def _recomputed(kind: str, again: int) -> str:
    if kind == BLOCKS:
        return f"{again} block{'s' if again > 1 else ''} per piece recomputed"
    return "" if kind == "none" else f"{kind} recomputation"


def _column(title: str, keys: Sequence[Ints], label: Callable[..., str], words: Callable[..., str]) -> Described:
    """A column of the values that occur, in ascending order."""
    values, at = np.unique(np.column_stack(keys), axis=0, return_inverse=True)
    rows = values.tolist()
    return Described(
        title, tuple(label(*row) for row in rows), tuple(words(*row) for row in rows), at.reshape(-1)
    )  # fmt: skip
