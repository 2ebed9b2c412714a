"""Orders of communication in charts: each beside the bound, over partition sizes, and over speeds of the network."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ropewalk import palette
from ropewalk.overlap.answer import OverlapAnswer
from ropewalk.overlap.study import SpeedRow
from ropewalk.overlap.ways import METHODS
from ropewalk.palette import Colour
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, given_axis, layout, seconds_axis, value_axis
from ropewalk.report.chart import Chart, Swatch, View, clipped, plain

Write = Callable[[float], str]


def ways_chart(answer: OverlapAnswer) -> Chart:
    """Seconds of a step under every way, computing and waiting apart, and the bound that none can pass."""
    ways = sorted(answer.ways, key=lambda way: (way.time_s, way.launches))
    names = [way.name for way in ways]
    compute = answer.tensors.compute_s
    waiting = [max(0.0, way.time_s - compute) for way in ways]
    rows = list(range(len(ways)))
    best = answer.best
    texts = [
        quantity.seconds(way.time_s) + ("" if way is best else f" · {quantity.times(way.time_s / best.time_s)}")
        for way in ways
    ]
    longest = max(way.time_s for way in ways)
    figure: Figure = {
        "data": [
            {
                "type": "bar", "orientation": "h", "name": "computing", "legendgroup": "computing", "y": rows,
                "x": [compute] * len(rows), "width": 0.7, "marker": {"color": colours.PURPOSES["compute"].light},
                "customdata": [f"computing: {quantity.seconds(compute)}"] * len(rows),
                "hovertemplate": "%{customdata}<extra></extra>",
            },
            {
                "type": "bar", "orientation": "h", "name": "waiting", "legendgroup": "waiting", "y": rows,
                "x": waiting, "width": 0.7, "marker": {"color": colours.PURPOSES["data"].light},
                "text": texts, "textposition": "outside", "cliponaxis": False,
                "textfont": {"size": 12, "color": colours.MUTED.light},
                "customdata": [
                    f"<b>{plain(way.name)}</b>: {plain(way.what)}<br>waiting for the network: "
                    f"{quantity.seconds(wait)}, {quantity.count(way.launches)} operations per step"
                    for way, wait in zip(ways, waiting, strict=True)
                ],
                "hovertemplate": "%{customdata}<extra></extra>",
            },
        ],
        "layout": layout(
            34 * len(rows) + 80,
            barmode="stack",
            xaxis=seconds_axis("", [longest], log=False, room=0.2),
            yaxis=axis(
                range=[len(rows) - 0.4, -0.6], showgrid=False, tickvals=rows, ticktext=[clipped(n) for n in names]
            ),
            shapes=[_upright(answer.bounds.step_s)],
        ),
    }  # fmt: skip
    return Chart(
        "ways",
        f"Step time under {len(ways)} methods of ordering communication",
        (View("", figure),),
        (
            Swatch("computing", colours.PURPOSES["compute"], group="computing"),
            Swatch("waiting for the network", colours.PURPOSES["data"], group="waiting"),
            Swatch(f"lower bound, {quantity.seconds(answer.bounds.step_s)}", palette.INK, "dash"),
        ),
        caption=f"The bound: {answer.bound_in_words()}.",
    )


def settings_chart(answer: OverlapAnswer) -> Chart | None:
    """The step over partition sizes, one curve a credit; None where nothing was searched."""
    trials = answer.tuned.trials
    if len({trial.partition_bytes for trial in trials}) < 3:
        return None
    chosen = answer.tuned.best
    by_size: dict[float, float] = {}
    for trial in trials:
        by_size[trial.partition_bytes] = min(trial.step_s, by_size.get(trial.partition_bytes, trial.step_s))
    sizes = sorted(by_size)
    steps = [by_size[size] for size in sizes]
    data = [
        _curve("best credit for each size", sizes, steps, palette.BLUE, quantity.size),
        {
            "type": "scatter", "mode": "markers", "x": [chosen.partition_bytes], "y": [chosen.step_s],
            "marker": {"size": 11, "color": colours.ACCENT.light, "line": {"color": palette.INK.light, "width": 1.5}},
            "customdata": [
                f"chosen: pieces of {quantity.size(chosen.partition_bytes)}, credit "
                f"{quantity.size(chosen.credit_bytes)}: {quantity.seconds(chosen.step_s)}"
            ],
            "hovertemplate": "%{customdata}<extra></extra>",
        },
    ]  # fmt: skip
    low, high = min(steps), max(steps)
    pad = 0.08 * (high - low) or 0.01 * high
    figure: Figure = {
        "data": data,
        "layout": layout(
            320,
            xaxis=given_axis("size of a piece", sizes, quantity.size),
            yaxis=_zoomed("time of a step", low - pad, high + pad),
        ),
    }
    return Chart(
        "settings",
        f"Step time over {len(sizes)} sizes of pieces",
        (View("", figure),),
        (Swatch("best credit for each size", palette.BLUE, "line"), Swatch("chosen", colours.ACCENT, "dot")),
        caption="Small pieces let urgent gradients pass early and pay a start-up each; large ones hold them up. The "
        f"axis does not begin at 0. Found by {answer.tuned.method}.",
    )


def speeds_chart(rows: Sequence[SpeedRow], compute_s: float) -> Chart:
    """Every way over speeds of the network, in parts of the lower bound and in seconds."""
    names = list(dict.fromkeys(row.way for row in rows))
    speeds = sorted({row.bandwidth for row in rows})
    step = {(row.way, row.bandwidth): row.step_s for row in rows}
    bound = {row.bandwidth: row.lower_bound_s for row in rows}
    ratio = {name: [step[name, speed] / bound[speed] for speed in speeds] for name in names}
    high = max(max(values) for values in ratio.values())
    colour = METHODS.colours()
    above: Figure = {
        "data": [_curve(name, speeds, ratio[name], colour[name], quantity.bandwidth, quantity.times) for name in names],
        "layout": layout(
            360,
            xaxis=_speed_axis(speeds),
            yaxis=axis("step over the lower bound", range=[1 - 0.04 * (high - 1), high + 0.06 * (high - 1) + 1e-6]),
        ),
    }
    seconds = [step[name, speed] for name in names for speed in speeds]
    absolute: Figure = {
        "data": [
            *(
                _curve(name, speeds, [step[name, speed] for speed in speeds], colour[name], quantity.bandwidth)
                for name in names
            ),
            _curve("lower bound", speeds, [bound[speed] for speed in speeds], palette.INK, quantity.bandwidth,
                   dash="dash"),
        ],
        "layout": layout(
            360,
            xaxis=_speed_axis(speeds),
            yaxis=value_axis("time of a step", [*seconds, compute_s], quantity.seconds, log=True),
        ),
    }  # fmt: skip
    return Chart(
        "speeds",
        f"Step time of {len(names)} methods over {len(speeds)} speeds of the network",
        (View("over the lower bound", above), View("time of a step", absolute)),
        (
            *(Swatch(name, colour[name], "line", group=name) for name in names),
            Swatch("lower bound", palette.INK, "dash"),
        ),
        choose="Show",
        caption="Order matters where computing and the network take about as long; a network that is far too slow or "
        "more than fast enough leaves nothing to gain.",
    )


def _curve(
    name: str, xs: Sequence[float], ys: Sequence[float], colour: Colour, write_x: Write,
    write_y: Write = quantity.seconds, *, dash: str = "solid",
) -> Figure:  # fmt: skip
    return {
        "type": "scatter", "mode": "lines+markers", "name": name, "legendgroup": name, "x": list(xs), "y": list(ys),
        "line": {"color": colour.light, "width": 2, "dash": dash},
        "marker": {"size": 6 if dash == "solid" else 1, "color": colour.light},
        "customdata": [f"<b>{plain(name)}</b>, {write_x(x)}: {write_y(y)}" for x, y in zip(xs, ys, strict=True)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _zoomed(title: str, low: float, high: float) -> Figure:
    """A linear axis over seconds that does not begin at 0, with ticks at round numbers."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    ticks = [float(f"{at * step:.12g}") for at in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return axis(title, range=[low, high], tickvals=ticks, ticktext=[quantity.seconds(tick) for tick in ticks])


def _speed_axis(speeds: Sequence[float]) -> Figure:
    """A logarithmic axis with a tick at every speed: networks are sold in these."""
    low, high = math.log10(min(speeds)), math.log10(max(speeds))
    pad = 0.04 * (high - low) or 0.1
    return axis(
        "speed of a server's NIC",
        type="log",
        range=[low - pad, high + pad],
        tickvals=list(speeds),
        ticktext=[quantity.bandwidth(speed) for speed in speeds],
    )


def _upright(x: float) -> Figure:
    return {
        "type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": x, "x1": x,
        "line": {"color": palette.INK.light, "width": 1.5, "dash": "dash"},
    }  # fmt: skip
