"""All candidates of a search as points, time over memory: columns for the script that draws, filters and explains them.

A candidate is a few numbers of columns, each column a text of one or two digits per point, so that a page with
thousands of them stays small. Words are kept by value and joined by the reader's browser.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ropewalk.arrays import Floats
from ropewalk.palette import SERIES, Colour
from ropewalk.planner.answer import PlannerAnswer
from ropewalk.planner.described import Described, described, in_words
from ropewalk.report import colours, quantity
from ropewalk.report.chart import embedded

MOST_POINTS = 12_000
"""Some 30 bytes each: the page, with its timelines, stays under 1 MB."""
MOST_LISTED = 50
LOG_FROM = 3.0
"""A slowest step this many times the fastest asks for a logarithmic axis: what matters is at its lower end."""
NARROW = 0.01
"""Of the fullest GPU: room beside points that all need the same memory."""
FAR = 1.7
"""A capacity this many times the fullest GPU is outside the picture, at whose edge it is said."""
PAINTED = "Tensor"
"""What colours stand for at first, where candidates differ in it."""
CONTROLS = (
    "Drag over points to select them; the table lists the selection. Enter enlarges it, Escape clears it, a double "
    "click shows all points. By keyboard: Space starts a selection, arrows move it, with Shift they resize it; "
    "without a selection arrows move the view, + and − zoom. By touch: press select, then drag."
)
DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase


@dataclass(frozen=True, eq=False)
class PointColumn(Described):
    """One thing that candidates differ in, with colours."""

    looks: tuple[Colour, ...] = ()
    """By value: its colour; none where nobody chooses by it."""

    @property
    def offered(self) -> bool:
        """Can points be told apart by it?"""
        return bool(self.looks) and len(self.labels) > 1


@dataclass(frozen=True, eq=False)
class Points:
    """The candidates that fit, the fastest first."""

    columns: tuple[PointColumn, ...]
    seconds: Floats
    """Simulated, or below what any simulation would say."""
    memory_bytes: Floats
    simulated: NDArray[np.bool_]
    left_out: int
    """Slower ones that the picture has no room for."""

    def words(self, point: int) -> str:
        return in_words(self.columns, point)

    def rows(self, most: int = MOST_LISTED) -> list[tuple[str, float, float, bool]]:
        """The fastest: in words, seconds, bytes, and whether it was simulated."""
        return [
            (self.words(at), float(self.seconds[at]), float(self.memory_bytes[at]), bool(self.simulated[at]))
            for at in range(min(most, len(self.seconds)))
        ]


class Named(NamedTuple):
    """A point that has a ring and a name."""

    name: str
    memory_bytes: float
    seconds: float


@dataclass(frozen=True)
class PointCloud:
    """The picture as the page draws it."""

    key: str
    summary: str
    caption: str
    columns: tuple[PointColumn, ...]
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
        tuple(map(coloured, described(answer.priced.candidates, chosen))),
        seconds[chosen],
        answer.priced.memory_bytes[chosen],
        simulated[chosen],
        len(order) - len(chosen),
    )


def point_cloud(answer: PlannerAnswer) -> PointCloud:
    """Points of all candidates, with the capacity of a GPU and the bound as lines."""
    bounds = {"bound for these": float(answer.bound.uniform_s), "bound for any choice": float(answer.bound.seconds)}
    if answer.bound.seconds == answer.bound.uniform_s:
        bounds = {"bound": float(answer.bound.seconds)}
    named = [
        Named(name, option.memory_bytes, float(option.seconds))
        for name, option in (("best", answer.best), ("baseline", answer.plain))
    ]
    points = points_of(answer)
    return cloud_of(points, named, bounds, answer.capacity_bytes, _caption(points))


def cloud_of(
    points: Points, named: list[Named], bounds: dict[str, float], capacity_bytes: float, caption: str,
    listed: int = MOST_LISTED,
) -> PointCloud:  # fmt: skip
    """The picture of points, with some of them named; bounds are lines at their seconds."""
    offered = [number for number, column in enumerate(points.columns) if column.offered]
    painted = [number for number in offered if points.columns[number].title == PAINTED] or offered
    shown = np.concatenate([points.seconds, [one.seconds for one in named], [*bounds.values()]])
    capacity = capacity_bytes / 1e9
    held = points.memory_bytes / 1e9
    if capacity < FAR * held.max():
        held = np.append(held, capacity)
    room = max(0.03 * (held.max() - held.min()), NARROW * held.max())
    log = bool(shown.max() > LOG_FROM * shown.min())
    data = {
        "columns": [_embedded(column) for column in points.columns],
        "time": _short(points.seconds, 8),
        "memory": _short(points.memory_bytes / 1e9, 4),
        "simulated": np.flatnonzero(points.simulated).tolist(),
        "named": [{"name": one.name, "memory": one.memory_bytes / 1e9, "seconds": one.seconds} for one in named],
        "capacity": capacity,
        "bounds": [{"name": name, "seconds": seconds} for name, seconds in bounds.items()],
        "whole": [max(0.0, float(held.min() - room)), float(held.max() + room)],
        "tall": _ends(shown, log=log),
        "log": log,
        "looks": [colours.ACCENT.light, colours.ACCENT.dark],
        "listed": listed,
    }
    return PointCloud(
        "candidates",
        f"Step time over memory of {quantity.count(len(points.seconds))} strategies that fit",
        caption,
        points.columns,
        painted[0] if painted else -1,
        points.rows(listed),
        embedded(data),
    )


def _caption(points: Points) -> str:
    parts = [
        "Filled: simulated. Hollow: a lower bound. All with even cuts, rings, default buckets and default placement; "
        "for the best strategy (ringed) these are optimised as well."
    ]
    if points.left_out:
        parts.append(f"{quantity.count(points.left_out)} slower strategies that fit are not drawn.")
    parts.append(CONTROLS)
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


def _embedded(column: PointColumn) -> dict[str, object]:
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


def coloured(column: Described) -> PointColumn:
    """A column with a colour for each of its values, where it has a title."""
    many, named = len(column.labels), column.title in NAMED
    looks = () if not column.title else SERIES[:many] if named else colours.ramp(many)
    looks += (colours.OTHER,) * (many - len(looks)) if column.title else ()
    return PointColumn(column.title, column.labels, column.words, column.at, looks)


NAMED = ("Sequence", "Schedule", "Recomputation")
"""Columns whose values have names rather than an order."""
