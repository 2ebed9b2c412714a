"""Replays of a trace in charts: mean times, distributions, the cluster over time, and what jobs waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ropewalk import palette
from ropewalk.palette import Colour
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, layout, value_axis
from ropewalk.report.chart import Chart, Swatch, View
from ropewalk.report.cluster_words import REASONS, duration, reason
from ropewalk.tenancy.compared import Comparison
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.record import BEHIND_HEAD
from ropewalk.tenancy.study import ClusterStudy
from ropewalk.tenancy.timeline import Curves, Timeline

REASON_COLOURS = {
    "behind-the-head": colours.IDLE,
    "gpu-shortage": palette.SKY,
    "server-fragmentation": palette.AMBER,
    "network-fragmentation": palette.RED,
    "restart": palette.PINK,
}
RUNNING, WAITING = palette.BLUE, palette.AMBER
TIMES = {"jct": "completion", "jrt": "running", "jwt": "waiting"}
"""Completion is running and waiting together."""
MOST_POINTS = 250
"""Of one curve: more than a screen tells apart."""
MOST_POINTS_TOGETHER = 1500
"""Of the curves of all policies in one figure: a page stays under 1 MB."""


def means_chart(found: Comparison) -> Chart:
    """Running and waiting time under every policy, means over jobs and seeds; together they are the completion time."""
    rows = list(range(len(found.policies)))
    completion = {one.name: found.spread(one.name, "mean_jct_s").mean for one in found.policies}
    ranked = [name for name in completion if found.starts_as_many(name, found.verdict.best)]
    least = min(completion[name] for name in ranked)
    texts = [
        "no job can start" if found.starts_none(name)
        else _mean_said(mean, least) if name in ranked
        else f"{duration(mean)}, not all jobs"
        for name, mean in completion.items()
    ]  # fmt: skip
    parts = {
        measure: [found.spread(one.name, measure).mean for one in found.policies]
        for measure in ("mean_jrt_s", "mean_jwt_s")
    }
    over = f"mean over jobs and {len(found.seeds)} seeds" if len(found.seeds) > 1 else "mean over jobs"
    figure: Figure = {
        "data": [
            _bars("running", rows, parts["mean_jrt_s"], RUNNING),
            _bars("waiting", rows, parts["mean_jwt_s"], WAITING)
            | {
                "text": texts,
                "textposition": "outside",
                "cliponaxis": False,
                "textfont": {"size": 12, "color": colours.MUTED.light},
            },
        ],
        "layout": layout(
            38 * len(rows) + 90,
            barmode="stack",
            xaxis=_time_axis(max(completion.values()) * 1.22, over),
            yaxis=_names_axis(found.first),
        ),
    }
    return Chart(
        "means",
        f"Mean running and waiting time of jobs under {len(rows)} policies",
        (View("", figure),),
        (Swatch("running", RUNNING, group="running"), Swatch("waiting", WAITING, group="waiting")),
        caption="Isolation trades waiting time for run time: jobs run faster but may queue longer. Near saturation, "
        "queueing amplifies every extra second of run time. Multiples are of the shortest mean completion of policies "
        "that start all the jobs that the best one starts.",
    )


def _mean_said(mean: float, least: float) -> str:
    """Beside a bar: how long, and how many times the least of all."""
    return duration(mean) + ("" if mean == least else f" · {quantity.times(mean / least)}")


def distribution_chart(study: ClusterStudy) -> Chart:
    """What part of the jobs took at most so long, completion, running and waiting."""
    return Chart(
        "distribution",
        "Cumulative distributions of completion, running and waiting times",
        tuple(View(name, _distribution(study, kind)) for kind, name in TIMES.items()),
        _legend(study),
        choose="Time",
        caption="Jobs that did not wait are at the left edge of the waiting times.",
    )


def over_time_chart(study: ClusterStudy) -> Chart:
    """GPUs in use and jobs in the queue, from the first arrival to the last finish."""
    gpus = study.plant.gpus
    used = _over_time(study, lambda curves: curves.used_gpus / gpus, "GPUs in use", quantity.percent, top=1.0)
    queued = _over_time(study, lambda curves: curves.queued_jobs.astype(float), "jobs in the queue", _number)
    lost = _over_time(
        study, lambda curves: (curves.wanted_gpus - curves.used_gpus) / gpus, "idle GPUs that waiting jobs could use",
        quantity.percent,
    )  # fmt: skip
    return Chart(
        "over-time",
        "GPUs in use and jobs in the queue over time",
        (View("GPUs in use", used), View("queue", queued), View("idle but requested", lost)),
        _legend(study),
        choose="Show",
        caption="Idle but requested: GPUs that the next jobs in the queue would get if only the number of free "
        "GPUs mattered; whole servers or spines are lacking. Curves are means over equal intervals.",
    )


def reasons_chart(study: ClusterStudy) -> Chart | None:
    """Job-time of waiting by what was waited for; None where nobody waited."""
    runs = study.timelines
    causes = [_per_job(run, run.waiting_causes()) for run in runs]
    places = [_per_job(run, run.waiting_reasons()) for run in runs]
    shown = [name for name in REASONS if any(row.get(name) for row in (*causes, *places))]
    if not shown:
        return None
    lacked = [name for name in shown if name != BEHIND_HEAD]
    return Chart(
        "reasons",
        "Mean waiting time by reason under every policy",
        (
            View("all waiting time, by what the head lacked", _reasons(study, causes, lacked)),
            View("by place in the queue", _reasons(study, places, shown)),
        ),
        tuple(Swatch(reason(name), REASON_COLOURS[name], group=reason(name)) for name in shown),
        choose="Show",
        caption="Only the head of the queue is tried; jobs behind it wait for what the head waits for.",
    )


def _per_job(run: Timeline, total: Mapping[str, float]) -> dict[str, float]:
    return {name: seconds / max(len(run.jobs), 1) for name, seconds in total.items()}


def _reasons(study: ClusterStudy, per_job: Sequence[dict[str, float]], shown: Sequence[str]) -> Figure:
    rows = list(range(len(per_job)))
    totals = [sum(row.get(name, 0.0) for name in shown) for row in per_job]
    return {
        "data": [
            _bars(reason(name), rows, [row.get(name, 0.0) for row in per_job], REASON_COLOURS[name]) for name in shown
        ],
        "layout": layout(
            38 * len(rows) + 90, barmode="stack", xaxis=_time_axis(max(totals) * 1.04 or 1.0, "mean over jobs"),
            yaxis=_names_axis(study),
        ),
    }  # fmt: skip


def _bars(name: str, rows: Sequence[int], values: Sequence[float], colour: Colour) -> Figure:
    return {
        "type": "bar", "orientation": "h", "name": name, "legendgroup": name, "y": list(rows), "x": list(values),
        "width": 0.7, "marker": {"color": colour.light},
        "customdata": [f"{name}: {duration(value)}" for value in values],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _names_axis(study: ClusterStudy) -> Figure:
    rows = list(range(len(study.policies)))
    names = [policy.name for policy in study.policies]
    return axis(range=[len(rows) - 0.4, -0.6], showgrid=False, tickvals=rows, ticktext=names)


def _legend(study: ClusterStudy) -> tuple[Swatch, ...]:
    return tuple(
        Swatch(name, colour, "dash" if name == "ideal" else "line", group=name)
        for name, colour in policy_colours(study).items()
    )


def policy_colours(study: ClusterStudy) -> dict[str, Colour]:
    """The colours of the policies of a study; another placement under the same routing gets one that nobody has."""
    names = [policy.name for policy in study.policies]
    return colours.of_names(names, POLICIES.colours(), (*palette.SERIES, *palette.MORE))


def _distribution(study: ClusterStudy, kind: str) -> Figure:
    most = points_per_curve(len(study.runs))
    columns = {policy.name: cumulative(run.times(kind), most) for policy, run in study.runs if run.jobs}
    positive = [value for times, _ in columns.values() for value in times.tolist() if value > 0] or [1.0]
    # Half of the shortest: where times of 0 are put on a logarithmic axis.
    floor = max(min(positive), max(positive) * 1e-6) / 2
    data = []
    for name, (times, part) in columns.items():
        shown = np.maximum(times, floor).tolist()
        data.append(
            _line(name, ": ", policy_colours(study)[name], shown, part.tolist(), [
                f"{quantity.percent(p)} of jobs within {duration(t)}"
                for t, p in zip(times.tolist(), part.tolist(), strict=True)
            ])
        )  # fmt: skip
    return {
        "data": data,
        "layout": layout(
            360,
            xaxis=_log_time_axis(f"{TIMES[kind]} time, logarithmic", floor, max(positive)),
            yaxis=_percent_axis("share of jobs", 1.0),
        ),
    }


def points_per_curve(curves: int) -> int:
    """Points of a curve in a figure of so many."""
    return min(MOST_POINTS, MOST_POINTS_TOGETHER // max(curves, 1))


def cumulative(times: NDArray[np.float64], most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(time, part of the jobs that took at most so long) at so many points at most."""
    ordered = np.sort(times)
    part = np.arange(1, len(ordered) + 1) / len(ordered)
    if len(ordered) <= most:
        return ordered, part
    kept = np.unique(np.linspace(0, len(ordered) - 1, most).round().astype(np.int64))
    return ordered[kept], part[kept]


