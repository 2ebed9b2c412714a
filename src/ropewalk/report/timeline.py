"""A run over time: a lane for each stream of a GPU and for each host that sends, a bar for each task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ropewalk import palette
from ropewalk.arrays import Ints
from ropewalk.palette import Colour
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, layout
from ropewalk.report.chart import Chart, Swatch, View, clipped, plain
from ropewalk.sim import Trace
from ropewalk.task import TaskKind

MOST_TASKS = 5_000
MOST_LANES = 64
MOST_ROWS = 6
"""Transfers of one host that are drawn above each other; further ones at the same time overlap."""
ROW_PIXELS = (5.0, 7.5)
"""Of a row where there are many, and where there are few."""
TALLEST = 1_800
NO_PHASES: Mapping[str, Colour] = MappingProxyType({})
COPY = re.compile(r"(?<=.)/[0-9]+$")
"""The number of a copy in the name of a task: of its rank, say."""
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


@dataclass(frozen=True, eq=False)
class Lanes:
    """The tasks that are drawn and where."""

    task: Ints
    lane: Ints
    """For each drawn task its lane, numbered from the top."""
    row: Ints
    """And its row in the lane."""
    names: tuple[str, ...]
    rows: tuple[int, ...]
    """Rows of each lane."""
    remark: str


def time_unit(seconds: float) -> tuple[float, str]:
    """The unit in which a duration of this length has a few digits before the point."""
    return next(((scale, name) for scale, name in UNITS if seconds >= scale), UNITS[-1])


def timeline(trace: Trace, critical: Ints, phases: Mapping[str, Colour] = NO_PHASES) -> Chart | None:
    """What ran when; tasks of the critical path are outlined. None where nothing ran.

    Tasks whose label has a word of `phases` have its colour; of the others each label has its own, save for the number
    of a copy behind a slash: backward-1/0 and backward-1/3 are one colour.
    """
    lanes = choose_lanes(trace, critical)
    if not len(lanes.task):
        return None
    labels = _coloured_labels(trace, lanes, phases)
    legend = [Swatch(label, colour, group=f"label {label}") for label, colour in labels.items()]
    if any(_look(trace, task, phases) not in labels for task in lanes.task.tolist()):
        legend.append(Swatch("other tasks", colours.OTHER, group="other"))
    legend.append(Swatch("on the critical path", palette.INK, "box"))
    return Chart(
        "timeline",
        f"Start and end of {len(lanes.task)} tasks in {len(lanes.names)} lanes",
        (View("", _figure(trace, lanes, labels, critical, phases)),),
        tuple(legend),
        caption=f"{lanes.remark}Drag to zoom in, double-click to reset.",
    )


def choose_lanes(trace: Trace, critical: Ints) -> Lanes:
    """All tasks where they are few; otherwise the critical path first, then the longest, in the busiest lanes."""
    graph = trace.graph
    shown = np.flatnonzero(graph.kind != TaskKind.MARKER)
    everything = len(shown)
    first = np.zeros(graph.tasks, bool)
    first[critical] = True
    duration = trace.end - trace.start
    shown = shown[np.lexsort((shown, -duration[shown], ~first[shown]))][:MOST_TASKS]
    is_transfer = (graph.kind[shown] == TaskKind.TRANSFER).astype(np.int64)
    key = np.column_stack([is_transfer, graph.place[shown], np.where(is_transfer, 0, graph.stream[shown])])
    known, lane = np.unique(key, axis=0, return_inverse=True)
    lane = lane.reshape(-1)
    busy = np.bincount(lane, duration[shown], minlength=len(known))
    hot = np.bincount(lane, first[shown], minlength=len(known)) > 0
    kept = np.sort(np.lexsort((np.arange(len(known)), -busy, ~hot))[:MOST_LANES])
    number = np.full(len(known), -1)
    number[kept] = np.arange(len(kept))
    inside = number[lane] >= 0
    task, lane = shown[inside], number[lane[inside]]
    order = np.lexsort((task, trace.start[task], lane))
    task, lane = task[order], lane[order]
    row, rows, overlap = _rows_of(trace, task, lane, len(kept))
    names = tuple(_lane_name(trace, *known[one].tolist()) for one in kept)
    remark = ""
    if len(task) < everything:
        remark = (
            f"{quantity.count(len(task))} of {quantity.count(everything)} tasks in {quantity.count(len(kept))} of the "
            "lanes are drawn: the critical path, then the longest. "
        )
    if overlap:
        remark += f"Where a host sends more than {MOST_ROWS} transfers at once, some bars overlap. "
    return Lanes(task, lane, row, names, rows, remark)


def _lane_name(trace: Trace, is_transfer: int, place: int, stream: int) -> str:
    return f"{trace.routes.fabric.node_names[place]} sends" if is_transfer else f"gpu {place}, stream {stream}"


def _rows_of(trace: Trace, task: Ints, lane: Ints, lanes: int) -> tuple[Ints, tuple[int, ...], bool]:
    """Each task in the first row of its lane that is free by then, and whether some had to share one."""
    slack = 1e-9 * trace.makespan
    free: list[list[float]] = [[] for _ in range(lanes)]
    row = np.zeros(len(task), np.int64)
    overlap = False
    for number, (one, where) in enumerate(zip(task.tolist(), lane.tolist(), strict=True)):
        ends = free[where]
        found = next((at for at, end in enumerate(ends) if end <= trace.start[one] + slack), len(ends))
        if found == len(ends):
            if found == MOST_ROWS:
                found, overlap = int(np.argmin(ends)), True
            else:
                ends.append(0.0)
        ends[found] = float(trace.end[one])
        row[number] = found
    return row, tuple(len(ends) for ends in free), overlap


def _look(trace: Trace, task: int, phases: Mapping[str, Colour]) -> str:
    """What tasks of one colour have in common: the phase that their label names, or else the label."""
    label = trace.graph.name_of(task)
    words = label.split()
    return next((phase for phase in phases if phase in words), COPY.sub("", label))


def _coloured_labels(trace: Trace, lanes: Lanes, phases: Mapping[str, Colour]) -> dict[str, Colour]:
    """The labels that take the most time have a colour, in the order in which they first run."""
    seconds: dict[str, float] = {}
    begin: dict[str, float] = {}
    for task in lanes.task.tolist():
        label = _look(trace, task, phases)
        seconds[label] = seconds.get(label, 0.0) + float(trace.end[task] - trace.start[task])
        begin[label] = min(begin.get(label, np.inf), float(trace.start[task]))
    busiest = sorted(seconds, key=lambda label: (-seconds[label], label))[: len(palette.SERIES)]
    others = iter([colour for colour in (*palette.SERIES, *palette.MORE) if colour not in phases.values()])
    ordered = sorted(busiest, key=lambda label: (begin[label], label))
    return {label: phases[label] if label in phases else next(others) for label in ordered}


def _figure(
    trace: Trace, lanes: Lanes, labels: dict[str, Colour], critical: Ints, phases: Mapping[str, Colour]
) -> Figure:
    scale, unit = time_unit(trace.makespan)
    top = np.concatenate([[0.0], np.cumsum([rows + 1.6 for rows in lanes.rows])])
    height = np.array([0.86 if rows > 1 else 1.6 for rows in lanes.rows])[lanes.lane]
    y = top[lanes.lane] + 0.8 + np.where(height > 1, 0.5, lanes.row + 0.5)
    on_path = np.isin(lanes.task, critical)
    names = np.array([_look(trace, task, phases) for task in lanes.task.tolist()], dtype=object)
    traces = []
    for label in (*labels, None):
        mine = np.flatnonzero(names == label if label is not None else ~np.isin(names, list(labels)))
        if len(mine):
            traces.append(_bars(trace, lanes, mine, label, labels, scale, y, height, on_path))
    pixels = min(max(TALLEST / float(top[-1]), ROW_PIXELS[0]), ROW_PIXELS[1])
    lines = [_separator(float(edge)) for edge in top[1:-1]]
    middle = (top[:-1] + top[1:]) / 2
    return {
        "data": traces,
        "layout": layout(
            round(float(top[-1]) * pixels) + 80,
            bargap=0,
            barmode="overlay",
            dragmode="zoom",
            shapes=lines,
            xaxis=axis(f"time in {unit}", fixedrange=False, range=[0, trace.makespan / scale * 1.005], nticks=10),
            yaxis=axis(
                range=[float(top[-1]), 0.0],
                showgrid=False,
                tickvals=middle.tolist(),
                ticktext=[clipped(name) for name in lanes.names],
            ),
        ),
    }


def _bars(
    trace: Trace, lanes: Lanes, mine: Ints, label: str | None, labels: dict[str, Colour], scale: float,
    y: NDArray[np.float64], height: NDArray[np.float64], on_path: NDArray[np.bool_],
) -> Figure:  # fmt: skip
    task = lanes.task[mine]
    colour = colours.OTHER if label is None else labels[label]
    return {
        "type": "bar",
        "orientation": "h",
        "name": plain(label) if label is not None else "other tasks",
        "legendgroup": f"label {label}" if label is not None else "other",
        "base": (trace.start[task] / scale).tolist(),
        "x": ((trace.end[task] - trace.start[task]) / scale).tolist(),
        "y": y[mine].tolist(),
        "width": height[mine].tolist(),
        "marker": {
            "color": colour.light,
            "opacity": 0.9,
            "line": {
                "color": [palette.INK.light if hot else colours.PAPER.light for hot in on_path[mine].tolist()],
                "width": np.where(on_path[mine], 1.5, 0.5).tolist(),
            },
        },
        "customdata": [_hover(trace, one) for one in task.tolist()],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _hover(trace: Trace, task: int) -> str:
    graph, fabric = trace.graph, trace.routes.fabric
    lines = [f"<b>{plain(graph.name_of(task))}</b>"]
    if graph.kind[task] == TaskKind.TRANSFER:
        ends = f"{fabric.node_names[graph.place[task]]} → {fabric.node_names[graph.peer[task]]}"
        lines.append(f"{plain(ends)}, {quantity.size(float(graph.amount[task]))}")
    start, end = float(trace.start[task]), float(trace.end[task])
    lines.append(f"{quantity.seconds(start)} to {quantity.seconds(end)}, {quantity.seconds(end - start)} long")
    if trace.bound_by[task] >= 0:
        lines.append(f"waits for {plain(fabric.link_name(int(trace.bound_by[task])).replace('->', ' → '))}")
    return "<br>".join(lines)


def _separator(y: float) -> Figure:
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "layer": "below",
        "line": {"color": colours.GRID.light, "width": 1},
    }  # fmt: skip
