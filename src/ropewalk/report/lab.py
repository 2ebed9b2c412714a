"""The page of a run on a lab: what was predicted above what the clock saw, run by run, flow by flow, link by link."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.lab.answer import LabAnswer
from ropewalk.report import quantity
from ropewalk.report.chart import Chart
from ropewalk.report.drawing import draw
from ropewalk.report.lab_charts import flows_chart, runs_chart
from ropewalk.report.link_classes import by_utilisation
from ropewalk.report.page import render
from ropewalk.report.timeline import time_unit, timeline
from ropewalk.sim import Trace

MOST_LISTED = 1000


def lab_page(answer: LabAnswer) -> str:
    """One self-contained HTML page."""
    rows = answer.links()
    return render(
        "lab.html",
        title=f"Lab: {answer.headline()}",
        charts=[runs_chart(answer), flows_chart(answer), *_timelines(answer)],
        headline=answer.headline(),
        notes=[f"{note[0].upper()}{note[1:]}." for note in answer.notes()],
        facts=_facts(answer),
        drawing=draw(answer.fabric, by_utilisation(_load(answer))),
        switches=answer.fabric.switches,
        rows=[(row, row.sent_bytes / row.predicted_bytes - 1) for row in rows[:MOST_LISTED]],
        left_out=max(0, len(rows) - MOST_LISTED),
        quantity=quantity,
    )


def seen(answer: LabAnswer) -> Trace:
    """The typical run as a trace: the same tasks at the times that the clock saw."""
    run = answer.typical
    return replace(answer.predicted, start=np.array(run.start), end=np.array(run.end))


def _timelines(answer: LabAnswer) -> list[Chart]:
    """The same transfers twice: as predicted and as measured, over the same span of time."""
    nothing = np.zeros(0, np.int64)
    drawn = (("predicted", answer.predicted), ("measured", seen(answer)))
    longest = max(trace.makespan for _, trace in drawn)
    charts = []
    for key, trace in drawn:
        chart = timeline(trace, nothing)
        if chart is not None:
            chart.views[0].figure["layout"]["xaxis"]["range"] = [0, longest / time_unit(trace.makespan)[0]]
            charts.append(replace(chart, key=key, legend=()))
    return charts


def _load(answer: LabAnswer) -> NDArray[np.float64]:
    """The part of its speed that every link carried in a run."""
    return np.asarray(np.minimum(answer.sent_bytes / (answer.wire_speed * answer.measured_s), 1.0), np.float64)


def _facts(answer: LabAnswer) -> list[tuple[str, str]]:
    return [
        ("Predicted", quantity.seconds(answer.predicted_s)),
        ("Measured", quantity.seconds(answer.measured_s)),
        ("Difference", quantity.percent(answer.error, signed=True)),
        ("Fabric", answer.fabric.name),
        ("Routing", answer.routing),
        ("A second of the lab is on the fabric", quantity.seconds(answer.real_seconds)),
        ("Undisturbed runs", f"{len(answer.trusted)} of {len(answer.runs)}"),
    ]
