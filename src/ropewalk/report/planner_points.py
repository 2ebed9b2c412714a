"""All candidates of a search as points, time over memory: columns for the script that draws, filters and explains them.

A candidate is a few numbers of columns, each column a text of one or two digits per point, so that a page with twenty
thousand of them stays small. Words are kept by value and joined by the reader's browser.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ropewalk.palette import SERIES, Colour
from ropewalk.planner.answer import PlannerAnswer
from ropewalk.planner.space import BLOCKS, EXCHANGE_NAMES
from ropewalk.report import colours, quantity
from ropewalk.report.chart import embedded
from ropewalk.timetable.named import TIMETABLES

MOST_POINTS = 20_000
MOST_LISTED = 50
LOG_FROM = 3.0
"""A slowest step this many times the fastest asks for a logarithmic axis: what matters is at its lower end."""
FAR = 1.7
"""A capacity this many times the fullest GPU is outside the picture, at whose edge it is said."""
PAINTED = "Tensor"
"""What colours stand for at first, where candidates differ in it."""
DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Column:
    """One thing that candidates differ in."""

    title: str
    labels: tuple[str, ...]
    """What each value is called in a filter."""
    words: tuple[str, ...]
    """What each value adds to a strategy in words; nothing where it is the plain one."""
    at: Ints
    """By point: which value it has."""
    looks: tuple[Colour, ...] = ()
    """By value: its colour; none where nobody chooses by it."""

    @property
    def offered(self) -> bool:
        """Can points be told apart by it?"""
        return bool(self.looks) and len(self.labels) > 1


@dataclass(frozen=True, eq=False)
class Points:
    """The candidates that fit, the fastest first."""

    columns: tuple[Column, ...]
    seconds: Floats
    """Simulated, or below what any simulation would say."""
    memory_bytes: Floats
    simulated: NDArray[np.bool_]
    left_out: int
    """Slower ones that the picture has no room for."""

    def words(self, point: int) -> str:
        return ", ".join(filter(None, (column.words[column.at[point]] for column in self.columns)))

    def rows(self) -> list[tuple[str, float, float, bool]]:
        """The fastest: in words, seconds, bytes, and whether it was simulated."""
        return [
            (self.words(at), float(self.seconds[at]), float(self.memory_bytes[at]), bool(self.simulated[at]))
            for at in range(min(MOST_LISTED, len(self.seconds)))
        ]


@dataclass(frozen=True)
class PointCloud:
    """The picture as the page draws it."""

    key: str
    summary: str
    caption: str
    columns: tuple[Column, ...]
    painted: int
    """Number of the column whose values have the colours at first; -1 where candidates differ in none."""
    rows: list[tuple[str, float, float, bool]]
    json: Markup


def points_of(answer: PlannerAnswer) -> Points:
    """The candidates that fit, with the best that is known of their times."""
    simulated = np.isfinite(answer.simulated_s)
    seconds = np.where(simulated, answer.simulated_s, answer.bounds_s)
    fit = np.flatnonzero(answer.priced.fits)
    order = fit[np.lexsort((answer.priced.memory_bytes[fit], ~simulated[fit], seconds[fit]))]
    chosen = order[:MOST_POINTS]
    return Points(
        _columns(answer, chosen), seconds[chosen], answer.priced.memory_bytes[chosen], simulated[chosen],
        len(order) - len(chosen),
    )  # fmt: skip


def point_cloud(answer: PlannerAnswer) -> PointCloud:
    """Points of all candidates, with the capacity of a GPU and the bound as lines."""
    points = points_of(answer)
    offered = [number for number, column in enumerate(points.columns) if column.offered]
    painted = [number for number in offered if points.columns[number].title == PAINTED] or offered
    named = [("best", answer.best), ("plain choice", answer.plain)]
    bounds = {"bound of these": float(answer.bound.uniform_s), "bound of any choice": float(answer.bound.seconds)}
    if answer.bound.seconds == answer.bound.uniform_s:
        bounds = {"bound": float(answer.bound.seconds)}
    shown = np.concatenate([points.seconds, [option.seconds for _, option in named], [*bounds.values()]])
    capacity = answer.capacity_bytes / 1e9
    held = points.memory_bytes / 1e9
    if capacity < FAR * held.max():
        held = np.append(held, capacity)
    room = 0.03 * (held.max() - held.min())
    log = bool(shown.max() > LOG_FROM * shown.min())
    data = {
        "columns": [_embedded(column) for column in points.columns],
        "time": _short(points.seconds, 6),
        "memory": _short(points.memory_bytes / 1e9, 5),
        "simulated": np.flatnonzero(points.simulated).tolist(),
        "named": [
            {"name": name, "memory": option.memory_bytes / 1e9, "seconds": float(option.seconds)}
            for name, option in named
        ],
        "capacity": capacity,
        "bounds": [{"name": name, "seconds": seconds} for name, seconds in bounds.items()],
        "whole": [max(0.0, float(held.min() - room)), float(held.max() + room)],
        "tall": _ends(shown, log=log),
        "log": log,
        "looks": [colours.ACCENT.light, colours.ACCENT.dark],
        "listed": MOST_LISTED,
    }
    return PointCloud(
        "candidates",
        f"Step time over memory of {quantity.count(len(points.seconds))} strategies that fit",
        _caption(points),
        points.columns,
        painted[0] if painted else -1,
        points.rows(),
        embedded(data),
    )


def _caption(points: Points) -> str:
    parts = [
        "Filled: simulated. Hollow: its bound, below which no simulation of it falls. All with even cuts, rings, usual "
        "buckets and default placement; for the best, ringed, these are settled too."
    ]
    if points.left_out:
        parts.append(f"{quantity.count(points.left_out)} slower strategies that fit are not drawn.")
    parts.append("Drag across a part to enlarge it, double-click to see all; + and − zoom, arrows move.")
    return " ".join(parts)


def _ends(values: Floats, *, log: bool) -> list[float]:
    """From below the lowest to above the highest, on either kind of axis."""
    low, high = float(values.min()), float(values.max())
    if log:
        room = (high / low) ** 0.04
        return [low / room, high * room]
    room = 0.05 * (high - low) or 0.1 * high
    return [max(0.0, low - room), high + room]


def _short(values: Floats, digits: int) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values.tolist()]


def _embedded(column: Column) -> dict[str, object]:
    digits = 1 if len(column.labels) <= len(DIGITS) else 2
    return {
        "words": list(column.words),
        "looks": [[look.light, look.dark] for look in column.looks] if column.offered else [],
        "digits": digits,
        "at": "".join(_spelled(value, digits) for value in column.at.tolist()),
    }


def _spelled(value: int, digits: int) -> str:
    """A number in so many digits: 61 is z, 62 is 10.

    >>> _spelled(61, 1), _spelled(62, 2)
    ('z', '10')
    """
    return "".join(DIGITS[value // len(DIGITS) ** place % len(DIGITS)] for place in reversed(range(digits)))


def _columns(answer: PlannerAnswer, chosen: Ints) -> tuple[Column, ...]:
    """What candidates are made of, in the order in which a strategy is said."""
    candidates = answer.priced.candidates
    space = candidates.space

    def of(name: str) -> Ints:
        return candidates.column(name)[chosen]

    def degree(title: str, name: str, short: str) -> Column:
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


def _column(title: str, keys: Sequence[Ints], label: Callable[..., str], words: Callable[..., str]) -> Column:
    """A column of the values that occur, in ascending order; one without a title is only said."""
    values, at = np.unique(np.column_stack(keys), axis=0, return_inverse=True)
    labels = tuple(label(*row) for row in values.tolist())
    looks = () if not title else SERIES[: len(labels)] if title in NAMED else colours.ramp(len(labels))
    looks += (colours.OTHER,) * (len(labels) - len(looks)) if title else ()
    return Column(title, labels, tuple(words(*row) for row in values.tolist()), at.reshape(-1), looks)


NAMED = ("Sequence", "Schedule", "Recomputation")
"""Columns whose values have names rather than an order."""
