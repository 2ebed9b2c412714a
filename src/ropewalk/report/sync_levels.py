"""Theory, flows and packets side by side, and what packets met, run by run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ropewalk import palette
from ropewalk.palette import Colour
from ropewalk.report import colours, quantity
from ropewalk.report.axis import CLEAR, Figure, axis, layout, value_axis
from ropewalk.report.chart import Chart, Swatch, View, plain
from ropewalk.report.combinations import Combination, at_the_largest
from ropewalk.report.packet_charts import (
    BY_KIND,
    OVER_NODES,
    pauses_by_node,
    pauses_of_nodes,
    queues_over_time,
    throughput_over_time,
)
from ropewalk.report.packet_strips import Course
from ropewalk.sim.transports import TRANSPORTS

ROW_PIXELS = 24
LIKE_LENGTH = 4.0
LOG_FROM = 4.0
"""A largest ratio this many times the smallest asks for a logarithmic axis."""


@dataclass(frozen=True)
class Yardstick:
    """What the times of a combination are compared with."""

    words: str
    seconds: Callable[[Combination], float | None]


YARDSTICKS = (
    Yardstick("the flow level", lambda row: row.flow_s),
    Yardstick("flows with headers", lambda row: row.time_by_level.get("wire")),
    Yardstick("the closed form", lambda row: row.closed_s),
)
"""The first that every combination has is taken."""


def levels_chart(found: Sequence[Combination]) -> Chart | None:
    """A line for each combination: what formula, headers and packets of each transport add to the flow level."""
    yardstick = next((one for one in YARDSTICKS if all(one.seconds(row) for row in found)), None)
    if yardstick is None or not any(row.transport for row in found):
        return None
    transports = _transports(found)
    known = {level for row in found for level in row.time_by_level}
    legend = [Swatch("closed form", palette.INK, "diamond")] if any(row.closed_s for row in found) else []
    legend += [Swatch("flow", colours.OTHER, "dot")] if "flow" in known else []
    legend += [
        Swatch(words.format(name), TRANSPORTS.colours()[name], shape)
        for level, words, shape in (
            ("packet", "packets, {}", "dot"),
            ("wire", "flows with the headers of {}", "circle"),
        )
        for name in transports
        if level in known
    ]
    views = [View(label, _marks(rows, transports, yardstick)) for label, rows in _settings(found)]
    told = "Filled marks are packets, hollow marks flows with the same headers: the gap between them is "
    return Chart(
        "levels", f"Sync time of every level over that of {yardstick.words}, for each combination", tuple(views),
        tuple(legend), "Shown for", told + "congestion." if {"wire", "packet"} <= known else "",
    )  # fmt: skip


def packet_charts(found: Sequence[Combination]) -> list[tuple[str, str, Chart]]:
    """(heading, note, chart) of what packets met; nothing where none were simulated. Of a sweep, the largest."""
    every = [row for row in found if row.packet is not None]
    runs = at_the_largest(every)
    if not runs:
        return []
    which = _of_which(runs) if len(runs) < len(every) else ""
    several = len(_transports(runs)) > 1
    views = [
        (" · ".join((label, words)) if words else label, _courses(rows, several))
        for label, fabric_rows in _by_fabric(runs)
        for words, rows in _of_like_length(fabric_rows)
    ]
    serves = " As a parameter server it receives first and sends afterwards." if any(map(_serves, runs)) else ""
    charts = [
        (
            "Throughput over time at one host",
            f"The first host.{serves}{which}",
            throughput_over_time("throughput", views),
        )
    ]
    queued = [(label, courses) for label, courses in views if any(course.facts.most_queued_bytes for course in courses)]
    if queued:
        charts.append(("Queues over time", which.strip(), queues_over_time("queues", queued)))
    paused = [(label, courses) for label, courses in views if any(course.facts.pauses for course in courses)]
    if paused:
        charts.append((BY_KIND, which.strip(), pauses_by_node("pauses", paused)))
        charts.append((OVER_NODES, which.strip(), pauses_of_nodes("pauses-of-nodes", paused)))
    return charts


def _serves(run: Combination) -> bool:
    """Is the first host a parameter server?"""
    return run.logical in ("ps", "ps-sharded")


def _of_which(runs: Sequence[Combination]) -> str:
    hosts = sorted({row.hosts for row in runs})
    span = quantity.count(hosts[0]) if len(hosts) == 1 else f"{quantity.count(hosts[0])} to {quantity.count(hosts[-1])}"
    first = runs[0]
    return f" Shown for {span} hosts, {quantity.size(first.size_bytes)} and {quantity.bandwidth(first.bandwidth)}."


def _by_fabric(runs: Sequence[Combination]) -> list[tuple[str, list[Combination]]]:
    """One view for each fabric and routing."""
    writers: list[Callable[[Combination], str]] = [lambda row: row.fabric]
    if len({(row.fabric, row.routing) for row in runs}) > len({row.fabric for row in runs}):
        writers.append(lambda row: row.routing)
    return _grouped(runs, writers)


def _of_like_length(rows: Sequence[Combination]) -> list[tuple[str, list[Combination]]]:
    """Runs whose lengths are comparable share an axis of time; beside a long one a short one could not be read."""
    clusters: list[list[Combination]] = []
    for row in sorted(rows, key=lambda one: one.time_s):
        if clusters and row.time_s <= LIKE_LENGTH * clusters[-1][0].time_s:
            clusters[-1].append(row)
        else:
            clusters.append([row])
    if len(clusters) == 1:
        return [("" if len(rows) > 1 else _named(rows[0], True), list(rows))]
    order = {id(row): number for number, row in enumerate(rows)}
    split = [sorted(cluster, key=lambda one: order[id(one)]) for cluster in clusters]
    split.sort(key=lambda cluster: order[id(cluster[0])])
    apart = {row.logical for row in rows if len({id(one) for one in split if row.logical in _logical(one)}) > 1}
    names = [" · ".join(dict.fromkeys(_named(row, row.logical in apart) for row in one)) for one in split]
    return list(zip(names, split, strict=True))


def _logical(rows: Sequence[Combination]) -> set[str]:
    return {row.logical for row in rows}


def _named(row: Combination, with_transport: bool) -> str:
    name = colours.name_of_logical(row.logical)
    return f"{name}, {row.transport}" if with_transport else name


def _settings(found: Sequence[Combination]) -> list[tuple[str, list[Combination]]]:
    """One view for each size and speed."""
    writers: list[Callable[[Combination], str]] = []
    if len({row.size_bytes for row in found}) > 1:
        writers.append(lambda row: quantity.size(row.size_bytes))
    if len({row.bandwidth for row in found}) > 1:
        writers.append(lambda row: quantity.bandwidth(row.bandwidth))
    return _grouped(found, writers)


def _grouped(
    found: Sequence[Combination], writers: Sequence[Callable[[Combination], str]]
) -> list[tuple[str, list[Combination]]]:
    views: dict[str, list[Combination]] = {}
    for row in found:
        views.setdefault(" · ".join(write(row) for write in writers), []).append(row)
    return list(views.items())


def _courses(rows: Sequence[Combination], several: bool) -> list[Course]:
    return [
        Course(_named(row, several), row.packet, colours.of_logical(row.logical))
        for row in rows
        if row.packet is not None
    ]


def _transports(found: Sequence[Combination]) -> list[str]:
    return list(dict.fromkeys(row.transport for row in found if row.transport is not None))


def _marks(rows: Sequence[Combination], transports: list[str], yardstick: Yardstick) -> Figure:
    lines = list(dict.fromkeys((row.fabric, row.routing, row.logical) for row in rows))
    place = {line: number for number, line in enumerate(lines)}
    at = {id(row): place[row.fabric, row.routing, row.logical] for row in rows}
    unit = {id(row): yardstick.seconds(row) or 1.0 for row in rows}
    routed = len({(row.fabric, row.routing) for row in rows}) > len({row.fabric for row in rows})
    labels = [
        f"{colours.name_of_logical(logical)} on {fabric}" + (f", {routing}" if routed else "")
        for fabric, routing, logical in lines
    ]

    def marks(level: str, name: str, colour: Colour, symbol: str = "circle", transport: str | None = None) -> Figure:
        known = [
            (row, seconds)
            for row in rows
            if (seconds := _time_at(row, level)) is not None and transport in (None, row.transport)
        ]
        hollow = level == "wire"
        return {
            "type": "scatter",
            "mode": "markers",
            "name": plain(name),
            "x": [float(f"{seconds / unit[id(row)]:.6g}") for row, seconds in known],
            "y": [at[id(row)] for row, _ in known],
            "customdata": [
                f"<b>{plain(row.words)}</b><br>{plain(name)}: {quantity.seconds(seconds)}" for row, seconds in known
            ],
            "hovertemplate": "%{customdata}<extra></extra>",
            "marker": {
                "symbol": symbol,
                "size": 9 if hollow else 8,
                "color": CLEAR if hollow else colour.light,
                "line": {"width": 1.5 if hollow else 1, "color": colour.light if hollow else colours.PAPER.light},
            },
            "cliponaxis": False,
        }

    traces = [marks("flow", "flow", colours.OTHER)]
    for name in transports:
        colour = TRANSPORTS.colours()[name]
        traces.append(marks("wire", f"headers of {name}", colour, transport=name))
        traces.append(marks("packet", f"packets, {name}", colour, transport=name))
    traces.append(marks("closed", "closed form", palette.INK, "diamond"))
    return {
        "data": [_spans(traces), *traces],
        "layout": layout(
            ROW_PIXELS * len(lines) + 90,
            xaxis=_ratio_axis(f"sync time over that of {yardstick.words}", [x for one in traces for x in one["x"]]),
            yaxis=axis(
                range=[len(lines) - 0.4, -0.6],
                tickvals=list(range(len(lines))),
                ticktext=[plain(label) for label in labels],
                tickfont={"size": 12, "color": palette.INK.light},
            ),
        ),
    }


def _time_at(row: Combination, level: str) -> float | None:
    """Rows know their closed form whether or not it was asked for as a level."""
    return row.closed_s if level == "closed" else row.time_by_level.get(level)


def _ratio_axis(title: str, values: Sequence[float]) -> Figure:
    low, high = min(values), max(values)
    if high > LOG_FROM * low:
        return value_axis(f"{title}, logarithmic", values, quantity.times, log=True, room=0.05)
    pad = 0.04 * (high - low) or 0.05
    return axis(title, range=[low - pad, high + pad], tickformat=".4~g", ticksuffix="×", nticks=10)


def _spans(traces: Sequence[Figure]) -> Figure:
    """A thin line from the least to the largest time of each combination, so that eyes find its marks."""
    ends: dict[int, list[float]] = {}
    for one in traces:
        for x, place in zip(one["x"], one["y"], strict=True):
            ends.setdefault(place, []).append(x)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "span",
        "x": [value for times in ends.values() for value in (min(times), max(times), None)],
        "y": [value for place in ends for value in (place, place, None)],
        "line": {"color": colours.GRID.light, "width": 2},
        "hoverinfo": "skip",
    }
