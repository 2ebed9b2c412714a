"""Jobs of one moment in charts: what others cost them, who computes and who sends when, and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from ropewalk import palette
from ropewalk.palette import Colour
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, layout, value_axis
from ropewalk.report.chart import Chart, Swatch, View, clipped, plain
from ropewalk.report.cluster_words import duration
from ropewalk.report.timeline import time_unit
from ropewalk.task import TaskKind
from ropewalk.tenancy.snapshot import JobSeen, Snapshot

ALONE, ADDED, MODEL = palette.BLUE, palette.RED, palette.INK
SENDS, COMPUTES = palette.BLUE, colours.GRID
MOST_ROWS = 40
"""Jobs that are drawn: those that are slowed down most."""
MOST_LEAFS = 64
SEEN = 1 / 2000
"""Part of the time that is drawn below which a gap is not seen."""
ROW_PIXELS, EDGE_PIXELS = 26, 80


def by_slowdown(found: Snapshot) -> list[int]:
    """Numbers of jobs, those first that others slow down most."""
    return sorted(range(len(found.jobs)), key=lambda job: (-round(found.jobs[job].slowdown, 9), job))


def slowdown_chart(found: Snapshot) -> Chart:
    """What others add to the iterations of every job, as simulated and as the replay assumes."""
    jobs = [found.jobs[job] for job in by_slowdown(found)[:MOST_ROWS]]
    return Chart(
        "slowdown",
        "Time that others add to an iteration of every job, simulated and assumed by the replay",
        (View("share of the time alone", _added_parts(jobs)), View("seconds", _seconds(jobs))),
        (
            Swatch("alone", ALONE, group="alone"),
            Swatch("added by other jobs", ADDED, group="added"),
            Swatch("the replay assumes", MODEL, "diamond", group="model"),
        ),
        choose="Show",
        caption="Means over the iterations that ran while all jobs did. The replay averages over all offsets between "
        "iterations; a snapshot has one offset.",
    )


def _added_parts(jobs: Sequence[JobSeen]) -> Figure:
    added = [max(job.slowdown - 1, 0.0) for job in jobs]
    model = [job.assumed_slowdown - 1 for job in jobs]
    return {
        "data": [
            _bars("added", jobs, added, ADDED, [quantity.percent(value) for value in added]),
            _diamonds(jobs, model, [quantity.percent(value) for value in model]),
        ],
        "layout": _layout(jobs, value_axis(
            "added to an iteration", [*added, *model, 0.05], lambda part: f"{100 * part:.3g} %", log=False
        )),
    }  # fmt: skip


def _seconds(jobs: Sequence[JobSeen]) -> Figure:
    alone = [job.alone_s for job in jobs]
    added = [max(job.iteration_s - job.alone_s, 0.0) for job in jobs]
    model = [job.alone_s * job.assumed_slowdown for job in jobs]
    longest = [*model, *(job.iteration_s for job in jobs)]
    return {
        "data": [
            _bars("alone", jobs, alone, ALONE, [duration(value) for value in alone]),
            _bars("added", jobs, added, ADDED, [duration(value) for value in added]),
            _diamonds(jobs, model, [duration(value) for value in model]),
        ],
        "layout": _layout(jobs, value_axis("iteration", longest, quantity.seconds, log=False)),
    }


def _bars(group: str, jobs: Sequence[JobSeen], values: Sequence[float], colour: Colour, texts: list[str]) -> Figure:
    return {
        "type": "bar", "orientation": "h", "name": group, "legendgroup": group, "y": list(range(len(jobs))),
        "x": list(values), "width": 0.7, "marker": {"color": colour.light},
        "customdata": [f"<b>{plain(job.name)}</b>, {group}: {text}" for job, text in zip(jobs, texts, strict=True)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _diamonds(jobs: Sequence[JobSeen], values: Sequence[float], texts: list[str]) -> Figure:
    return {
        "type": "scatter", "mode": "markers", "name": "model", "legendgroup": "model", "cliponaxis": False,
        "x": list(values), "y": list(range(len(jobs))),
        "marker": {"color": MODEL.light, "symbol": "diamond-open", "size": 9},
        "customdata": [
            f"<b>{plain(job.name)}</b>, the replay assumes: {text}" for job, text in zip(jobs, texts, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _layout(jobs: Sequence[JobSeen], xaxis: Figure) -> Figure:
    return layout(
        ROW_PIXELS * len(jobs) + EDGE_PIXELS,
        barmode="stack",
        xaxis=xaxis,
        yaxis=_names([f"{job.name} · {job.gpus} GPU{'s' * (job.gpus != 1)}" for job in jobs]),
    )


def _names(names: Sequence[str]) -> Figure:
    rows = list(range(len(names)))
    return axis(
        range=[len(rows) - 0.4, -0.6],
        showgrid=False,
        tickvals=rows,
        ticktext=[f"{clipped(name)}\u2002" for name in names],
    )


def course_chart(found: Snapshot) -> Chart:
    """When every job sends and when it only computes, iteration by iteration."""
    shown = by_slowdown(found)[:MOST_ROWS]
    scale, unit = time_unit(found.run.trace.makespan)
    first = max(float(job.ends_s[0]) for job in found.jobs)
    last = min(float(job.ends_s[-1]) for job in found.jobs)
    data = []
    for row, number in enumerate(shown):
        job = found.jobs[number]
        whole = [(float(job.ends_s[0]), float(job.ends_s[-1]))]
        data.append(_spans(row, whole, scale, COMPUTES, "computes", f"{plain(job.name)} computes"))
        spans = sending(found, number)
        data.append(_spans(row, spans, scale, SENDS, "sends", f"{plain(job.name)} sends"))
        data.append(_ticks(row, job.ends_s / scale))
    shade = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "line": {"width": 0}, "fillcolor": palette.GREY.light,
             "opacity": 0.14}  # fmt: skip
    end = found.run.trace.makespan
    outside = [(0.0, first), (last, end)]
    figure: Figure = {
        "data": data,
        "layout": layout(
            ROW_PIXELS * len(shown) + EDGE_PIXELS,
            barmode="overlay",
            xaxis=axis(f"time since the snapshot in {unit}", range=[0, end / scale * 1.005], nticks=10),
            yaxis=_names([found.jobs[number].name for number in shown]),
            shapes=[shade | {"x0": a / scale, "x1": b / scale} for a, b in outside if b > a],
        ),
    }
    return Chart(
        "course",
        "Which job computes and which one sends when",
        (View("", figure),),
        (Swatch("sends", SENDS, group="sends"), Swatch("computes only", COMPUTES, group="computes")),
        caption="Ticks are the ends of iterations. Iterations in shaded intervals are not counted: some jobs have not "
        "started, or have ended.",
    )


def sending(found: Snapshot, job: int) -> list[tuple[float, float]]:
    """Spans of time in which a job has bytes on the way; gaps that nobody sees are closed."""
    graph, trace = found.together.graph, found.run.trace
    mine = np.flatnonzero((graph.kind == TaskKind.TRANSFER) & (found.together.job == job))
    return merged(trace.start[mine], trace.end[mine], trace.makespan * SEEN)


def merged(start: NDArray[np.float64], end: NDArray[np.float64], gap: float) -> list[tuple[float, float]]:
    """Spans joined where they touch or are no further apart than `gap`.

    >>> merged(np.array([0.0, 3.0, 1.0]), np.array([1.0, 4.0, 2.0]), 0.5)
    [(0.0, 2.0), (3.0, 4.0)]
    """
    if not len(start):
        return []
    order = np.argsort(start, kind="stable")
    begin, until = start[order], np.maximum.accumulate(end[order])
    cuts = np.flatnonzero(begin[1:] > until[:-1] + gap) + 1
    edges = [0, *cuts.tolist(), len(begin)]
    return [(float(begin[a]), float(until[b - 1])) for a, b in pairwise(edges)]


def _spans(
    row: int, spans: Sequence[tuple[float, float]], scale: float, colour: Colour, group: str, text: str
) -> Figure:
    return {
        "type": "bar", "orientation": "h", "legendgroup": group, "width": 0.62, "y": [row] * len(spans),
        "base": [a / scale for a, _ in spans], "x": [(b - a) / scale for a, b in spans],
        "marker": {"color": colour.light},
        "customdata": [f"{text}: {quantity.seconds(a)} to {quantity.seconds(b)}" for a, b in spans],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _ticks(row: int, at: NDArray[np.float64]) -> Figure:
    return {
        "type": "scatter", "mode": "markers", "x": at.tolist(), "y": [row] * len(at), "hoverinfo": "skip",
        "marker": {"symbol": "line-ns-open", "size": 15, "color": palette.INK.light, "line": {"width": 1.2}},
        "cliponaxis": False,
    }  # fmt: skip


def places_chart(found: Snapshot) -> Chart:
    """Which job has how many GPUs on which leaf."""
    plant = found.moment.plant
    shown = min(plant.leafs, MOST_LEAFS)
    gpus_of = np.full(plant.gpus, -1, np.int64)
    for number, job in enumerate(found.jobs):
        gpus_of[np.array(job.tenant.allocation.gpus)] = number
    data = []
    for leaf in range(shown):
        mine = gpus_of[plant.leaf_of_gpu == leaf].tolist()
        at = 0
        for number, run in groupby(mine):
            width = len(list(run))
            if number >= 0:
                data.append(_place(found.jobs[number], number, leaf, at, width))
            at += width
    left_out = "" if shown == plant.leafs else f" The first {shown} of {quantity.count(plant.leafs)} leafs are drawn."
    figure: Figure = {
        "data": data,
        "layout": layout(
            max(14, ROW_PIXELS - shown // 4) * shown + EDGE_PIXELS,
            barmode="overlay",
            xaxis=value_axis("GPUs of the leaf", [float(plant.gpus_per_leaf.max())], _whole, log=False, room=0.01),
            yaxis=_names(plant.leaf_names[:shown]),
        ),
    }
    return Chart(
        "places",
        "Which job has how many GPUs on which leaf",
        (View("", figure),),
        (Swatch("inside one leaf", palette.GREY), Swatch("across leafs, a colour per job", palette.SERIES[0])),
        caption=f"Hover over a job for its name; empty space is free or not part of the snapshot.{left_out}",
    )


def _place(job: JobSeen, number: int, leaf: int, at: int, width: int) -> Figure:
    colour = palette.SERIES[number % len(palette.SERIES)] if len(job.leafs) > 1 else palette.GREY
    where = f"{len(job.leafs)} leafs" if len(job.leafs) > 1 else "one leaf"
    return {
        "type": "bar", "orientation": "h", "y": [leaf], "base": [at], "x": [width], "width": 0.8,
        "marker": {"color": colour.light, "line": {"width": 1, "color": colours.PAPER.light}},
        "customdata": [f"<b>{plain(job.name)}</b>: {job.gpus} GPUs on {where}, {job.slowdown:.3f}× as long as alone"],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _whole(value: float) -> str:
    return f"{value:g}"
