"""Small line charts with logarithmic axes, written as SVG by hand: no browser and no plotting library needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#8a5aab", "#c77d0a")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4")

PANEL_WIDTH, PANEL_HEIGHT = 400, 448
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 46, 148
"""Margins of the plot inside its panel; the legend stands below."""


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]


def write_chart(panels: Sequence[Panel], path: Path) -> None:
    """All panels side by side in one file."""
    width = PANEL_WIDTH * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {PANEL_HEIGHT}" width="{width}" '
        f'height="{PANEL_HEIGHT}" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#333">',
        f'<rect width="{width}" height="{PANEL_HEIGHT}" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({number * PANEL_WIDTH} 0)">', *_panel(panel), "</g>"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class _Axis:
    """Logarithms from `low` to `high` over pixels `start` to `stop`."""

    low: float
    high: float
    start: float
    stop: float

    def at(self, value: float) -> float:
        return self.start + (math.log10(value) - self.low) / (self.high - self.low) * (self.stop - self.start)

    def powers(self) -> range:
        return range(math.ceil(self.low), math.floor(self.high) + 1)


def _close_axis(values: Sequence[float], start: float, stop: float) -> _Axis:
    """As long as the values and a little more."""
    low, high = math.log10(min(values)), math.log10(max(values))
    margin = 0.06 * (high - low or 1.0)
    return _Axis(low - margin, high + margin, start, stop)


def _whole_axis(values: Sequence[float], start: float, stop: float) -> _Axis:
    """From one power of ten to another."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return _Axis(low, max(high, low + 1), start, stop)


def _panel(panel: Panel) -> list[str]:
    points = [point for series in panel.series for point in series.points]
    right, bottom = PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM
    x = _close_axis([point[0] for point in points], LEFT, right)
    y = _whole_axis([point[1] for point in points], bottom, TOP)
    parts = [
        f'<text x="{LEFT}" y="24" font-size="14" font-weight="bold">{escape(panel.title)}</text>',
        f'<text x="{(LEFT + right) / 2}" y="{bottom + 36}" text-anchor="middle">{escape(panel.x_label)}</text>',
        f'<text transform="translate(16 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(panel.y_label)}</text>",
    ]
    for power in x.powers():
        at = x.at(10.0**power)
        parts.append(_line(at, TOP, at, bottom, "#e4e4e4"))
        parts.append(f'<text x="{at:.1f}" y="{bottom + 17}" text-anchor="middle">{_power(power)}</text>')
    for power in y.powers():
        at = y.at(10.0**power)
        parts.append(_line(LEFT, at, right, at, "#e4e4e4"))
        parts.append(f'<text x="{LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{_power(power)}</text>')
    parts.append(
        f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" fill="none" stroke="#999"/>'
    )
    for number, series in enumerate(panel.series):
        parts += _curve(series, number, x, y)
        parts += _legend(series.name, number, bottom + 58 + 19 * number)
    return parts


def _curve(series: Series, number: int, x: _Axis, y: _Axis) -> list[str]:
    places = [(x.at(a), y.at(b)) for a, b in series.points]
    corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    style = _stroke(number)
    dots = [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.2" fill="{_colour(number)}"/>' for a, b in places]
    return [f'<polyline points="{corners}" fill="none" {style}/>', *dots]


def _legend(name: str, number: int, at: float) -> list[str]:
    return [
        f'<line x1="{LEFT}" y1="{at - 4}" x2="{LEFT + 26}" y2="{at - 4}" {_stroke(number)}/>',
        f'<circle cx="{LEFT + 13}" cy="{at - 4}" r="3.2" fill="{_colour(number)}"/>',
        f'<text x="{LEFT + 34}" y="{at}">{escape(name)}</text>',
    ]


def _stroke(number: int) -> str:
    dash = DASHES[number % len(DASHES)]
    return f'stroke="{_colour(number)}" stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _power(power: int) -> str:
    """10⁴ as people write it, and plain numbers where they are as short."""
    if -3 <= power <= 3:
        return f"{10.0**power:,g}"
    digits = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}"
