"""Ratios of a testbed as bars, as published, predicted and measured; and the error of every prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ropewalk import palette
from ropewalk.lab.suite.answer import QUIET_MEDIAN, QUIET_WORST, PaperRun, SuiteAnswer
from ropewalk.lab.suite.compared import Compared
from ropewalk.palette import Colour
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, layout, value_axis
from ropewalk.report.chart import Chart, Swatch, View, plain

BAR_PIXELS, GAP = 17, 1.3
"""Height of a bar, and space between two comparisons in bars."""
LABEL_ROOM = 0.14
MARGIN = {"l": 8, "r": 32, "t": 12, "b": 48}
"""The number behind the longest bar stands in it where the page is narrow."""
PUBLISHED, PREDICTED, MEASURED = palette.GREY, palette.SKY, palette.BLUE


def ratios_chart(one: PaperRun) -> Chart | None:
    """Three bars for each comparison; nothing where nothing is compared."""
    rows = one.compared
    if not rows:
        return None
    place = {number: number * (3 + GAP) for number in range(len(rows))}
    every = [value for row in rows for value in (row.predicted, row.measured, row.comparison.claim.ratio or 0.0)]
    series: list[tuple[str, Colour, Callable[[Compared], float | None]]] = [
        ("published", PUBLISHED, lambda row: row.comparison.claim.ratio),
        ("predicted", PREDICTED, lambda row: row.predicted),
        ("measured", MEASURED, lambda row: row.measured),
    ]
    depth = place[len(rows) - 1] + 2.7
    figure: Figure = {
        "data": [
            trace
            for at, (name, colour, value) in enumerate(series)
            for trace in _bars(name, colour, [(place[number] + at, row, value(row)) for number, row in enumerate(rows)])
        ],
        "layout": layout(
            round(depth * BAR_PIXELS) + 90,
            bargap=0,
            barmode="overlay",
            margin=MARGIN,
            xaxis=value_axis("times as long", every, _short, log=False, room=LABEL_ROOM),
            yaxis=axis(
                range=[depth, -0.8],
                showgrid=False,
                tickvals=[at + 1 for at in place.values()],
                ticktext=[_label(row) for row in rows],
                tickfont={"size": 13, "color": palette.INK.light},
            ),
            shapes=[_line(1.0, depth)],
        ),
    }
    legend = tuple(Swatch(name, colour, group=name) for name, colour, _ in series)
    return Chart(
        f"ratios-{one.testbed.name}",
        f"{len(rows)} time ratios as published, predicted and measured",
        (View("", figure),),
        legend,
    )


def _label(row: Compared) -> str:
    return f"{plain(row.comparison.slow)}<br>over {plain(row.comparison.fast)}"


def _short(value: float) -> str:
    return f"{value:g}"


def _line(at: float, depth: float) -> Figure:
    """Where both take as long."""
    return {
        "type": "line", "x0": at, "x1": at, "y0": depth, "y1": -0.8,
        "line": {"color": colours.MUTED.light, "width": 1, "dash": "dot"},
    }  # fmt: skip


def _bars(name: str, colour: Colour, points: Sequence[tuple[float, Compared, float | None]]) -> list[Figure]:
    """Bars of one kind, with their numbers behind them."""
    drawn = [(at, row, value) for at, row, value in points if value is not None]
    x, y = [value for _, _, value in drawn], [at for at, _, _ in drawn]
    bars: Figure = {
        "type": "bar", "orientation": "h", "name": name, "legendgroup": name, "x": x, "y": y, "width": 0.9,
        "marker": {"color": colour.light, "cornerradius": 2},
        "customdata": [_hover(row) for _, row, _ in drawn],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip
    figures: Figure = {
        "type": "scatter", "mode": "text", "name": name, "legendgroup": name, "x": x, "y": y,
        "text": [f"\u2002{value:.2f}" for value in x], "textposition": "middle right",
        "textfont": {"size": 11, "color": colours.MUTED.light}, "hoverinfo": "skip", "cliponaxis": False,
    }  # fmt: skip
    return [bars, figures]


def _hover(row: Compared) -> str:
    claim = row.comparison.claim
    return (
        f"<b>{plain(claim.said)}</b><br>{plain(claim.source)}, {claim.sure.value}<br>predicted {row.predicted:.3f}, "
        f"measured {row.measured:.3f}: {plain(row.said)}"
    )


def errors_chart(found: SuiteAnswer) -> Chart:
    """A bar for each run: how far the measurement is from the prediction."""
    runs = [(testbed.testbed.name, run) for testbed in found.testbeds for run in testbed.runs]
    values = [100 * run.error for _, run in runs]
    most = max([*map(abs, values), 100 * QUIET_WORST]) * 1.15
    colour = [
        colours.OTHER if run.disturbed else palette.AMBER if run.case.setup.hashed else MEASURED for _, run in runs
    ]
    bars: Figure = {
        "type": "bar", "orientation": "h", "x": values, "y": list(range(len(runs))), "width": 0.8,
        "marker": {"color": [one.light for one in colour], "cornerradius": 2},
        "customdata": [
            f"{plain(name)}: {plain(run.case.name)}<br>predicted {quantity.seconds(run.predicted_s)}, measured "
            f"{quantity.seconds(run.measured_s)} ({quantity.percent(run.error, signed=True)}){plain(run.excuse)}"
            for name, run in runs
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip
    depth = len(runs) - 0.4
    lines = [_line(100 * sign * bound, depth) for bound in (QUIET_MEDIAN, QUIET_WORST) for sign in (-1, 1)]
    figure: Figure = {
        "data": [bars],
        "layout": layout(
            18 * len(runs) + 90,
            xaxis=axis("measured against predicted, %", range=[-most, most]),
            yaxis=axis(
                range=[depth, -0.8],
                showgrid=False,
                tickvals=list(range(len(runs))),
                ticktext=[plain(f"{name}: {run.case.name}") for name, run in runs],
            ),
            shapes=lines,
        ),
    }
    legend = (
        Swatch("no hashing", MEASURED),
        Swatch("a hash decides which flows collide", palette.AMBER),
        Swatch("disturbed by the machine", colours.OTHER),
    )
    caption = "Dotted lines are the limits for patterns without hashing: 3 % for the median, 8 % for each."
    return Chart("errors", f"Errors of {len(runs)} predictions", (View("", figure),), legend, caption=caption)
