"""Runs of a lab beside the prediction, and the end of every transfer as predicted and as measured."""

from __future__ import annotations

from ropewalk import palette
from ropewalk.lab.answer import LabAnswer
from ropewalk.lab.result import FlowTimes
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, layout, value_axis
from ropewalk.report.chart import Chart, Swatch, View, plain
from ropewalk.report.timeline import time_unit

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


def later(seconds: float) -> str:
    """A difference between two times: +12 ms, −3 ms."""
    return f"{'−' if seconds < 0 else '+'}{quantity.seconds(abs(seconds))}" if seconds else quantity.seconds(0.0)


def flows_chart(answer: LabAnswer) -> Chart:
    """How much later than predicted every transfer ended, sorted; and the two ends against each other."""
    flows = answer.flows()
    level = answer.levels[0].level
    flows.sort(key=lambda one: one.measured.end_s - one.predicted[level].end_s)
    step = -(-len(flows) // MOST_FLOWS) or 1
    ends = [(one, one.predicted[level].end_s, one.measured.end_s) for one in flows[::step]]
    said = [
        f"{plain(one.src)} to {plain(one.dst)}, {quantity.size(one.size_bytes)}<br>"
        f"predicted {quantity.seconds(expected)}, measured {quantity.seconds(ended)} ({later(ended - expected)})"
        for one, expected, ended in ends
    ]
    caption = "" if step == 1 else f"One in {step} transfers is drawn."
    return Chart(
        "flows",
        f"Ends of {len(ends)} transfers, measured against predicted",
        (
            View("difference, sorted", _sorted(ends, said)),
            View("measured against predicted", _against(answer, ends, said)),
        ),
        choose="Show",
        caption=caption,
    )


def _sorted(ends: list[tuple[FlowTimes, float, float]], said: list[str]) -> Figure:
    """A point for each transfer, the least delayed first."""
    differences = [ended - expected for _, expected, ended in ends]
    points: Figure = {
        "type": "scatter", "mode": "markers", "x": list(range(1, len(ends) + 1)),
        "marker": {"color": colours.ACCENT.light, "size": 5, "opacity": 0.7}, "cliponaxis": False,
        "customdata": said, "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip
    most = max((abs(one) for one in differences), default=0.0) or 1e-3
    scale, unit = time_unit(most)
    points["y"] = [one / scale for one in differences]
    return {
        "data": [_even([0.5, len(ends) + 0.5], [0.0, 0.0]), points],
        "layout": layout(
            340,
            xaxis=axis("transfers, least delayed first", range=[0.5, len(ends) + 0.5], showgrid=False, nticks=8),
            yaxis=axis(f"later than predicted, {unit}", range=[-1.1 * most / scale, 1.1 * most / scale], nticks=7),
        ),
    }


def _against(answer: LabAnswer, ends: list[tuple[FlowTimes, float, float]], said: list[str]) -> Figure:
    """A point for each transfer: above the dashed line it ended later than predicted."""
    points: Figure = {
        "type": "scatter", "mode": "markers", "x": [one for _, one, _ in ends], "y": [one for _, _, one in ends],
        "marker": {"color": colours.ACCENT.light, "size": 5, "opacity": 0.6},
        "customdata": said, "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip
    most = max(answer.predicted_s, answer.typical.seconds)
    return {
        "data": [_even([0, most], [0, most]), points],
        "layout": layout(
            340,
            xaxis=value_axis("predicted end", [most], quantity.seconds, log=False),
            yaxis=value_axis("measured end", [most], quantity.seconds, log=False),
        ),
    }


def _even(x: list[float], y: list[float]) -> Figure:
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip",
        "line": {"color": colours.MUTED.light, "width": 1, "dash": "dash"},
    }  # fmt: skip


def link_chart(answer: LabAnswer) -> Chart:
    """What the link on which they part had sent by when, as every level predicts it and as the kernel counted it."""
    name = answer.parting.link or answer.parting.farthest
    link = next(row.link for row in answer.links() if row.name == name)
    curves = [
        (f"predicted, {one.level} level", colour, one.curves)
        for one, colour in zip(answer.levels, (palette.RED, palette.AMBER, palette.GREEN), strict=False)
    ]
    curves.append(("measured", colours.ACCENT, answer.typical_curves))
    until = max(answer.predicted_s, answer.typical.seconds)
    traces, most = [], 0.0
    for label, colour, one in curves:
        sent = one.of_link(link)
        most = max(most, *sent)
        traces.append({
            "type": "scatter", "mode": "lines", "name": label, "legendgroup": label,
            "x": one.at_s.tolist(), "y": sent, "line": {"color": colour.light, "width": 2},
            "customdata": [f"{label}<br>{quantity.size(size) if size else '0 B'} by {quantity.seconds(at)}"
                           for size, at in zip(sent, one.at_s.tolist(), strict=True)],
            "hovertemplate": "%{customdata}<extra></extra>",
        })  # fmt: skip
    figure: Figure = {
        "data": traces,
        "layout": layout(
            300,
            xaxis=value_axis("time", [until], quantity.seconds, log=False),
            yaxis=value_axis("sent", [most], quantity.size, log=False),
        ),
    }
    legend = tuple(Swatch(label, colour, "line", label) for label, colour, _ in curves)
    return Chart("link", f"Bytes sent by {name} over time, predicted and measured", (View("", figure),), legend,
                 caption=f"Bytes sent by {name} over time; the kernel also counts acknowledgements.")  # fmt: skip