def sampled(curves: Curves, values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of a step curve between edges; 0 where it has ended."""
    width = np.diff(curves.time_s)
    area = np.concatenate([[0.0], np.cumsum(values[:-1] * width)])
    return np.asarray(np.diff(np.interp(edges, curves.time_s, area)) / np.diff(edges), np.float64)


def _over_time(
    study: ClusterStudy, values: Callable[[Curves], NDArray[np.float64]], title: str, show: Callable[[float], str],
    top: float | None = None,
) -> Figure:  # fmt: skip
    begin = min(float(run.curves.time_s[0]) for run in study.timelines)
    end = max(float(run.curves.time_s[-1]) for run in study.timelines)
    end = end if end > begin else begin + 1.0
    edges = np.linspace(begin, end, points_per_curve(len(study.runs)) + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    data, high = [], top or 0.0
    for policy, run in study.runs:
        level = sampled(run.curves, values(run.curves), edges)
        last = _last_step(run, middle)
        shown, times = level[:last], middle[:last] - begin
        high = max(high, float(shown.max(initial=0.0)))
        data.append(
            _line(policy.name, ", ", policy_colours(study)[policy.name], times.tolist(), shown.tolist(), [
                f"{duration(at)}: {show(value)}"
                for at, value in zip(times.tolist(), shown.tolist(), strict=True)
            ])
        )  # fmt: skip
    yaxis = (
        _percent_axis(title, high or 1.0) if show is quantity.percent else value_axis(title, [high], show, log=False)
    )
    return {"data": data, "layout": layout(340, xaxis=_time_axis(end - begin), yaxis=yaxis)}


def _last_step(run: Timeline, middle: NDArray[np.float64]) -> int:
    return max(1, int(np.searchsorted(middle, run.curves.time_s[-1])))


def _line(name: str, joint: str, colour: Colour, xs: list[float], ys: list[float], texts: list[str]) -> Figure:
    """A curve; pointed at, it says its name, what joins it to the text, and the text of the point."""
    style = {"width": 1.6, "dash": "dash"} if name == "ideal" else {"width": 2}
    pen = {"color": colour.light} | style
    return {
        "type": "scatter", "mode": "lines", "name": name, "legendgroup": name, "x": _short(xs), "y": _short(ys),
        "line": pen,
        "customdata": texts, "hovertemplate": f"<b>{name}</b>{joint}%{{customdata}}<extra></extra>",
    }  # fmt: skip


def _short(values: list[float]) -> list[float]:
    """Six digits: more than a screen tells apart."""
    return [float(f"{value:.6g}") for value in values]


def _percent_axis(title: str, high: float) -> Figure:
    return value_axis(title, [high], lambda part: f"{100 * part:.3g} %", log=False)


TICKS = (0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36_000.0, 86_400.0, 864_000.0, 8_640_000.0)
"""Round times from a millisecond to a hundred days."""


def _log_time_axis(title: str, low: float, high: float) -> Figure:
    ticks = [tick for tick in TICKS if low <= tick <= high * 1.3]
    ends = np.log10(low), np.log10(high * 1.3)
    return axis(title, type="log", range=list(ends), tickvals=ticks, ticktext=[_round_time(tick) for tick in ticks])


STEPS = (
    1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 432_000, 864_000,
)  # fmt: skip
"""Spans between ticks that people read easily, in seconds."""


def _time_axis(span_s: float, title: str = "time") -> Figure:
    span_s = span_s or 1.0
    step = next((step for step in STEPS if span_s / step <= 9), span_s / 8) if span_s >= 3 else span_s / 4
    ticks = [float(at * step) for at in range(int(span_s / step) + 1)]
    return axis(title, range=[0, span_s], tickvals=ticks, ticktext=["0", *(_round_time(tick) for tick in ticks[1:])])


def _round_time(seconds: float) -> str:
    for size, unit in ((86_400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= size and (seconds >= 2 * size or seconds % size == 0):
            return f"{seconds / size:.4g} {unit}"
    return quantity.seconds(seconds)


def _number(value: float) -> str:
    return f"{value:.3g}"
