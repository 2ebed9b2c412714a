"""Orders of communication in charts: each beside the bound, over partition sizes, and over speeds of the network."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ropewalk import palette
from ropewalk.overlap.answer import OverlapAnswer
from ropewalk.overlap.methods import METHODS, MethodStep
from ropewalk.overlap.study import SpeedRow
from ropewalk.palette import Colour
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, given_axis, layout, seconds_axis, value_axis
from ropewalk.report.chart import Chart, Swatch, View, clipped, plain

Write = Callable[[float], str]


@dataclass(frozen=True)
class StepBar:
    """One step as a bar."""

    name: str
    step_s: float
    hover: str


def methods_chart(answer: OverlapAnswer) -> Chart:
    """Seconds of a step under every method, computing and waiting apart, and the bound that none can pass."""
    compute = answer.tensors.compute_s
    equal: dict[tuple[float, int], list[MethodStep]] = {}
    for method in sorted(answer.methods, key=lambda method: (method.time_s, method.launches)):
        equal.setdefault((method.time_s, method.launches), []).append(method)
    bars = [
        StepBar(
            ", ".join(method.name for method in methods),
            step_s,
            "<br>".join(f"<b>{plain(method.name)}</b>: {plain(method.what)}" for method in methods)
            + "<br>exposed communication: "
            f"{quantity.seconds(max(0.0, step_s - compute))}, {quantity.count(launches)} operations per step",
        )
        for (step_s, launches), methods in equal.items()
    ]
    title = f"Step time under {len(answer.methods)} communication orders"
    return steps_chart(
        "ways", title, bars, compute, answer.bounds.step_s, f"The bound: {answer.bound_in_words()}.",
        best_s=answer.best.time_s,
    )  # fmt: skip


def steps_chart(
    key: str, title: str, bars: Sequence[StepBar], compute_s: float, bound_s: float, caption: str,
    best_s: float | None = None,
) -> Chart:  # fmt: skip
    """Bars of steps, computing and waiting apart, and a line for the bound; ratios are to the best."""
    rows = list(range(len(bars)))
    waiting = [max(0.0, bar.step_s - compute_s) for bar in bars]
    best = min(bar.step_s for bar in bars) if best_s is None else best_s
    texts = [
        quantity.seconds(bar.step_s) + ("" if bar.step_s == best else f" · {quantity.times(bar.step_s / best)}")
        for bar in bars
    ]
    figure: Figure = {
        "data": [
            {
                "type": "bar", "orientation": "h", "name": "computing", "legendgroup": "computing", "y": rows,
                "x": [compute_s] * len(rows), "width": 0.7, "marker": {"color": colours.PURPOSES["compute"].light},
                "customdata": [f"compute: {quantity.seconds(compute_s)}"] * len(rows),
                "hovertemplate": "%{customdata}<extra></extra>",
            },
            {
                "type": "bar", "orientation": "h", "name": "waiting", "legendgroup": "waiting", "y": rows,
                "x": waiting, "width": 0.7, "marker": {"color": colours.PURPOSES["data"].light},
                "text": texts, "textposition": "outside", "cliponaxis": False,
                "textfont": {"size": 12, "color": colours.MUTED.light},
                "customdata": [bar.hover for bar in bars],
                "hovertemplate": "%{customdata}<extra></extra>",
            },
        ],
        "layout": layout(
            34 * len(rows) + 80,
            barmode="stack",
            xaxis=seconds_axis("", [max(bar.step_s for bar in bars)], log=False, room=0.2),
            yaxis=axis(
                range=[len(rows) - 0.4, -0.6], showgrid=False, tickvals=rows,
                ticktext=[clipped(bar.name) for bar in bars],
            ),
            shapes=[_upright(bound_s)],
        ),
    }  # fmt: skip
    return Chart(
        key,
        title,
        (View("", figure),),
        (
            Swatch("compute", colours.PURPOSES["compute"], group="computing"),
            Swatch("exposed communication", colours.PURPOSES["data"], group="waiting"),
            Swatch(f"lower bound, {quantity.seconds(bound_s)}", palette.INK, "dash"),
        ),
        caption=caption,
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
        _curve("best credit per size", sizes, steps, palette.BLUE, quantity.size),
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
            xaxis=given_axis("partition size", sizes, quantity.size),
            yaxis=_zoomed("step time", low - pad, high + pad),
        ),
    }
    return Chart(
        "settings",
        f"Step time over {len(sizes)} partition sizes",
        (View("", figure),),
        (Swatch("best credit per size", palette.BLUE, "line"), Swatch("chosen", colours.ACCENT, "dot")),
        caption="Small partitions let urgent gradients overtake early but pay a start-up latency each; large ones "
        f"delay them. The axis does not start at 0. The search was {answer.tuned.method}.",
    )


def speeds_chart(rows: Sequence[SpeedRow], compute_s: float, *, mixes: bool = False) -> Chart:
    """Every method over speeds of the network, in parts of the lower bound and in seconds.

    Where reductions take time (`mixes`), a faster network does not hide all communication.
    """
    names = list(dict.fromkeys(row.method for row in rows))
    speeds = sorted({row.bandwidth for row in rows})
    step = {(row.method, row.bandwidth): row.step_s for row in rows}
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
            yaxis=value_axis("step time", [*seconds, compute_s], quantity.seconds, log=True),
        ),
    }  # fmt: skip
    return Chart(
        "speeds",
        f"Step time of {len(names)} methods over {len(speeds)} network bandwidths",
        (View("over the lower bound", above), View("step time", absolute)),
        (
            *(Swatch(name, colour[name], "line", group=name) for name in names),
            Swatch("lower bound", palette.INK, "dash"),
        ),
        choose="Show",
        caption="The order matters where computation and communication take about equally long; on a far slower "
        + (
            "network there is nothing to gain, and on a faster one reductions still take their time."
            if mixes
            else "or far faster network there is nothing to gain."
        ),
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
        "NIC bandwidth",
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
