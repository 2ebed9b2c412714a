"""Rivals as bars below each other, the shortest first by the caller's order, one of them ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ropewalk.report import colours
from ropewalk.report.axis import Figure, axis, layout, value_axis
from ropewalk.report.chart import clipped

Write = Callable[[float], str]


def ranking(
    names: Sequence[str], values: Sequence[float], texts: Sequence[str], hovers: Sequence[str], show: Write, ours: str,
) -> Figure:  # fmt: skip
    """One bar per name on a linear axis, with its text at the end; the one called `ours` stands out."""
    bars = {
        "type": "bar", "orientation": "h", "x": list(values), "y": list(range(len(values))), "width": 0.7,
        "marker": {
            "color": [colours.ACCENT.light if name == ours else colours.OTHER.light for name in names],
            "cornerradius": 3,
        },
        "text": list(texts), "textposition": "outside", "cliponaxis": False,
        "textfont": {"size": 12, "color": colours.MUTED.light},
        "customdata": list(hovers),
        "hovertemplate": "%{customdata}<br>%{text}<extra></extra>",
    }  # fmt: skip
    return {
        "data": [bars],
        "layout": layout(
            32 * len(values) + 80,
            xaxis=value_axis("", values, show, log=False, room=0.22),
            yaxis=axis(
                range=[len(values) - 0.4, -0.6],
                showgrid=False,
                tickvals=list(range(len(values))),
                ticktext=[clipped(name) for name in names],
            ),
        ),
    }
