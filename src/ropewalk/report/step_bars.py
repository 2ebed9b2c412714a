"""Where the time of each stage or GPU went, and what fills its memory, as stacked bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ropewalk import palette
from ropewalk.palette import Colour
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, layout, value_axis
from ropewalk.report.axis import axis as plain_axis
from ropewalk.report.chart import Chart, Swatch, View, clipped, plain
from ropewalk.report.rank_groups import RankGroups
from ropewalk.sim.step import StepStatistics

Write = Callable[[float], str]

DRAWN_ALIKE = 1e-3
"""Bars whose parts differ by less than this part of the step share a row."""
WRITTEN_FROM = 0.045
"""Parts of a bar below this have no room for their number."""
BRIGHT = 125
"""Luminance, of 255, from which on a colour asks for dark text."""


@dataclass(frozen=True)
class MemoryBar:
    """What one GPU of a stage holds, in bytes by name, and what it could hold."""

    name: str
    parts: Mapping[str, float]
    capacity_bytes: float | None = None
    average_bytes: float | None = None
    """Over the step, where that is known: the parts are those of the fullest moment."""


@dataclass(frozen=True)
class BarSeries:
    """One colour of the bars: a value for each row."""

    name: str
    colour: Colour
    values: Sequence[float]


def breakdown_chart(found: StepStatistics, groups: Sequence[RankGroups]) -> Chart:
    """Compute, exposed communication by purpose and bubble; their sum is the step time in every row."""
    by_purpose = found.times.exposed_by_purpose_s
    coloured = colours.of_names(by_purpose, colours.PURPOSES)
    series = [
        ("compute", colours.PURPOSES["compute"], found.times.compute_s),
        *((f"exposed: {name}", coloured[name], seconds) for name, seconds in by_purpose.items() if seconds.any()),
    ]
    if found.times.bubble_s.any():
        series.append(("bubble", colours.IDLE, found.times.bubble_s))
    views = []
    grid = DRAWN_ALIKE * max(found.step_time_s, 1e-300)
    for given in groups:
        group = given.joined(np.rint(np.column_stack([given.mean(seconds) for _, _, seconds in series]) / grid))
        stacks = [BarSeries(name, colour, group.mean(seconds).tolist()) for name, colour, seconds in series]
        views.append(
            View(f"by {group.sort}", _stacked(group.names, stacks, found.step_time_s, quantity.seconds, "of the step"))
        )
    return Chart(
        "breakdown",
        "Compute, exposed communication and bubble of each " + groups[0].sort,
        tuple(views),
        tuple(Swatch(name, colour, group=name) for name, colour, _ in series),
        choose="Rows",
        caption="Each row adds up to the step time, averaged where it represents several GPUs. Communication that "
        "overlaps with compute is hidden and not shown.",
    )


def memory_chart(bars: Sequence[MemoryBar]) -> Chart:
    """What fills the memory of a GPU of each stage, against what it has."""
    names = list(dict.fromkeys(part for bar in bars for part in bar.parts))
    coloured = colours.of_names(names, colours.MEMORY)
    stacks = [BarSeries(name, coloured[name], [bar.parts.get(name, 0.0) for bar in bars]) for name in names]
    capacity = max((bar.capacity_bytes or 0.0 for bar in bars), default=0.0)
    widest = max([sum(bar.parts.values()) for bar in bars] + [capacity])
    figure = _stacked([bar.name for bar in bars], stacks, widest, quantity.size, "of GPU memory", capacity)
    legend = [Swatch(stack.name, stack.colour, group=stack.name) for stack in stacks]
    if capacity:
        figure["layout"]["shapes"] = [_limit(capacity)]
        legend.append(Swatch(f"GPU memory, {quantity.size(capacity)}", palette.INK, "dash"))
    averages = [(row, bar.average_bytes) for row, bar in enumerate(bars) if bar.average_bytes is not None]
    if averages:
        figure["data"].append(_averages(averages))
        legend.append(Swatch("average over the step", palette.INK, "diamond", "average"))
    return Chart(
        "memory",
        f"Peak memory per GPU in each of {len(bars)} stages",
        (View("", figure),),
        tuple(legend),
        caption="Peak memory of a GPU during the step" + ("; diamonds are its average." if averages else "."),
    )


def _averages(averages: Sequence[tuple[int, float]]) -> Figure:
    return {
        "type": "scatter", "mode": "markers", "name": "average", "legendgroup": "average",
        "x": [size for _, size in averages], "y": [row for row, _ in averages],
        "marker": {"symbol": "diamond", "size": 9, "color": palette.INK.light},
        "customdata": [quantity.size(size) for _, size in averages],
        "hovertemplate": "%{customdata} on average<extra></extra>",
    }  # fmt: skip


def _stacked(
    names: Sequence[str],
    stacks: Sequence[BarSeries],
    longest: float,
    write: Write,
    whole_in_words: str,
    whole: float = 0.0,
) -> Figure:
    rows = len(names)
    thick = 26 if rows <= 12 else 20
    unit = whole or longest
    data = [_stack_trace(stack, names, longest, unit, write, whole_in_words) for stack in stacks]
    return {
        "data": data,
        "layout": layout(
            thick * rows + 86,
            barmode="stack",
            bargap=0.22,
            xaxis=value_axis("", [longest], write, log=False, room=0.02),
            yaxis=plain_axis(
                range=[rows - 0.45, -0.55],
                showgrid=False,
                tickvals=list(range(rows)),
                ticktext=[clipped(name) for name in names],
            ),
        ),
    }


def _stack_trace(
    stack: BarSeries, names: Sequence[str], longest: float, unit: float, write: Write, whole_in_words: str
) -> Figure:
    shares = [value / unit if unit > 0 else 0.0 for value in stack.values]
    return {
        "type": "bar",
        "orientation": "h",
        "name": plain(stack.name),
        "legendgroup": stack.name,
        "x": list(stack.values),
        "y": list(range(len(names))),
        "marker": {"color": stack.colour.light, "line": {"color": colours.PAPER.light, "width": 1}},
        "text": [
            quantity.percent(share) if value >= WRITTEN_FROM * longest else ""
            for share, value in zip(shares, stack.values, strict=True)
        ],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "textfont": {"size": 11.5, "color": text_on(stack.colour)},
        "constraintext": "none",
        "customdata": [
            f"<b>{plain(name)}</b>, {plain(stack.name)}<br>{write(value)}, {quantity.percent(share)} {whole_in_words}"
            for name, value, share in zip(names, stack.values, shares, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def text_on(colour: Colour) -> str:
    """Ink that is legible on a colour, on light pages and on dark ones."""
    bright = [_luminance(shade) > BRIGHT for shade in (colour.light, colour.dark)]
    if all(bright):
        return "#15181d"
    return palette.INK.light if bright[0] else "#ffffff"


def _luminance(shade: str) -> float:
    red, green, blue = (int(shade[at : at + 2], 16) for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _limit(capacity: float) -> Figure:
    return {
        "type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": capacity, "x1": capacity,
        "line": {"color": palette.INK.light, "width": 1.5, "dash": "dash"},
    }  # fmt: skip
