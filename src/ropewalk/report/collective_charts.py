"""Schedules of a collective in charts: how near each comes to the optimum, and which is fastest for which size."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk import palette
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, given_axis, layout, seconds_axis, value_axis
from ropewalk.report.chart import Chart, Swatch, View, clipped, plain
from ropewalk.synthesis import CollectiveAnswer

BAR_PIXELS = 32
LABEL_ROOM = 0.26
"""Part of the axis that a label needs behind its bar."""


@dataclass(frozen=True)
class ScheduleCandidate:
    """A schedule that carries the collective on this fabric."""

    name: str
    algbw: float
    seconds: float
    made_for_it: bool = False

    @property
    def words(self) -> str:
        return colours.name_of_logical(self.name)

    @property
    def colour(self) -> palette.Colour:
        return colours.of_logical(self.name)


def candidates(answer: CollectiveAnswer) -> list[ScheduleCandidate]:
    """The schedule and what it is compared with, the highest bandwidth first."""
    found = [
        ScheduleCandidate(other.name, other.algbw, other.seconds)
        for other in answer.alternatives
        if other.algbw is not None and other.seconds is not None
    ]
    if answer.made is not None:
        found.append(ScheduleCandidate(answer.made.name, float(answer.algbw), answer.seconds, made_for_it=True))
    return sorted(found, key=lambda one: (-float(f"{one.algbw:.9g}"), not one.made_for_it, one.name))


def bandwidth_chart(answer: CollectiveAnswer) -> Chart:
    """A bar for each schedule, and a line that none can pass."""
    rows, best = candidates(answer), float(answer.optimum.algbw)
    bars = {
        "type": "bar", "orientation": "h", "name": "bandwidth", "width": 0.7,
        "x": [row.algbw for row in rows], "y": list(range(len(rows))),
        "marker": {"color": [row.colour.light for row in rows], "cornerradius": 3},
        "customdata": [
            f"<b>{plain(row.words)}</b><br>{quantity.gigabytes(row.algbw)}, {quantity.percent(row.algbw / best)} of "
            f"the optimum<br>{quantity.buffer(answer.question.size_bytes)} in {quantity.seconds(row.seconds)}"
            for row in rows
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip
    # Text behind the bars, or behind the line of the optimum where it would cross it.
    values = {
        "type": "scatter", "mode": "text", "name": "values", "cliponaxis": False, "hoverinfo": "skip",
        "x": [best if row.algbw > (1 - LABEL_ROOM) * best else row.algbw for row in rows], "y": list(range(len(rows))),
        "text": [f"\u2002{quantity.gigabytes(row.algbw)} · {quantity.percent(row.algbw / best)}" for row in rows],
        "textposition": "middle right", "textfont": {"size": 12, "color": colours.MUTED.light},
    }  # fmt: skip
    line = {
        "type": "scatter", "mode": "lines", "name": "optimum", "x": [best, best], "y": [-0.6, len(rows) - 0.4],
        "line": {"color": colours.MUTED.light, "width": 1.5, "dash": "dot"}, "hoverinfo": "skip",
    }  # fmt: skip
    figure: Figure = {
        "data": [bars, line, values],
        "layout": layout(
            BAR_PIXELS * len(rows) + 84,
            xaxis=value_axis(
                "algorithm bandwidth, large buffers", [best], quantity.gigabytes, log=False, room=LABEL_ROOM
            ),
            yaxis=axis(
                range=[len(rows) - 0.4, -0.6],
                showgrid=False,
                tickvals=list(range(len(rows))),
                ticktext=[f"<b>{clipped(row.words)}</b>" if row.made_for_it else clipped(row.words) for row in rows],
                tickfont={"size": 13, "color": palette.INK.light},
            ),
        ),
    }
    return Chart(
        "bandwidth",
        f"Bandwidth of {len(rows)} schedules against the optimum",
        (View("", figure),),
        (Swatch("optimum: no schedule is faster", colours.MUTED, "dots"),),
        caption=_caption(answer),
    )


def _caption(answer: CollectiveAnswer) -> str:
    counted = answer.question.host_limits is not None
    how = "are counted link by link" if counted else "were simulated at flow level without start-up latency"
    mine = (
        ""
        if answer.made is None
        else f"That of {colours.name_of_logical(answer.made.name)} is exact; the others {how}."
    )
    return mine or f"Bandwidths {how}."


def time_chart(answer: CollectiveAnswer) -> Chart:
    """Time by size, a line for each schedule, the fastest of each size marked."""
    ordered = [row for row in candidates(answer) if row.name in answer.by_size[0].all_seconds]
    sizes = [float(at.size_bytes) for at in answer.by_size]
    lines = [
        {
            "type": "scatter", "mode": "lines", "name": plain(row.words), "legendgroup": row.name,
            "x": sizes, "y": [at.all_seconds[row.name] for at in answer.by_size],
            "line": {"color": row.colour.light, "width": 3.2 if row.made_for_it else 1.8},
            "customdata": [
                f"<b>{plain(row.words)}</b><br>{quantity.size(at.size_bytes)} in "
                f"{quantity.seconds(at.all_seconds[row.name])}, {quantity.times(at.all_seconds[row.name] / at.seconds)}"
                " of the fastest"
                for at in answer.by_size
            ],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
        for row in reversed(ordered)
    ]  # fmt: skip
    colour = {row.name: row.colour.light for row in ordered}
    fastest = {
        "type": "scatter", "mode": "markers", "name": "fastest", "cliponaxis": False, "hoverinfo": "skip",
        "x": sizes, "y": [at.seconds for at in answer.by_size],
        "marker": {
            "size": 11, "color": [colour[at.name] for at in answer.by_size],
            "line": {"width": 2, "color": colours.PAPER.light},
        },
    }  # fmt: skip
    every = [seconds for at in answer.by_size for seconds in at.all_seconds.values()]
    figure: Figure = {
        "data": [*lines, fastest],
        "layout": layout(
            440,
            xaxis=given_axis("size", sizes, quantity.size),
            yaxis=seconds_axis("time, logarithmic", every, log=True, room=0.06),
        ),
    }
    legend = [Swatch(row.words, row.colour, "line", row.name) for row in ordered]
    return Chart(
        "time", f"Time of {len(ordered)} schedules against size", (View("", figure),),
        (*legend, Swatch("fastest for its size", colours.MUTED, "dot")),
        caption=f"Start-up latencies of {quantity.seconds(answer.question.start_up_s)} are counted once in every "
            "round, and "
        "once for every branch and segment of a tree.",
    )  # fmt: skip
