"""The page of a study of collectives: what each schedule gets of the optimum, fabric by fabric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ropewalk import palette
from ropewalk.collectives.optimum import reduce_scatter_then_all_gather
from ropewalk.report import colours, quantity
from ropewalk.report.axis import CLEAR, Figure, axis, layout
from ropewalk.report.chart import Chart, Swatch, View, plain
from ropewalk.report.page import render
from ropewalk.synthesis import CollectiveAnswer

Cases = Mapping[str, Sequence[CollectiveAnswer]]
"""Answers by what the fabric is called; the first of each brings the alternatives, others their own schedule alone."""
ROW_PIXELS = 50
DOT_APART = 0.08
"""Of rows."""
IN_HALVES = "optimal reduce-scatter, then all-gather"


def collective_study_page(title: str, cases: Cases) -> str:
    """One self-contained HTML page: a row for each fabric, a mark for each schedule."""
    table = {label: reached(answers) for label, answers in cases.items()}
    names = list(dict.fromkeys(name for row in table.values() for name in row))
    return render(
        "collective_study.html",
        title=title,
        charts=[_chart(cases, table, names)],
        names=names,
        name=colours.name_of_logical,
        table=table,
        optimum={label: float(answers[0].optimum.algbw) for label, answers in cases.items()},
        quantity=quantity,
    )


def reached(answers: Sequence[CollectiveAnswer]) -> dict[str, float]:
    """Bytes/s of every schedule, those that were made for the fabric first."""
    found = {answer.made.name: float(answer.made.algbw) for answer in answers if answer.made is not None}
    if answers[0].question.collective == "allreduce":
        found[IN_HALVES] = float(reduce_scatter_then_all_gather(answers[0].network).algbw)
    return found | {other.name: other.algbw for other in answers[0].alternatives if other.algbw is not None}


def _chart(cases: Cases, table: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> Chart:
    best = {label: float(answers[0].optimum.algbw) for label, answers in cases.items()}
    labels = list(cases)
    rows = [(label, best[label]) for label in labels]
    dots = [name for name in names if _shape(name) == "dot"]
    # Dots of different schedules stand a little above each other, so that equal ones can be told apart.
    below = {name: (number - (len(dots) - 1) / 2) * DOT_APART for number, name in enumerate(dots)}
    traces = [
        _marks(name, below.get(name, 0.0), [(label, table[label].get(name), most) for label, most in rows])
        for name in reversed(names)
    ]
    figure: Figure = {
        "data": traces,
        "layout": layout(
            ROW_PIXELS * len(labels) + 70,
            xaxis=axis("share of the optimum", range=[0, 104], tickvals=list(range(0, 101, 20)),
                       ticktext=[f"{part}\u00a0%" for part in range(0, 101, 20)]),
            yaxis=axis(
                range=[len(labels) - 0.45, -0.55],
                tickvals=list(range(len(labels))),
                ticktext=[f"{plain(label)}<br>optimum {quantity.gigabytes(best[label])}" for label in labels],
                tickfont={"size": 13, "color": palette.INK.light},
            ),
        ),
    }  # fmt: skip
    legend = tuple(Swatch(colours.name_of_logical(name), _colour(name), _shape(name), name) for name in names)
    return Chart(
        "study", f"Share of the optimum that {len(names)} schedules reach on {len(labels)} "
            "fabrics", (View("", figure),),
        legend, caption="Large buffers, simulated without start-up latency; trees by their exact rates.",
    )  # fmt: skip


def _marks(name: str, below: float, points: Sequence[tuple[str, float | None, float]]) -> Figure:
    """The marks of one schedule: (fabric, bytes/s, optimum) from top to bottom."""
    drawn = [(at, label, value, best) for at, (label, value, best) in enumerate(points) if value is not None]
    shape, colour = _shape(name), _colour(name).light
    words = plain(colours.name_of_logical(name))
    symbol, pixels, fill, line, width = {
        "diamond": ("diamond", 13.0, colour, colours.PAPER.light, 1),
        "hollow": ("diamond", 18.0, CLEAR, colour, 2),
        "tick": ("line-ns", 18.0, colour, colour, 2),
        "dot": ("circle", 11.0, colour, colours.PAPER.light, 1),
    }[shape]
    return {
        "type": "scatter", "mode": "markers", "name": words, "legendgroup": name, "cliponaxis": False,
        "x": [100 * value / best for _, _, value, best in drawn], "y": [at + below for at, *_ in drawn],
        "marker": {"symbol": symbol, "size": pixels, "color": fill, "line": {"width": width, "color": line}},
        "customdata": [
            f"<b>{words}</b> on {plain(label)}<br>{quantity.gigabytes(value)}, "
            f"{quantity.percent(value / best)} of the optimum"
            for _, label, value, best in drawn
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _colour(name: str) -> palette.Colour:
    if name == IN_HALVES:
        return colours.MUTED
    return colours.ACCENT if name == "topoadopt" else colours.of_logical(name)


def _shape(name: str) -> str:
    return {"forest": "diamond", "topoadopt": "hollow", IN_HALVES: "tick"}.get(name, "dot")
