"""The page of a run: how long it took, what ran when, what held it up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.report import quantity
from ropewalk.report.drawing import draw
from ropewalk.report.link_classes import by_utilisation
from ropewalk.report.packet_charts import network_section
from ropewalk.report.page import render
from ropewalk.report.timeline import timeline
from ropewalk.report.trace_charts import throughput_chart, utilisation_chart
from ropewalk.sim import CriticalTask, Trace
from ropewalk.sim.level import LevelRun
from ropewalk.task import TaskKind

MOST_STEPS = 200


@dataclass(frozen=True)
class PathRow:
    """One line of the critical path as the page shows it."""

    label: str
    kind: str
    where: str
    start_s: float
    duration_s: float
    share: float
    bottleneck: str


def trace_page(trace: Trace, run: LevelRun | None = None) -> str:
    """One self-contained HTML page for a run; `run` tells the level of the network and what packets met there."""
    section = network_section(run)
    path = trace.critical_path()
    critical = np.array([step.task for step in path], np.int64)
    chart = timeline(trace, critical)
    charts = [found for found in (chart, utilisation_chart(trace), throughput_chart(trace), *section.charts) if found]
    fabric = trace.routes.fabric
    return render(
        "trace.html",
        title=f"Run: {quantity.seconds(trace.makespan)} on {fabric.name}",
        charts=charts,
        headline=headline(trace, path),
        lead=_lead(trace),
        facts=[*_facts(trace), *section.facts],
        network=section,
        fabric=fabric,
        drawing=draw(fabric, by_utilisation(trace.link_utilisation)) if fabric.links else None,
        path=[_row(step, trace.makespan) for step in path[:MOST_STEPS]],
        path_steps=len(path),
        shares=_shares(path, trace.makespan),
    )


def headline(trace: Trace, path: list[CriticalTask]) -> str:
    """The run in one sentence: how long, and what most of that time was spent on."""
    if not trace.graph.tasks:
        return "Nothing ran: the task graph is empty"
    taken = f"The run takes {quantity.seconds(trace.makespan)}"
    shares = _shares(path, trace.makespan)
    if not shares or trace.makespan <= 0:
        return taken
    kind, share = max(shares, key=lambda entry: entry[1])
    words = {"transfer": "waiting for transfers", "compute": "computing"}.get(kind, kind)
    return f"{taken}, {quantity.percent(share)} of it {words} on the critical path"


def _lead(trace: Trace) -> str:
    hottest = trace.hottest_links(1)
    if not hottest or hottest[0][1] <= 0:
        return "Nothing was sent over the network."
    name, use = hottest[0]
    return f"The busiest link is {name.replace('->', ' → ')}, with an average utilisation of {quantity.percent(use)}."


def _shares(path: list[CriticalTask], makespan: float) -> list[tuple[str, float]]:
    """Part of the run that the critical path spends on each kind of task, and on none."""
    seconds: dict[str, float] = {}
    for step in path:
        seconds[step.kind] = seconds.get(step.kind, 0.0) + step.end_s - step.start_s
    if makespan <= 0:
        return []
    return [(kind, total / makespan) for kind, total in sorted(seconds.items(), key=lambda entry: -entry[1])]


def _facts(trace: Trace) -> list[tuple[str, str]]:
    graph = trace.graph
    count = {kind: int((graph.kind == kind).sum()) for kind in TaskKind}
    busy = trace.busy_seconds()
    facts = [
        ("Makespan", quantity.seconds(trace.makespan)),
        ("Fabric", trace.routes.fabric.name),
        ("Compute tasks", quantity.count(count[TaskKind.COMPUTE])),
        ("Transfers", quantity.count(count[TaskKind.TRANSFER])),
        ("Markers", quantity.count(count[TaskKind.MARKER])),
        ("Compute time, all GPUs", quantity.seconds(busy["compute"])),
        ("Bytes requested", quantity.size(trace.asked_bytes)),
    ]
    if trace.asked_bytes:
        facts.append(("Tax: bytes on links per byte requested", f"{trace.tax:.3g}"))
    facts.append(("Simulated task classes", quantity.count(trace.classes)))
    return facts


def _row(step: CriticalTask, makespan: float) -> PathRow:
    duration = step.end_s - step.start_s
    return PathRow(
        step.label,
        step.kind,
        step.where.replace("->", " → "),
        step.start_s,
        duration,
        duration / makespan if makespan > 0 else 0.0,
        (step.bottleneck or "–").replace("->", " → "),
    )
