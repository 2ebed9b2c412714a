"""The page of a run on a lab: where prediction and measurement part, link by link, flow by flow, run by run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.lab.answer import LabAnswer
from ropewalk.lab.parting import behind
from ropewalk.report import quantity
from ropewalk.report.chart import Chart
from ropewalk.report.colours import COMPUTE_PHASES
from ropewalk.report.drawing import Drawing, draw
from ropewalk.report.lab_charts import flows_chart, later, link_chart, runs_chart
from ropewalk.report.link_classes import by_utilisation
from ropewalk.report.page import render
from ropewalk.report.timeline import time_unit, timeline
from ropewalk.sim import Trace

MOST_LISTED = 1000


@dataclass(frozen=True)
class FlowRow:
    """One transfer as the page lists it."""

    src: str
    dst: str
    size_bytes: float
    predicted_s: float
    measured_s: float

    @property
    def later_s(self) -> float:
        return self.measured_s - self.predicted_s


@dataclass(frozen=True)
class LabLinkRow:
    """One link as the page lists it."""

    name: str
    predicted_bytes: float
    sent_bytes: float
    predicted_load: float
    measured_load: float
    behind_s: float
    at_s: float

    @property
    def difference(self) -> float:
        return self.sent_bytes / self.predicted_bytes - 1


def lab_page(answer: LabAnswer) -> str:
    """One self-contained HTML page."""
    links, flows = _links(answer), _flows(answer)
    return render(
        "lab.html",
        title=f"Lab: {answer.headline()}",
        charts=[runs_chart(answer), flows_chart(answer), link_chart(answer), *_timelines(answer)],
        headline=answer.headline(),
        notes=[_capital(note) for note in answer.notes()],
        parting=[_capital(sentence) for sentence in answer.parting.said()],
        facts=_facts(answer),
        drawings=_drawings(answer),
        switches=answer.fabric.switches,
        links=links[:MOST_LISTED],
        links_left_out=max(0, len(links) - MOST_LISTED),
        flows=flows[:MOST_LISTED],
        flows_left_out=max(0, len(flows) - MOST_LISTED),
        later=later,
        quantity=quantity,
    )


def seen(answer: LabAnswer) -> Trace:
    """The typical run as a trace: the same tasks at the times that the clock saw."""
    run = answer.typical
    return replace(answer.predicted, start=np.array(run.start), end=np.array(run.end))


def _timelines(answer: LabAnswer) -> list[Chart]:
    """The same transfers as every level predicts them, and as measured, over the same span of time."""
    traces = [replace(answer.predicted, start=one.start, end=one.end) for one in answer.levels]
    longest = max(trace.makespan for trace in (*traces, seen(answer)))
    charts = [_timeline(trace, longest) for trace in (*traces, seen(answer))]
    if None in charts:
        return []
    *predicted, measured = (chart for chart in charts if chart is not None)
    views = tuple(
        replace(chart.views[0], label=f"{level.level} level")
        for chart, level in zip(predicted, answer.levels, strict=True)
    )
    return [
        replace(predicted[0], key="predicted", views=views, choose="Level"),
        replace(measured, key="measured"),
    ]


def _timeline(trace: Trace, longest: float) -> Chart | None:
    chart = timeline(trace, np.zeros(0, np.int64), COMPUTE_PHASES)
    if chart is None:
        return None
    chart.views[0].figure["layout"]["xaxis"]["range"] = [0, longest / time_unit(trace.makespan)[0]]
    return replace(chart, legend=tuple(entry for entry in chart.legend if entry.group is not None))


def _drawings(answer: LabAnswer) -> list[tuple[str, Drawing]]:
    """The fabric twice, with the predicted and the measured load of every link."""
    predicted, measured = _loads(answer)
    return [
        (name, draw(answer.fabric, by_utilisation(np.minimum(load, 1.0))))
        for name, load in (("Predicted", predicted), ("Measured", measured))
    ]


def _loads(answer: LabAnswer) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The part of its speed that every link carries in a run: as predicted, and as measured."""
    return (
        answer.predicted_bytes / (answer.wire_speed * answer.predicted_s),
        answer.sent_bytes / (answer.wire_speed * answer.measured_s),
    )


def _flows(answer: LabAnswer) -> list[FlowRow]:
    """Every transfer, the latest first."""
    level = answer.levels[0].level
    rows = [
        FlowRow(one.src, one.dst, one.size_bytes, one.predicted[level].end_s, one.measured.end_s)
        for one in answer.flows()
    ]
    return sorted(rows, key=lambda row: -row.later_s)


def _links(answer: LabAnswer) -> list[LabLinkRow]:
    """Every link that was to carry something, the fullest first."""
    at, late = behind(answer)
    worst = np.abs(late).argmax(axis=0)
    predicted, measured = _loads(answer)
    return [
        LabLinkRow(
            row.name, row.predicted_bytes, row.sent_bytes, float(predicted[row.link]), float(measured[row.link]),
            float(late[worst[row.link], row.link]), float(at[worst[row.link]]),
        )
        for row in answer.links()
    ]  # fmt: skip


def _facts(answer: LabAnswer) -> list[tuple[str, str]]:
    return [
        ("Predicted", quantity.seconds(answer.predicted_s)),
        ("Measured", quantity.seconds(answer.measured_s)),
        ("Difference", quantity.percent(answer.error, signed=True)),
        *((f"Predicted, {one.level} level", quantity.seconds(one.seconds)) for one in answer.levels[1:]),
        ("Fabric", answer.fabric.name),
        ("Routing", answer.routing),
        ("Fabric time per lab second", quantity.seconds(answer.real_seconds)),
        ("Undisturbed runs", f"{len(answer.trusted)} of {len(answer.runs)}"),
        ("Packets dropped", quantity.count(answer.dropped)),
        ("Retransmitted segments", quantity.count(answer.retransmitted)),
    ]


def _capital(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}."
