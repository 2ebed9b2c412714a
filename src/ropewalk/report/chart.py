"""A chart on a page: figures as plain dictionaries, a legend, and the text that goes with them.

A figure has traces (bar, scatter, box, heatmap) and a layout, in a small part of Plotly's vocabulary. Figures are
written as JSON into the page and drawn by `templates/figure.js`, so that the same study always gives the same bytes.
Text from users enters a figure only through `plain`, and the page through a template that escapes it.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from markupsafe import Markup

from ropewalk.palette import Colour
from ropewalk.report.axis import Figure


@dataclass(frozen=True)
class Swatch:
    """One entry of a legend; entries with a group hide and show the traces of that group."""

    label: str
    colour: Colour
    shape: str = "bar"
    """bar, line, dots, dash, dot, circle, diamond, hollow, tick or box: the template draws it."""
    group: str | None = None


@dataclass(frozen=True)
class View:
    """One figure of a chart that has several to choose from."""

    label: str
    figure: Figure


@dataclass(frozen=True)
class Chart:
    """Figures of which one is shown at a time."""

    key: str
    """The id of the chart on its page."""
    summary: str
    """What it shows, for readers who cannot see it."""
    views: tuple[View, ...]
    legend: tuple[Swatch, ...] = ()
    choose: str = ""
    """What the views differ in."""
    caption: str = ""

    @property
    def height(self) -> int:
        return int(self.views[0].figure["layout"]["height"])

    @property
    def json(self) -> Markup:
        return embedded([view.figure for view in self.views])


def steps(values: Sequence[int]) -> list[int]:
    """From each value to the next, the first from 0.

    >>> steps([5, 7, 6])
    [5, 2, -1]
    """
    return [after - before for before, after in pairwise([0, *values])]


def runs(values: Sequence[int]) -> list[int]:
    """Values that repeat, each with how often it stands in a row.

    >>> runs([7, 7, 7, 5])
    [7, 3, 5, 1]
    """
    return [part for value, same in groupby(values) for part in (value, sum(1 for _ in same))]


def plain(text: str) -> str:
    """User text for a figure: labels may have tags and entities, so they are written as what they look like."""
    return html.escape(text, quote=False)


def clipped(text: str, most: int = 32) -> str:
    """A label short enough for an axis."""
    return plain(text if len(text) <= most else text[: most - 1] + "…")


def embedded(value: Any) -> Markup:
    """JSON that cannot end the script element around it; a NaN or an infinity is a mistake upstream."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # no character that HTML could take for markup is left in it
