"""Axes and layouts in the house style: few ticks, written with their units, and nothing that shouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ropewalk import palette
from ropewalk.report import colours, quantity

Figure = dict[str, Any]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
CLEAR = "rgba(0,0,0,0)"
LOG_FROM = 20.0
"""A largest value this many times the smallest asks for a logarithmic axis."""


def wants_log(values: Sequence[float]) -> bool:
    """Do the values span so much that the small ones would vanish on a linear axis?"""
    positive = [value for value in values if value > 0]
    return bool(positive) and max(positive) > LOG_FROM * min(positive)


def layout(height: int, **parts: Any) -> Figure:
    """A transparent layout; margins grow with the labels."""
    base: Figure = {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 12, "b": 48},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"family": FONT, "size": 13, "color": palette.INK.light},
        "hoverlabel": {
            "align": "left",
            "bgcolor": colours.PAPER.light,
            "bordercolor": colours.GRID.light,
            "font": {"family": FONT, "size": 13, "color": palette.INK.light},
        },
        "hovermode": "closest",
        "showlegend": False,
    }
    return base | parts


def axis(title: str = "", **parts: Any) -> Figure:
    base: Figure = {
        "automargin": True,
        "fixedrange": True,
        "gridcolor": colours.GRID.light,
        "linecolor": colours.GRID.light,
        "tickfont": {"size": 12, "color": colours.MUTED.light},
        "ticks": "",
        "title": {"text": title, "font": {"size": 12, "color": colours.MUTED.light}, "standoff": 12},
        "zeroline": False,
    }
    return base | parts


def value_axis(
    title: str, values: Sequence[float], show: Callable[[float], str], *, log: bool, room: float = 0.04, **parts: Any
) -> Figure:
    """An axis over `values` with ticks at round numbers; `room` is the part of it kept free at its far end."""
    high = max(values, default=1.0) or 1.0
    if not log:
        ticks = _linear_ticks(high)
        return axis(title, range=[0, high * (1 + room)], **_written(ticks, show), **parts)
    low = min(value for value in values if value > 0)
    first, last = math.log10(low) - 0.08, math.log10(high)
    if last - first < 0.3:
        first, last = first - 0.15, last + 0.15
    end = last + (last - first) * room
    return axis(title, type="log", range=[first, end], **_written(_log_ticks(10**first, 10**end), show), **parts)


def given_axis(title: str, values: Sequence[float], show: Callable[[float], str], **parts: Any) -> Figure:
    """A logarithmic axis with a tick at each of the few values that were measured."""
    ends = math.log10(min(values)), math.log10(max(values))
    pad = 0.06 * (ends[1] - ends[0]) or 0.1
    chosen = _apart(values, 0.08 * (ends[1] - ends[0])) if len(values) <= 6 else _log_ticks(min(values), max(values))
    return axis(title, type="log", range=[ends[0] - pad, ends[1] + pad], **_written(chosen, show), **parts)


def _apart(values: Sequence[float], decades: float) -> list[float]:
    """Values whose labels do not run into each other: of neighbours that would (250 and 256 hosts), the larger."""
    kept: list[float] = []
    for value in sorted(values, reverse=True):
        if not kept or math.log10(kept[-1] / value) >= decades:
            kept.append(value)
    return kept[::-1]


def _written(ticks: list[float], show: Callable[[float], str]) -> Figure:
    return {"tickvals": ticks, "ticktext": [show(tick) for tick in ticks]}


def _linear_ticks(high: float) -> list[float]:
    """0 and three to eight multiples of 1, 2 or 5 up to the highest value."""
    rough = high / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.8)
    return [float(f"{number * step:.12g}") for number in range(int(high * 1.0001 / step) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every decade, or the decades alone where that is enough."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5)):
        ticks = [float(f"{factor}e{decade}") for decade in decades for factor in factors]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 4:
            break
    return ticks


def seconds_axis(title: str, values: Sequence[float], *, log: bool, room: float = 0.04, **parts: Any) -> Figure:
    return value_axis(title, values, quantity.seconds, log=log, room=room, **parts)
