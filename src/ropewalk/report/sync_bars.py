"""Sync time by combination: bars from the simulation, marks from the closed forms, a tick for what nobody can beat."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ropewalk import palette
from ropewalk.report import colours, quantity
from ropewalk.report.axis import CLEAR, Figure, axis, layout, seconds_axis, wants_log
from ropewalk.report.chart import Chart, Swatch, View, plain
from ropewalk.report.combinations import Combination, several_ways

BAR_PIXELS = 21
GAP = 1.1
"""Space between two fabrics, in bars."""
GROUPS_AT_ONCE = 12
PAPER_DIFFERS = 1e-6
LABEL_ROOM = 0.12
"""Part of the axis that a label needs behind its bar."""


def sync_bars(found: Sequence[Combination]) -> Chart:
    """Bars grouped by fabric, one colour a logical topology."""
    views = tuple(View(label, _figure(rows)) for label, rows in _views(found))
    logical = list(dict.fromkeys(row.logical for row in found))
    levels = {row.deepest_level for row in found}
    flow = levels != {"closed"}
    legend = [
        Swatch(colours.name_of_logical(name), colours.of_logical(name), group=f"logical {name}") for name in logical
    ]
    if flow and any(row.closed_s is not None for row in found):
        legend.append(Swatch("closed form", palette.INK, "diamond", "closed form"))
    if any(_paper_differs(row) for row in found):
        legend.append(Swatch("form as published", palette.INK, "hollow", "published form"))
    legend.append(Swatch("lower bound of any all-reduce", colours.MUTED, "tick", "lower bound"))
    return Chart(
        "sync-time",
        f"Sync time of {len(found)} combinations of logical and physical topology as bars",
        views,
        tuple(legend),
        "Shown for",
        _what_bars_are(levels),
    )


def _what_bars_are(levels: set[str]) -> str:
    if levels == {"closed"}:
        return "Bars are the closed form: nothing was simulated."
    if levels <= {"closed", "flow"}:
        return "Bars are the flow-level simulation."
    if levels == {"packet"}:
        return "Bars are the packet-level simulation."
    return "Bars are the finest simulation of each combination: packets, flows with headers, or flows (see the hover)."


def _views(found: Sequence[Combination]) -> list[tuple[str, list[Combination]]]:
    """One view for each size and speed, and for each number of hosts where all fabrics would be too many."""
    writers: list[Callable[[Combination], str]] = []
    if len({(row.fabric, row.way) for row in found}) > GROUPS_AT_ONCE:
        writers.append(lambda row: f"{quantity.count(row.hosts)} hosts")
    if len({row.size_bytes for row in found}) > 1:
        writers.append(lambda row: quantity.size(row.size_bytes))
    if len({row.bandwidth for row in found}) > 1:
        writers.append(lambda row: quantity.bandwidth(row.bandwidth))
    views: dict[str, list[Combination]] = {}
    for row in found:
        label = " · ".join(write(row) for write in writers)
        views.setdefault(label, []).append(row)
    return list(views.items())


def _figure(rows: Sequence[Combination]) -> Figure:
    place, groups = _places(rows)
    every = [value for row in rows for value in (row.time_s, row.closed_s, _published(row), row.bound_s) if value]
    log = wants_log(every)
    depth = max(place.values()) + 0.5
    return {
        "data": [
            *_bars(rows, place),
            _bounds(rows, place),
            _marks(rows, place, "published form"),
            _marks(rows, place, "closed form"),
            _values(rows, place, _reach(every, log)),
        ],
        "layout": layout(
            round(depth * BAR_PIXELS) + 78,
            bargap=0,
            barmode="overlay",
            xaxis=seconds_axis("sync time, logarithmic" if log else "sync time", every, log=log, room=LABEL_ROOM),
            yaxis=axis(
                range=[depth, -1.0],
                showgrid=False,
                tickvals=[middle for _, middle in groups],
                ticktext=[plain(label) for label, _ in groups],
                tickfont={"size": 13, "color": palette.INK.light},
            ),
        ),
    }


def _places(rows: Sequence[Combination]) -> tuple[dict[Combination, float], list[tuple[str, float]]]:
    """Where each bar stands, and the middle of each fabric with its name."""
    routed = several_ways(rows)
    together: dict[str, list[Combination]] = {}
    for row in rows:
        together.setdefault(f"{row.fabric} · {row.way}" if routed else row.fabric, []).append(row)
    place: dict[Combination, float] = {}
    groups: list[tuple[str, float]] = []
    at = 0.0
    for label, members in together.items():
        place |= {row: at + number for number, row in enumerate(members)}
        groups.append((label, at + (len(members) - 1) / 2))
        at += len(members) + GAP
    return place, groups


def _bars(rows: Sequence[Combination], place: dict[Combination, float]) -> list[Figure]:
    traces = []
    for name in dict.fromkeys(row.logical for row in rows):
        mine = [row for row in rows if row.logical == name]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": plain(colours.name_of_logical(name)),
                "legendgroup": f"logical {name}",
                "x": [row.time_s for row in mine],
                "y": [place[row] for row in mine],
                "width": 0.82,
                "marker": {"color": colours.of_logical(name).light, "cornerradius": 3},
                "customdata": [_hover(row) for row in mine],
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        )
    return traces


def _hover(row: Combination) -> str:
    lines = [f"<b>{plain(row.words)}</b>, {quantity.count(row.hosts)} hosts, {plain(row.way)}"]
    if set(row.time_by_level) <= {"closed", "flow"}:
        if row.flow_s is not None:
            lines.append(f"simulated {quantity.seconds(row.flow_s)}")
    else:
        times = row.time_by_level.items()
        lines += [f"level {level} {quantity.seconds(time)}" for level, time in times if level != "closed"]
    if row.closed_s is not None:
        lines.append(f"closed form {row.closed_words}: {plain(row.formula or '')}")
    if row.deviation is not None:
        lines.append(f"deviation {quantity.percent(row.deviation, signed=True)}")
    if _paper_differs(row) and row.paper_s is not None:
        lines.append(f"as published {quantity.seconds(row.paper_s)}")
    lines.append(f"lower bound {quantity.seconds(row.bound_s)}")
    return "<br>".join(lines)


def _marks(rows: Sequence[Combination], place: dict[Combination, float], what: str) -> Figure:
    published = what == "published form"
    points = [(row, _published(row) if published else _closed_mark(row)) for row in rows]
    drawn = [(row, value) for row, value in points if value is not None]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": what,
        "legendgroup": what,
        "x": [value for _, value in drawn],
        "y": [place[row] for row, _ in drawn],
        "customdata": [_hover(row) for row, _ in drawn],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {
            "symbol": "diamond",
            "size": 9 if published else 8,
            "color": CLEAR if published else palette.INK.light,
            "line": {"width": 1.5, "color": palette.INK.light if published else colours.PAPER.light},
        },
        "cliponaxis": False,
    }


def _closed_mark(row: Combination) -> float | None:
    """A mark beside a simulated bar; where nothing was simulated the bar itself is the closed form."""
    return row.closed_s if row.simulated_s is not None else None


def _published(row: Combination) -> float | None:
    return row.paper_s if _paper_differs(row) else None


def _paper_differs(row: Combination) -> bool:
    if row.paper_s is None:
        return False
    return row.closed_s is None or abs(row.paper_s / row.closed_s - 1) > PAPER_DIFFERS


def _bounds(rows: Sequence[Combination], place: dict[Combination, float]) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "lower bound",
        "legendgroup": "lower bound",
        "x": [value for row in rows for value in (row.bound_s, row.bound_s, None)],
        "y": [end for row in rows for end in (place[row] - 0.5, place[row] + 0.5, None)],
        "line": {"color": colours.MUTED.light, "width": 1.5},
        "hoverinfo": "skip",
        "cliponaxis": False,
    }


def _reach(every: Sequence[float], log: bool) -> Callable[[float], float]:
    """How far right a value stands, in parts of the axis."""
    high, low = max(every), min(every)
    if not log:
        return lambda value: value / high
    return lambda value: math.log(value / low) / math.log(high / low)


def _values(rows: Sequence[Combination], place: dict[Combination, float], reach: Callable[[float], float]) -> Figure:
    """The time in figures at the end of each bar, or behind the published form where that would stand in its way."""
    at, text = [], []
    for row in rows:
        end, published = max(row.time_s, _closed_mark(row) or 0.0), _published(row)
        words = quantity.seconds(row.time_s)
        if published and 0 < reach(published) - reach(end) < LABEL_ROOM:
            end, words = published, f"{words}, published {quantity.seconds(published)}"
        at.append(end)
        text.append(f"\u2002{words}")
    return {
        "type": "scatter",
        "mode": "text",
        "name": "values",
        "x": at,
        "y": [place[row] for row in rows],
        "text": text,
        "textposition": "middle right",
        "textfont": {"size": 12, "color": colours.MUTED.light},
        "hoverinfo": "skip",
        "cliponaxis": False,
    }
