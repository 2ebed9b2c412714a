"""Runs of a lab beside the prediction, and the end of every transfer as predicted and as measured."""

from __future__ import annotations

import numpy as np

from ropewalk import palette
from ropewalk.lab.answer import LabAnswer
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, layout, value_axis
from ropewalk.report.chart import Chart, Swatch, View, plain
from ropewalk.task import Kind

MOST_FLOWS = 2_000


def runs_chart(answer: LabAnswer) -> Chart:
    """A bar for each run, the prediction as a line across them."""
    seconds = [run.seconds for run in answer.runs]
    reasons = [run.machine.disturbed() for run in answer.runs]
    numbers = list(range(1, len(seconds) + 1))
    bars: Figure = {
        "type": "bar", "x": numbers, "y": seconds, "width": 0.6,
        "marker": {"color": [colours.OTHER.light if why else colours.ACCENT.light for why in reasons]},
        "customdata": [f"run {at}: {quantity.seconds(one)}{f'<br>{why}' if why else ''}"
                       for at, one, why in zip(numbers, seconds, reasons, strict=True)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip
    line: Figure = {
        "type": "scatter", "mode": "lines", "x": [0.4, len(seconds) + 0.6], "y": [answer.predicted_s] * 2,
        "line": {"color": palette.RED.light, "width": 2},
        "hovertemplate": f"predicted {quantity.seconds(answer.predicted_s)}<extra></extra>",
    }  # fmt: skip
    figure: Figure = {
        "data": [bars, line],
        "layout": layout(
            280,
            xaxis=axis("run", range=[0.4, len(seconds) + 0.6], tickvals=numbers, showgrid=False),
            yaxis=value_axis("time", [*seconds, answer.predicted_s], quantity.seconds, log=False, room=0.1),
        ),
    }
    legend = (
        Swatch("measured", colours.ACCENT),
        Swatch("disturbed by the machine", colours.OTHER),
        Swatch("predicted", palette.RED, "line"),
    )
    return Chart("runs", f"Times of {len(seconds)} runs and the predicted time", (View("", figure),), legend)


def flows_chart(answer: LabAnswer) -> Chart:
    """A point for each transfer: when it ended, as measured against as predicted."""
    graph, fabric = answer.predicted.graph, answer.fabric
    transfers = np.flatnonzero(graph.kind == Kind.TRANSFER)
    step = -(-len(transfers) // MOST_FLOWS) or 1
    shown = transfers[::step]
    expected, ended = answer.predicted.end[shown], np.array(answer.typical.end)[shown]
    ends = zip(graph.place[shown].tolist(), graph.peer[shown].tolist(), expected.tolist(), ended.tolist(), strict=True)
    points: Figure = {
        "type": "scatter", "mode": "markers", "x": expected.tolist(), "y": ended.tolist(),
        "marker": {"color": colours.ACCENT.light, "size": 5, "opacity": 0.6},
        "customdata": [
            f"{plain(fabric.node_names[src])} to {plain(fabric.node_names[dst])}<br>predicted "
            f"{quantity.seconds(before)}, measured {quantity.seconds(after)}"
            for src, dst, before, after in ends
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip
    most = max(answer.predicted_s, answer.typical.seconds)
    even: Figure = {
        "type": "scatter", "mode": "lines", "x": [0, most], "y": [0, most], "hoverinfo": "skip",
        "line": {"color": colours.MUTED.light, "width": 1, "dash": "dash"},
    }  # fmt: skip
    figure: Figure = {
        "data": [even, points],
        "layout": layout(
            420,
            xaxis=value_axis("predicted end", [most], quantity.seconds, log=False),
            yaxis=value_axis("measured end", [most], quantity.seconds, log=False),
        ),
    }
    caption = "" if step == 1 else f"One of {step} transfers is drawn."
    return Chart(
        "flows", f"Ends of {len(shown)} transfers, measured against predicted", (View("", figure),), caption=caption
    )
