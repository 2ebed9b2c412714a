"""Runs over time as strips under each other, on one clock and one scale: who is busy when, and who ends first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk import palette
from ropewalk.palette import Colour
from ropewalk.report import colours
from ropewalk.report.axis import CLEAR, Figure, axis, layout, value_axis
from ropewalk.report.chart import plain
from ropewalk.report.timeline import time_unit
from ropewalk.sim.level import PacketFacts

ALONE = 320
STRIP = 58
TITLE = 26
EDGES = 70
"""Pixels: a chart of one run; a strip, the title above it, and the margins of all of them."""
ROOM = 1.1
"""How far an axis reaches beyond the highest line."""


@dataclass(frozen=True)
class Course:
    """One run in a chart of runs over time."""

    label: str
    facts: PacketFacts
    colour: Colour


@dataclass(frozen=True)
class StripMeasure:
    """What is drawn of every run."""

    title: str
    value: Callable[[PacketFacts], NDArray[np.float64]]
    """One number for each sample, which holds since the sample before."""
    units: tuple[tuple[float, str], ...]
    """Units to show it in, the largest first: that of the highest number is taken for all."""
    limit: Callable[[PacketFacts], float] | None = None
    """What lasts at most, drawn as a dashed line; the axis ends a little above it."""

    def unit_of(self, highest: float) -> tuple[float, str]:
        return next(((scale, name) for scale, name in self.units if highest >= scale), self.units[-1])


@dataclass(frozen=True)
class _Strip:
    """One run as it is drawn: on the time and in the unit of all of them."""

    course: Course
    place: int
    heights: NDArray[np.float64]
    """In the unit."""
    unit: str
    scale_s: float
    time_unit: str


def strips(courses: Sequence[Course], measured: StripMeasure) -> Figure:
    """A strip for each run; a run alone gets the whole height."""
    scale_s, time_name = time_unit(max(float(one.facts.time_s[-1]) for one in courses))
    end = max(float(one.facts.time_s[-1]) for one in courses) / scale_s
    heights = [measured.value(one.facts) for one in courses]
    limits = [0.0 if measured.limit is None else measured.limit(one.facts) for one in courses]
    most = max(limits) or max(float(height.max(initial=0.0)) for height in heights) or 1.0
    scale, unit = measured.unit_of(most)
    traces = []
    for place, (one, height, limit) in enumerate(zip(courses, heights, limits, strict=True)):
        traces.append(_area(_Strip(one, place, height / scale, unit, scale_s, time_name), measured.title))
        if limit:
            traces.append(_line(limit / scale, end, unit, place))
    time = axis(f"time in {time_name}", range=[0, end * 1.005], nticks=10)
    if len(courses) == 1:
        up = value_axis(measured.title, [most / scale], lambda height: _shown(height, unit), log=False, room=ROOM - 1)
        return {"data": traces, "layout": layout(ALONE, xaxis=time, yaxis=up)}
    return {"data": traces, "layout": _stacked(courses, most / scale, unit, time)}


def _stacked(courses: Sequence[Course], highest: float, unit: str, time: Figure) -> Figure:
    number = len(courses)
    whole = number * (STRIP + TITLE)
    axes: Figure = {}
    titles = []
    for place, one in enumerate(courses):
        bottom = 1 - (place + 1) * (STRIP + TITLE) / whole
        top = bottom + STRIP / whole
        axes[f"yaxis{_suffix(place)}"] = axis(
            range=[0, highest * ROOM], domain=[bottom, top], anchor="x", tickvals=[0, highest],
            ticktext=["0", _shown(highest, unit)],
        )  # fmt: skip
        titles.append(
            {
                "text": plain(one.label), "x": 0, "y": top, "xref": "paper", "yref": "paper", "xanchor": "left",
                "yanchor": "bottom", "showarrow": False, "font": {"size": 12, "color": palette.INK.light},
            }
        )  # fmt: skip
    time = time | {"anchor": f"y{_suffix(number - 1)}"}
    return layout(whole + EDGES, xaxis=time, annotations=titles, **axes)


def _suffix(place: int) -> str:
    return "" if place == 0 else str(place + 1)


def _shown(height: float, unit: str) -> str:
    return f"{height:.4g}\u00a0{unit}" if height else "0"


def _area(strip: _Strip, title: str) -> Figure:
    one, heights = strip.course, strip.heights
    held = np.append(heights, heights[-1:])  # each number holds until the next sample, the last one until the end
    instants = np.concatenate([[0.0], one.facts.time_s]) / strip.scale_s
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plain(one.label or title),
        "x": [float(f"{instant:.6g}") for instant in instants],
        "y": [float(f"{height:.5g}") for height in held.tolist()],
        "yaxis": f"y{_suffix(strip.place)}",
        "hovertemplate": f"{plain(one.label)} %{{x:.4g}} {strip.time_unit}: %{{y:.4g}} {strip.unit}<extra></extra>",
        "line": {"color": one.colour.light, "width": 1.4, "shape": "hv"},
        "fill": "tozeroy",
    }


def _line(limit: float, end: float, unit: str, place: int) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "limit",
        "x": [0.0, end],
        "y": [limit, limit],
        "yaxis": f"y{_suffix(place)}",
        "hovertemplate": f"at most {_shown(limit, unit)}<extra></extra>",
        "line": {"color": colours.MUTED.light, "width": 1, "dash": "dash"},
        "fillcolor": CLEAR,
    }
