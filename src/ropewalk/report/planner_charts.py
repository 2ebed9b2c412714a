"""Charts of a planner's answer: the ladder from arithmetic to the step that was found, and the worth of strands."""

from __future__ import annotations

from ropewalk.planner.answer import PlannerAnswer
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, layout, seconds_axis
from ropewalk.report.chart import Chart, Swatch, View, clipped, plain
from ropewalk.report.planner_words import NOTICED, LadderRow, ladder_rows
from ropewalk.report.ranking import ranking

ALL = "all together"
PLAIN = "baseline"


def ladder_chart(answer: PlannerAnswer) -> Chart:
    """What each further fact adds to the least time of a step, down to the step that was found."""
    rows = ladder_rows(answer)
    below = _stacked(rows, [row.seconds - row.added for row in rows], colours.IDLE.light)
    above = _stacked(rows, [row.added for row in rows], colours.ACCENT.light) | {
        "text": [f"{quantity.seconds(row.seconds)}" for row in rows],
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"size": 12, "color": colours.MUTED.light},
    }
    figure: Figure = {
        "data": [below, above],
        "layout": layout(
            32 * len(rows) + 80,
            barmode="stack",
            xaxis=seconds_axis("", [row.seconds for row in rows], log=False, room=0.14),
            yaxis=axis(
                range=[len(rows) - 0.4, -0.6], showgrid=False, tickvals=list(range(len(rows))),
                ticktext=[clipped(row.name) for row in rows],
            ),
        ),
    }  # fmt: skip
    return Chart(
        "ladder", f"{len(rows)} lower bounds of a step, each with one more constraint", (View("", figure),),
        (Swatch("added by this constraint", colours.ACCENT), Swatch("bound so far", colours.IDLE)),
    )  # fmt: skip


def _stacked(rows: list[LadderRow], seconds: list[float], colour: str) -> Figure:
    return {
        "type": "bar", "orientation": "h", "y": list(range(len(rows))), "x": seconds, "width": 0.7,
        "marker": {"color": colour},
        "customdata": [
            f"<b>{plain(row.name)}</b>: {quantity.seconds(row.seconds)}, {quantity.seconds(row.added)} more<br>"
            f"{plain(row.about)}"
            for row in rows
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def strand_chart(answer: PlannerAnswer) -> Chart:
    """The gain of each strand alone and of all together, and the steps behind them."""
    shown = [strand for strand in answer.strands if strand.name == ALL or abs(strand.gain - 1) >= NOTICED]
    without = [strand.name for strand in answer.strands if strand not in shown]
    names = [strand.name for strand in shown]
    gains = [max(0.0, strand.gain - 1) for strand in shown]
    hovers = [f"<b>{plain(one.name)}</b>: {plain(one.option.said())}" for one in shown]
    steps = [answer.plain.seconds, *(strand.option.seconds for strand in shown)]
    little = f" Below {NOTICED * 100:g}\u00a0% alone: {', '.join(without)}." if without else ""
    return Chart(
        "strands",
        f"Gain of {len(names) - 1} choices over the baseline, each alone and all together",
        (
            View("gain", ranking(
                names, gains, [quantity.times(one.gain) for one in shown], hovers,
                lambda gain: f"{1 + gain:.3g}×", ALL)),
            View("step time", ranking(
                [PLAIN, *names], steps, [quantity.seconds(seconds) for seconds in steps],
                [f"<b>{PLAIN}</b>: {plain(answer.plain.said())}", *hovers], quantity.seconds, ALL)),
        ),
        (Swatch(ALL, colours.ACCENT), Swatch("each alone", colours.OTHER)),
        choose="Bars",
        caption=f"× is the step time of the baseline over that of the strategy.{little}",
    )  # fmt: skip
