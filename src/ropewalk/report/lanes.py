"""Lanes with bars over time, for what is planned rather than simulated: timetables, orders of communication.

The drawing is that of a simulated step (`step_timeline`), so that both look and behave alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ropewalk.palette import Colour
from ropewalk.report.chart import Swatch, embedded
from ropewalk.report.step_timeline import AXIS_PIXELS, FEW_ROWS, GAP_PIXELS, ROW_PIXELS, StepTimeline, bar_columns

MOST_ROWS = 3
"""Bars of one lane that are drawn above each other; further ones at the same time overlap."""
HOW_TO_LOOK = "Drag to zoom in, double-click to reset; + and − zoom, ← and → move."


@dataclass(frozen=True)
class Bar:
    """Something that takes time in a lane."""

    lane: int
    """Its number from the top, over all groups."""
    start_s: float
    end_s: float
    label: str
    look: str
    """Names its colour."""


@dataclass(frozen=True)
class LaneGroup:
    """Lanes that belong together under one name."""

    name: str
    lanes: tuple[str, ...]
    remark: str = ""
    """Under the name, where there is a second lane."""


def lane_timeline(
    key: str,
    groups: Sequence[LaneGroup],
    bars: Sequence[Bar],
    looks: Mapping[str, Colour],
    *,
    span_s: float,
    summary: str,
    caption: str = "",
) -> StepTimeline:
    """Bars in their lanes; `looks` gives the colours in the order of the legend."""
    lanes = [lane for group in groups for lane in group.lanes]
    drawn = [bar for bar in bars if bar.end_s > bar.start_s]
    row_in_lane, rows = _rows(drawn, len(lanes), 1e-9 * span_s)
    top = [sum(rows[:lane]) for lane in range(len(lanes))]
    labels = sorted({bar.label for bar in drawn})
    number_of_label = {label: number for number, label in enumerate(labels)}
    number_of_look = {look: number for number, look in enumerate(looks)}
    shown = {bar.look for bar in drawn}
    start = [round(bar.start_s * 1e9) for bar in drawn]
    row_pixels = ROW_PIXELS[sum(rows) <= FEW_ROWS]
    at = iter(rows)
    data = {
        "lanes": [
            {
                "name": group.name,
                "remark": group.remark,
                "streams": [{"name": lane, "rows": next(at)} for lane in group.lanes],
            }
            for group in groups
        ],
        "pixels": {"axis": AXIS_PIXELS, "row": row_pixels, "gap": GAP_PIXELS},
        "looks": [[colour.light, colour.dark] for colour in looks.values()],
        "labels": labels,
        "span": round(span_s * 1e9),
        **bar_columns(
            row=[top[bar.lane] + row for bar, row in zip(drawn, row_in_lane, strict=True)],
            start=start,
            length=[round(bar.end_s * 1e9) - begin for bar, begin in zip(drawn, start, strict=True)],
            label=[number_of_label[bar.label] for bar in drawn],
            look=[number_of_look[bar.look] for bar in drawn],
            count=[1] * len(drawn),
            busy=[100] * len(drawn),
            critical=[0] * len(drawn),
        ),
    }
    return StepTimeline(
        key,
        summary,
        tuple(Swatch(look, colour, group=str(number_of_look[look])) for look, colour in looks.items() if look in shown),
        f"{caption} {HOW_TO_LOOK}".strip(),
        AXIS_PIXELS + sum(rows) * row_pixels + len(groups) * GAP_PIXELS,
        embedded(data),
    )


def _rows(bars: Sequence[Bar], lanes: int, slack: float) -> tuple[list[int], list[int]]:
    """The row of each bar within its lane, the first that is free by then, and how many rows each lane takes."""
    free: list[list[float]] = [[] for _ in range(lanes)]
    row = [0] * len(bars)
    for number in sorted(range(len(bars)), key=lambda number: (bars[number].start_s, number)):
        bar = bars[number]
        ends = free[bar.lane]
        found = next((at for at, until in enumerate(ends) if until <= bar.start_s + slack), len(ends))
        if found == len(ends):
            if found < MOST_ROWS:
                ends.append(0.0)
            else:
                found = ends.index(min(ends))
        ends[found] = bar.end_s
        row[number] = found
    return row, [max(1, len(ends)) for ends in free]
