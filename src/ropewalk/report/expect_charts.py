"""Bus bandwidth by size: what is expected, and how measurements compare."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk import palette
from ropewalk.expect.answer import ExpectAnswer, ExpectRow
from ropewalk.expect.diagnosis import Diagnosis
from ropewalk.expect.series import JudgedMeasurement
from ropewalk.expect.words import who_in_words
from ropewalk.report import quantity
from ropewalk.report.axis import Figure, given_axis, layout, value_axis
from ropewalk.report.chart import Chart, Swatch, View, plain

STATES = {"healthy": palette.GREEN, "slow": palette.RED, "fast": palette.BLUE, "wrong": palette.PURPLE}
RARE = "wrong"
"""Left out of the legend where nothing came out wrong."""
EVEN = 1.0
MOST_TICKS = 10
"""Sizes that are written below the axis."""


def expected_chart(answer: ExpectAnswer) -> Chart:
    """A line for each benchmark, or for several with equal values, with the interval of healthy clusters around it."""
    names = answer.question.benchmarks
    colour = dict(zip(names, palette.SERIES * 2, strict=False))
    sizes = [float(size) for size in answer.question.sizes]
    traces, most = [], [0.0]
    equal: dict[tuple[float, ...], list[str]] = {}
    for name in names:
        equal.setdefault(tuple(row.busbw for row in answer.rows_of(name)), []).append(name)
    for alike in equal.values():
        rows, words = answer.rows_of(alike[0]), ", ".join(alike)
        traces += [_band(words, rows, colour[alike[0]]), _line(words, rows, colour[alike[0]])]
        most += [row.busbw_at(row.healthy.low) for row in rows]
    figure: Figure = {
        "data": traces,
        "layout": layout(
            460,
            xaxis=given_axis("size", sizes, quantity.buffer) | _ticks(answer.question.sizes),
            yaxis=value_axis("bus bandwidth", most, quantity.gigabytes, log=False),
        ),
    }
    legend = tuple(Swatch(", ".join(alike), colour[alike[0]], "line", ", ".join(alike)) for alike in equal.values())
    return Chart("expected", f"Bus bandwidth of {len(names)} collectives against size", (View("", figure),), legend,
                 caption="Lines are expected values, bands are the range of healthy clusters.")  # fmt: skip


def _ticks(sizes: Sequence[int]) -> Figure:
    """At most ten of the sizes, which are powers of two as nccl-tests takes them."""
    chosen = sizes[:: -(-len(sizes) // MOST_TICKS)]
    return {"tickvals": [float(size) for size in chosen], "ticktext": [quantity.buffer(size) for size in chosen]}


def _line(name: str, rows: list[ExpectRow], colour: palette.Colour) -> Figure:
    return {
        "type": "scatter", "mode": "lines+markers", "name": name, "legendgroup": name,
        "x": [row.size_bytes for row in rows], "y": [row.busbw for row in rows],
        "line": {"color": colour.light, "width": 2}, "marker": {"size": 5, "color": colour.light},
        "customdata": [
            f"<b>{name}</b> {quantity.buffer(row.size_bytes)}<br>{quantity.gigabytes(row.busbw)}, "
            f"{quantity.seconds(row.seconds)}<br>{plain(row.runs)}"
            for row in rows
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _band(name: str, rows: list[ExpectRow], colour: palette.Colour) -> Figure:
    there, back = rows, rows[::-1]
    return {
        "type": "scatter", "mode": "lines", "name": f"{name}, healthy", "legendgroup": name, "hoverinfo": "skip",
        "x": [row.size_bytes for row in (*there, *back)],
        "y": [*(row.busbw_at(row.healthy.low) for row in there), *(row.busbw_at(row.healthy.high) for row in back)],
        "line": {"width": 0}, "fill": "toself", "fillcolor": colour.light, "opacity": 0.12,
    }  # fmt: skip


def measured_chart(found: Diagnosis, names: tuple[str, ...]) -> Chart:
    """A point for each measurement: its bandwidth as a part of the expected one."""
    rows = sorted(((one, row) for one in found.series for row in one.rows), key=lambda pair: -pair[1].ratio)
    sizes = sorted({float(row.measured.size_bytes) for _, row in rows})
    # Measurements of one size stand side by side, the slowest first.
    place = {
        id(row): number + 1 if len(sizes) == 1 else row.measured.size_bytes for number, (_, row) in enumerate(rows)
    }
    traces = []
    states = {
        state: colour for state, colour in STATES.items() if state != RARE or any(one.wrong for one in found.series)
    }
    for state, colour in states.items():
        some = [(one, row) for one, row in rows if row.state == state]
        traces.append({
            "type": "scatter", "mode": "markers", "name": state, "legendgroup": state, "cliponaxis": False,
            "x": [place[id(row)] for _, row in some], "y": [EVEN / row.ratio for _, row in some],
            "marker": {"color": colour.light, "size": 8},
            "customdata": [f"{_hover(row)}<br>{plain(who_in_words(one, names))}" for one, row in some],
            "hovertemplate": "%{customdata}<extra></extra>",
        })  # fmt: skip
    along = given_axis("size", sizes, quantity.buffer)
    if len(sizes) == 1:
        along = value_axis("measurements, slowest first", [len(rows) + 1.0], lambda number: f"{number:.0f}", log=False)
    parts = [EVEN, *(EVEN / row.ratio for _, row in rows)]
    figure: Figure = {
        "data": traces,
        "layout": layout(
            400,
            xaxis=along,
            yaxis=value_axis("bandwidth relative to expected", parts, quantity.percent, log=False),
        ),
    }
    legend = tuple(Swatch(state, colour, "dot", state) for state, colour in states.items())
    return Chart("measured", f"Bandwidth of {len(rows)} measurements relative to expected", (View("", figure),),
                 legend)  # fmt: skip


def _hover(row: JudgedMeasurement) -> str:
    low, high = row.healthy_busbw
    return (
        f"<b>{row.measured.benchmark}</b> {quantity.buffer(row.measured.size_bytes)}<br>"
        f"{quantity.gigabytes(row.busbw)}, healthy {quantity.gigabytes(low)} to {quantity.gigabytes(high)}"
    )
