"""Curves of a study: how sync time grows with hosts, bytes and bandwidth, and how evenly the links are loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk import palette
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, given_axis, layout, seconds_axis, value_axis, wants_log
from ropewalk.report.chart import Chart, Swatch, View, plain
from ropewalk.report.combinations import Combination

DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
SHAPES = ("line", "dash", "dots", "dash", "dash")
MOST_POINTS = 400
"""Of a curve of link loads; longer ones are drawn through this many quantiles."""


@dataclass(frozen=True)
class Sweep:
    """One quantity that a study varies."""

    key: str
    title: str
    value: Callable[[Combination], float | None]
    """None of a combination that has no such quantity: it is drawn level."""
    show: Callable[[float], str]
    fixed: tuple[Callable[[Combination], str], ...]
    """The other quantities, in words: curves are drawn for one setting of them at a time. Empty where a combination
    does not have one: it belongs to every setting."""


def _hosts(row: Combination) -> str:
    return f"{quantity.count(row.hosts)} hosts"


def _size(row: Combination) -> str:
    return quantity.size(row.size_bytes)


def _speed(row: Combination) -> str:
    return quantity.bandwidth(row.bandwidth)


def _axes(row: Combination) -> str:
    return f"k = {row.axes}" if row.axes is not None else ""


def _whole(value: float) -> str:
    return quantity.count(round(value))


SWEEPS = (
    Sweep("hosts", "hosts", lambda row: row.hosts, _whole, (_size, _speed, _axes)),
    Sweep("axes", "k (n^k hosts)", lambda row: row.axes, _whole, (_hosts, _size, _speed)),
    Sweep("size", "size of the all-reduce", lambda row: row.size_bytes, quantity.size, (_hosts, _speed, _axes)),
    Sweep("bandwidth", "bandwidth of a link", lambda row: row.bandwidth, quantity.bandwidth, (_hosts, _size, _axes)),
)


def scaling_charts(found: Sequence[Combination], over_axes: bool = False) -> list[tuple[str, Chart]]:
    """(what varies, chart) for each quantity that the study sweeps over; k is one only where it was asked for."""
    if not over_axes:
        found = [replace(row, axes=None) for row in found]
    charts = []
    for sweep in SWEEPS:
        views = [View(label, _scaling(rows, sweep)) for label, rows in _settings(found, sweep)]
        if views:
            charts.append(
                (
                    sweep.title,
                    Chart(
                        f"scaling-{sweep.key}",
                        f"Sync time against {sweep.title}, one line per combination",
                        tuple(views),
                        _legend(found),
                        "Shown for",
                    ),
                )
            )
    return charts


def _settings(found: Sequence[Combination], sweep: Sweep) -> list[tuple[str, list[Combination]]]:
    """The rows of each setting of the other quantities in which the swept one takes several values on some line."""
    varied = [write for write in sweep.fixed if len({write(row) for row in found} - {""}) > 1]
    words = {row: tuple(write(row) for write in varied) for row in found}
    whole = dict.fromkeys(label for label in words.values() if all(label))
    settings = {
        " · ".join(label): [
            row for row in found if all(mine in ("", said) for mine, said in zip(words[row], label, strict=True))
        ]
        for label in whole
    }
    return [
        (label, rows)
        for label, rows in settings.items()
        if any(len({sweep.value(row) for row in line}) > 1 for line in _lines(rows).values())
    ]


def _lines(rows: Sequence[Combination]) -> dict[tuple[str, str, str], list[Combination]]:
    lines: dict[tuple[str, str, str], list[Combination]] = {}
    for row in rows:
        lines.setdefault((row.physical, row.logical, row.way), []).append(row)
    return lines


def _scaling(rows: Sequence[Combination], sweep: Sweep) -> Figure:
    """A panel for each physical topology, all on one scale."""
    panels = list(dict.fromkeys(row.physical for row in rows))
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    times = [row.time_s for row in rows]
    stops = sorted({value for row in rows if (value := sweep.value(row)) is not None})
    traces = [_line(name, _points(members, sweep, stops), panels, rows) for name, members in _lines(rows).items()]
    axes: Figure = {}
    titles = []
    for number, panel in enumerate(panels):
        across, down = number % columns, number // columns
        gap = 0.05
        width = (1 - gap * (columns - 1)) / columns
        height = (1 - 0.16 * (lines - 1)) / lines
        left, top = across * (width + gap), 1 - down * (height + 0.16)
        suffix = "" if number == 0 else str(number + 1)
        last = number + columns >= len(panels)
        axes[f"xaxis{suffix}"] = given_axis(
            sweep.title if last else "", stops, sweep.show, domain=[left, left + width], anchor=f"y{suffix}"
        )
        axes[f"yaxis{suffix}"] = seconds_axis(
            "sync time" if across == 0 else "", times, log=True, room=0.06,
            domain=[max(0.0, top - height), top], anchor=f"x{suffix}", showticklabels=across == 0,
        )  # fmt: skip
        titles.append(_panel_title(panel, left, top))
    return {"data": traces, "layout": layout(70 + 330 * lines, margin=_TITLED, annotations=titles, **axes)}


_TITLED = {"l": 8, "r": 8, "t": 34, "b": 48}


def _panel_title(text: str, left: float, top: float) -> Figure:
    return {
        "text": f"<b>{plain(text)}</b>",
        "x": left,
        "y": top,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 6,
        "showarrow": False,
        "font": {"size": 13, "color": palette.INK.light},
    }


def _points(members: list[Combination], sweep: Sweep, stops: list[float]) -> list[tuple[float, Combination]]:
    """(value, combination) in order; one that has no such quantity stands at every stop."""
    found: list[tuple[float, Combination]] = []
    for row in members:
        value = sweep.value(row)
        found += [(stop, row) for stop in (stops if value is None else [value])]
    return sorted(found, key=lambda point: (point[0], point[1].fabric))


def _line(
    name: tuple[str, str, str], points: list[tuple[float, Combination]], panels: list[str], rows: Sequence[Combination]
) -> Figure:
    physical, logical, routing = name
    number = panels.index(physical)
    suffix = "" if number == 0 else str(number + 1)
    colour = colours.of_logical(logical).light
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": plain(f"{colours.name_of_logical(logical)} on {physical}, {routing}"),
        "legendgroup": f"logical {logical}",
        "x": [value for value, _ in points],
        "y": [row.time_s for _, row in points],
        "xaxis": f"x{suffix}",
        "yaxis": f"y{suffix}",
        "customdata": [_point(row) for _, row in points],
        "hovertemplate": "%{customdata}<extra></extra>",
        "line": {"color": colour, "width": _width(logical, rows), "dash": _dash(routing, rows)},
        "marker": {"color": colour, "size": 6},
    }


def _point(row: Combination) -> str:
    setting = ", ".join((_hosts(row), _size(row), _speed(row), plain(row.way)))
    return f"<b>{plain(row.words)}</b><br>{quantity.seconds(row.time_s)}<br>{setting}"


def _width(logical: str, rows: Sequence[Combination]) -> float:
    """Curves that are drawn first are wider, so that equal ones show beneath each other."""
    order = list(dict.fromkeys(row.logical for row in rows))
    return 1.8 + 0.5 * min(4, len(order) - 1 - order.index(logical))


def _dash(routing: str, rows: Sequence[Combination]) -> str:
    return DASHES[_turn(routing, rows) % len(DASHES)]


def _turn(routing: str, rows: Sequence[Combination]) -> int:
    """The number of a routing among those of its fabrics: the first is drawn solid, whatever it is called."""
    ways: dict[str, list[str]] = {}
    for row in rows:
        known = ways.setdefault(row.physical, [])
        if row.way not in known:
            known.append(row.way)
    return max((known.index(routing) for known in ways.values() if routing in known), default=0)


def _legend(found: Sequence[Combination]) -> tuple[Swatch, ...]:
    swatches = [
        Swatch(colours.name_of_logical(name), colours.of_logical(name), "line", f"logical {name}")
        for name in dict.fromkeys(row.logical for row in found)
    ]
    turns = {routing: _turn(routing, found) for routing in dict.fromkeys(row.way for row in found)}
    if any(turns.values()):
        swatches += [Swatch(name, colours.MUTED, SHAPES[turn % len(SHAPES)]) for name, turn in turns.items()]
    return tuple(swatches)


def load_chart(found: Sequence[Combination]) -> Chart:
    """Links of a fabric from the busiest to the least busy: a level curve is an even load."""
    # Payload is the same with every transport: one stands for all, and needs no name.
    found = [replace(row, way=row.routing) for row in found if row.transport == found[0].transport]
    fabrics: dict[str, list[Combination]] = {}
    for row in found:
        fabrics.setdefault(row.fabric, []).append(row)
    views = []
    compressed = False
    for name, rows in fabrics.items():
        # Loads are in units of the size over a host link, so one size and one speed stand for all of them.
        rows = [row for row in rows if (row.size_bytes, row.bandwidth) == (rows[0].size_bytes, rows[0].bandwidth)]
        curves = [(row, *_curve(row.link_load)) for row in rows]
        compressed = compressed or any(short for *_, short in curves)
        views.append(View(name, _loads(curves)))
    caption = "A flat curve means an even load; a peak at the left is a bottleneck link."
    if compressed:
        caption += f" Long curves are drawn through {MOST_POINTS} quantiles."
    return Chart(
        "link-load", "Load of every used link, busiest first, for each combination", tuple(views), _legend(found),
        "Fabric", caption,
    )  # fmt: skip


def _loads(curves: Sequence[tuple[Combination, NDArray[np.float64], NDArray[np.float64], bool]]) -> Figure:
    every = [float(value) for _, _, load, _ in curves for value in (load.max(initial=0.0), load.min(initial=np.inf))]
    every = [value for value in every if np.isfinite(value)]
    log = wants_log(every)
    links = max((float(rank.max(initial=0.0)) for _, rank, _, _ in curves), default=1.0)
    rows = [row for row, *_ in curves]
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": plain(f"{row.words}, {row.way}"),
            "legendgroup": f"logical {row.logical}",
            "x": np.round(rank, 3).tolist(),
            "y": [float(f"{value:.9g}") for value in load.tolist()],
            "hovertemplate": f"<b>{plain(colours.name_of_logical(row.logical))}</b>, {plain(row.way)}<br>"
            "link %{x:,.0f}: %{y:.4g} P/B<extra></extra>",
            "line": {
                "color": colours.of_logical(row.logical).light,
                "width": _width(row.logical, rows),
                "dash": _dash(row.way, rows),
            },
        }
        for row, rank, load, _ in curves
    ]
    return {
        "data": traces,
        "layout": layout(
            380,
            xaxis=axis("used links, busiest first", range=[0, links * 1.02], tickformat=",d", nticks=8),
            yaxis=value_axis(
                "load, in P/B" + (", logarithmic" if log else ""), every, lambda tick: f"{tick:g}", log=log, room=0.08
            ),
        ),
    }


def _curve(load: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """(rank, load) of the sorted loads: exact as steps where few values occur, through quantiles otherwise."""
    ordered = np.sort(load)[::-1]
    if not len(ordered):
        return np.zeros(0), np.zeros(0), False
    # Values that differ by rounding alone are one step.
    start = np.flatnonzero(np.abs(np.diff(ordered, prepend=np.inf)) > 1e-9 * ordered)
    if 2 * len(start) <= MOST_POINTS:
        end = np.append(start[1:], len(ordered))
        return np.column_stack([start, end]).ravel().astype(float), np.repeat(ordered[start], 2), False
    if len(ordered) <= MOST_POINTS:
        return np.arange(1, len(ordered) + 1, dtype=float), ordered, False
    part = np.linspace(0.0, 1.0, MOST_POINTS)
    return 1 + part * (len(ordered) - 1), np.quantile(ordered, 1 - part), True
