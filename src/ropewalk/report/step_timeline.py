"""A step over time: for each GPU that stands for others a lane a stream, and a bar for each operation.

A run may have millions of operations. One GPU of each group is drawn, the one on which most of the critical path
runs; and neighbours of one kind on one stream that a screen could not tell apart become one bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ropewalk import palette
from ropewalk.arrays import Ints
from ropewalk.palette import Colour
from ropewalk.report import colours, quantity
from ropewalk.report.chart import Swatch, embedded, runs, steps
from ropewalk.report.rank_groups import RankGroups
from ropewalk.sim.step import Ran
from ropewalk.task.step import COMPUTE_STREAM, Act

MOST_GPUS = 16
MOST_BARS = 32_000
"""Some 20 bytes each: a page with one timeline stays under 1 MB."""
FINEST = 1e-6
"""Part of the step below which neighbours are merged first; doubled until the bars are few enough."""
COARSE = 1e-3
"""From here on neighbours of different colours are merged too: forward and backward passes in turn."""
MOST_ROWS = 3
"""Operations of one stream that are drawn above each other; further ones at the same time overlap."""

AXIS_PIXELS, GAP_PIXELS = 34, 14
"""Height of the axis and of the space between two GPUs."""
ROW_PIXELS = (18, 26)
"""Height of a row where there are many, and where there are at most `FEW_ROWS`."""
FEW_ROWS = 8


@dataclass(frozen=True, eq=False)
class Bars:
    """What is drawn: columns by bar, in the order of GPU, stream and time."""

    gpu: Ints
    stream: Ints
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    operation: Ints
    """The longest operation of the bar."""
    count: Ints
    """Operations in the bar."""
    busy: NDArray[np.float64]
    """Seconds of them, all together."""
    look: Ints
    """Number of its colour."""
    critical: NDArray[np.bool_]


@dataclass(frozen=True)
class TimelineLane:
    """One stream of a GPU and the rows that it takes."""

    name: str
    rows: int


@dataclass(frozen=True)
class GpuLanes:
    name: str
    streams: tuple[TimelineLane, ...]


@dataclass(frozen=True)
class StepTimeline:
    """The timeline as the page draws it."""

    key: str
    summary: str
    legend: tuple[Swatch, ...]
    caption: str
    height: int
    json: Markup


def step_timeline(
    run: Ran, groups: RankGroups, *, key: str = "timeline", span_s: float | None = None, most: int = MOST_BARS
) -> StepTimeline | None:
    """Bars of representative GPUs, to the scale of `span_s` seconds or of the step; None where nothing ran."""
    chosen, names = representatives(run, groups)
    looks = _looks(run)
    bars, tolerance = _bars(run, chosen, looks, most)
    if not len(bars.start):
        return None
    rows, lanes = _lanes(run, bars, names)
    rows_drawn = sum(lane.rows for gpu in lanes for lane in gpu.streams)
    row_pixels = ROW_PIXELS[rows_drawn <= FEW_ROWS]
    shown = sorted(set(bars.look.tolist()))
    colour_of = _colours(looks, shown)
    legend = [Swatch(looks[number], colour_of[looks[number]], group=str(number)) for number in shown]
    if bars.critical.any():
        legend.append(Swatch("on the critical path", palette.INK, "line"))
    ticks = np.rint(np.column_stack([bars.start, bars.end - bars.start]) * 1e9).astype(np.int64)
    labels, label = np.unique([run.step.labels[one] for one in run.step.label[bars.operation]], return_inverse=True)
    data = {
        "lanes": [asdict(gpu) for gpu in lanes],
        "pixels": {"axis": AXIS_PIXELS, "row": row_pixels, "gap": GAP_PIXELS},
        "looks": [
            [colour_of[looks[n]].light, colour_of[looks[n]].dark] if n in shown else [] for n in range(len(looks))
        ],
        "labels": labels.tolist(),
        "span": round((run.makespan if span_s is None else span_s) * 1e9),
        **bar_columns(
            row=rows.tolist(),
            start=ticks[:, 0].tolist(),
            length=ticks[:, 1].tolist(),
            label=label.reshape(-1).tolist(),
            look=bars.look.tolist(),
            count=bars.count.tolist(),
            busy=np.rint(100 * np.minimum(bars.busy / (bars.end - bars.start), 1.0)).astype(np.int64).tolist(),
            critical=bars.critical.astype(np.int64).tolist(),
        ),
    }
    return StepTimeline(
        key,
        f"Start and end of {quantity.count(int(bars.count.sum()))} operations on {len(chosen)} {groups.nouns}",
        tuple(legend),
        _caption(run, groups, chosen, tolerance),
        AXIS_PIXELS + rows_drawn * row_pixels + len(lanes) * GAP_PIXELS,
        embedded(data),
    )


def bar_columns(*, start: Sequence[int], **others: Sequence[int]) -> dict[str, Any]:
    """Columns of bars as the page has them: starts from one bar to the next, and runs where they are shorter."""
    short = {name: runs(values) for name, values in others.items()}
    plain = {name: values for name, values in others.items() if len(short[name]) >= len(values)}
    return {**plain, "steps": steps(start), "runs": {name: short[name] for name in others if name not in plain}}


def representatives(run: Ran, groups: RankGroups) -> tuple[Ints, list[str]]:
    """One GPU of each group, the one with most of the critical path, and evenly chosen groups where there are many."""
    occupied, on_path = run.occupied, run.on_path
    computes = (run.step.act == Act.COMPUTE)[occupied.operation] & on_path[occupied.operation]
    weight = np.bincount(occupied.rank[computes], (occupied.end - occupied.start)[computes], minlength=run.step.ranks)
    order = np.lexsort((np.arange(run.step.ranks), -weight, groups.of_rank))
    first = order[np.flatnonzero(np.diff(groups.of_rank[order], prepend=-1))]
    first = first[np.isin(first, occupied.rank)]  # ranks that neither compute nor send have nothing to draw
    if len(first) > MOST_GPUS:
        first = first[np.linspace(0, len(first) - 1, MOST_GPUS).astype(np.int64)]
    return first, [groups.called(rank) for rank in first.tolist()]


def _caption(run: Ran, groups: RankGroups, chosen: Ints, tolerance: float) -> str:
    parts = []
    if len(chosen) < run.step.ranks:
        verb = "is" if len(chosen) == 1 else "are"
        drawn = f"{quantity.count(len(chosen))} of {quantity.count(run.step.ranks)} {groups.nouns} {verb} drawn"
        if groups.sort == groups.noun and len(chosen) == len(groups.names):
            these = "it" if len(chosen) == 1 else "one of these"
            parts.append(f"{drawn}: the others are identical to {these}; × gives their number.")
        elif groups.sort == "stage":
            each = ", one for each stage" if len(groups.names) > 1 else ""
            parts.append(f"{drawn}{each}: the one with the largest share of the critical path.")
        else:
            parts.append(
                f"{drawn}, sampled evenly; of identical ones, the one with the largest share of the critical path."
            )
    busy = np.isin(groups.of_rank, groups.of_rank[np.unique(run.occupied.rank)])
    if idle := int(np.count_nonzero(~busy)):
        parts.append(f"{quantity.count(idle)} {groups.nouns} neither compute nor send.")
    if tolerance:
        parts.append(
            f"Operations less than {quantity.seconds(tolerance)} apart are drawn as one bar; paler bars contain more "
            "gaps."
        )
    parts.append("Drag to zoom in, double-click to reset; + and − zoom, ← and → move.")
    return " ".join(parts)


def _looks(run: Ran) -> list[str]:
    """Names of the colours: phases of computation, then purposes, by number."""
    return [*colours.COMPUTE_PHASES, "compute", *run.step.streams[1:]]


def _colours(looks: list[str], shown: list[int]) -> dict[str, Colour]:
    return colours.of_names([looks[number] for number in shown], colours.COMPUTE_PHASES | colours.PURPOSES)


def _look_of_operation(run: Ran, looks: list[str]) -> Ints:
    phases = list(colours.COMPUTE_PHASES)
    words = [next((word for word in text.split() if word in phases), None) for text in run.step.labels]
    of_label = np.array([len(phases) if word is None else phases.index(word) for word in words], np.int64)
    look = len(phases) + run.step.stream.astype(np.int64)
    computes = run.step.act == Act.COMPUTE
    look[computes] = of_label[run.step.label[computes]]
    assert look.max(initial=0) < len(looks)
    return look


def _bars(run: Ran, chosen: Ints, looks: list[str], most: int) -> tuple[Bars, float]:
    """The operations of the chosen GPUs, merged as little as needed, and how far apart merged ones may be."""
    number = np.full(run.step.ranks, -1)
    number[chosen] = np.arange(len(chosen))
    occupied, look, on_path = run.occupied, _look_of_operation(run, looks), run.on_path
    mine = np.flatnonzero(number[occupied.rank] >= 0)
    gpu, operation = number[occupied.rank[mine]], occupied.operation[mine]
    stream = np.where(run.step.act[operation] == Act.COMPUTE, COMPUTE_STREAM, run.step.stream[operation]).astype(
        np.int64
    )
    start, end = occupied.start[mine], occupied.end[mine]
    order = np.lexsort((operation, start, stream, gpu))
    bars = Bars(
        gpu[order], stream[order], start[order], end[order], operation[order], np.ones(len(order), np.int64),
        (end - start)[order],
        look[operation[order]], on_path[operation[order]],
    )  # fmt: skip
    tolerance, whole = 0.0, bars
    while len(bars.start) > most and tolerance < run.makespan:
        tolerance = max(tolerance * 2, FINEST * run.makespan)
        bars = _merged(whole, tolerance, of_one_look=tolerance < COARSE * run.makespan)
    return bars, tolerance


def _merged(bars: Bars, tolerance: float, *, of_one_look: bool) -> Bars:
    """Neighbours on one stream become one bar, of the look of the longest, where the gap is not worth drawing."""
    apart = np.ones(len(bars.start), bool)
    apart[1:] = (
        (np.diff(bars.gpu) != 0)
        | (np.diff(bars.stream) != 0)
        | ((np.diff(bars.look) != 0) & of_one_look)
        | (bars.start[1:] > bars.end[:-1] + tolerance)
    )
    first = np.flatnonzero(apart)
    piece = np.cumsum(apart) - 1
    longest = np.lexsort((bars.start - bars.end, piece))[first]
    return Bars(
        bars.gpu[first], bars.stream[first], bars.start[first], np.maximum.reduceat(bars.end, first),
        bars.operation[longest], np.add.reduceat(bars.count, first),
        np.add.reduceat(bars.busy, first), bars.look[longest],
        np.logical_or.reduceat(bars.critical, first),
    )  # fmt: skip


def _lanes(run: Ran, bars: Bars, names: list[str]) -> tuple[Ints, list[GpuLanes]]:
    """The row of each bar, counted from the top of the drawing, and the lanes that the rows belong to."""
    row, lanes, top = np.zeros(len(bars.start), np.int64), [], 0
    slack = 1e-9 * run.makespan
    for gpu, name in enumerate(names):
        streams = []
        for stream in np.unique(bars.stream[bars.gpu == gpu]).tolist():
            mine = np.flatnonzero((bars.gpu == gpu) & (bars.stream == stream))
            used = _free_rows(bars, mine, row, top, slack)
            streams.append(TimelineLane(run.step.streams[stream], used))
            top += used
        lanes.append(GpuLanes(name, tuple(streams)))
    return row, lanes


def _free_rows(bars: Bars, mine: Ints, row: Ints, top: int, slack: float) -> int:
    """Each bar in the first row that is free by then; how many rows that took."""
    free: list[float] = []
    for bar, start, end in zip(mine.tolist(), bars.start[mine].tolist(), bars.end[mine].tolist(), strict=True):
        found = next((at for at, until in enumerate(free) if until <= start + slack), len(free))
        if found == len(free):
            if found < MOST_ROWS:
                free.append(0.0)
            else:
                found = int(np.argmin(free))
        free[found] = end
        row[bar] = top + found
    return len(free)
