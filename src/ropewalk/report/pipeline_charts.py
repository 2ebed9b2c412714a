"""A pipeline in charts: against other plans, what stages take and hold, and how timetables compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ropewalk import palette
from ropewalk.palette import Colour
from ropewalk.pipeline.answer import PipelineAnswer
from ropewalk.pipeline.judge import Judged
from ropewalk.pipeline.timetable_study import CommunicationRow, MemoryRow
from ropewalk.report import colours, quantity
from ropewalk.report.axis import Figure, axis, layout, seconds_axis
from ropewalk.report.chart import Chart, Swatch, View, plain
from ropewalk.report.ranking import ranking
from ropewalk.report.step_bars import MemoryBar, memory_chart
from ropewalk.timetable.named import TIMETABLES

FOUND = "found"


@dataclass(frozen=True)
class PlanRow:
    """Plans that come out equal, the best known first."""

    names: tuple[str, ...]
    what: str
    judged: Judged

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def equal(self) -> int:
        return len(self.names)


def plan_rows(answer: PipelineAnswer) -> list[PlanRow]:
    """The plan and those that it is compared with, fastest first; plans that differ in nothing shown share a row."""
    plans = [(FOUND, "the plan above", answer.best)]
    plans += [(other.name, other.what, other.judged) for other in answer.alternatives if other.judged is not None]
    ordered = sorted(plans, key=lambda one: (one[0] != FOUND, answer.to_best(one[2])))
    rows: dict[tuple[object, ...], PlanRow] = {}
    for name, what, judged in ordered:
        key = (
            judged.plan.strategy, quantity.seconds(answer.shown_s(judged)), _is_estimate(answer, judged),
            quantity.size(max(judged.memory_bytes)), quantity.percent(judged.run.bubble),
        )  # fmt: skip
        row = rows.get(key)
        rows[key] = PlanRow((name,), what, judged) if row is None else replace(row, names=(*row.names, name))
    return list(rows.values())


def _is_estimate(answer: PipelineAnswer, judged: Judged) -> bool:
    return bool(answer.simulated) and answer.simulated_s(judged) is None


def alternatives_chart(answer: PipelineAnswer) -> Chart:
    """The step, and the fullest GPU, of every plan that fits."""
    rows = plan_rows(answer)
    names = [row.name if row.equal == 1 else f"{row.name} (= {row.equal - 1} more)" for row in rows]
    found = names[0]
    steps = [answer.shown_s(row.judged) for row in rows]
    held = [max(row.judged.memory_bytes) for row in rows]
    what = [f"{plain(', '.join(row.names))}: {plain(str(row.judged.plan))}" for row in rows]
    texts = [
        quantity.seconds(answer.shown_s(row.judged))
        + ("" if row.name == FOUND else f" · {quantity.times(answer.to_best(row.judged))}")
        + (" (estimate)" if _is_estimate(answer, row.judged) else "")
        for row in rows
    ]
    sizes = [quantity.size(size) for size in held]
    return Chart(
        "alternatives",
        f"Step time and memory of the plan and {len(rows) - 1} others",
        (
            View("step time", ranking(names, steps, texts, what, quantity.seconds, found)),
            View("peak memory", ranking(names, held, sizes, what, quantity.size, found)),
        ),
        (Swatch("the plan", colours.ACCENT), Swatch("baselines", colours.OTHER)),
        choose="Show",
    )


def balance_chart(answer: PipelineAnswer) -> Chart:
    """What every stage computes for a micro-batch, and what every cut hands over there and back."""
    best = answer.best
    times, stages = best.run.times, len(best.plan.stages)
    rows: list[tuple[str, dict[str, float]]] = []
    for number in range(times.pieces):
        split = float(times.weight[number])
        parts = {"forward": float(times.forward[number])}
        parts |= {"gradients of inputs" if split else "backward": float(times.backward[number])}
        parts |= {"gradients of weights": split} if split else {}
        copy, stage = divmod(number, stages)
        rows.append((f"stage {stage}{', second copy' * copy}", parts))
        if stage + 1 < stages:
            ahead, back = float(times.send_forward[number]), float(times.send_backward[number])
            rows.append(
                (f"cut after {stage}{', second copy' * copy}", {"activations sent": ahead, "gradients sent": back})
            )
    looks: dict[str, Colour] = {
        "forward": palette.BLUE,
        "backward": palette.GREEN,
        "gradients of inputs": palette.GREEN,
        "gradients of weights": palette.AMBER,
        "activations sent": palette.SKY,
        "gradients sent": palette.PINK,
    }
    used = [look for look in looks if any(look in parts for _, parts in rows)]
    longest = max(sum(parts.values()) for _, parts in rows)
    thick = 24 if len(rows) <= 16 else 15
    figure: Figure = {
        "data": [
            {
                "type": "bar", "orientation": "h", "name": look, "legendgroup": look, "y": list(range(len(rows))),
                "x": [parts.get(look, 0.0) for _, parts in rows],
                "marker": {"color": looks[look].light, "line": {"color": colours.PAPER.light, "width": 1}},
                "customdata": [
                    f"<b>{name}</b>, {look}: {quantity.seconds(parts.get(look, 0.0))}" for name, parts in rows
                ],
                "hovertemplate": "%{customdata}<extra></extra>",
            }
            for look in used
        ],
        "layout": layout(
            thick * len(rows) + 86,
            barmode="stack",
            bargap=0.22,
            xaxis=seconds_axis("of one micro-batch", [longest], log=False),
            yaxis=axis(
                range=[len(rows) - 0.45, -0.55], showgrid=False, tickvals=list(range(len(rows))),
                ticktext=[name for name, _ in rows],
            ),
        ),
    }  # fmt: skip
    return Chart(
        "balance",
        f"Time of a micro-batch in {stages} stages and between them",
        (View("", figure),),
        tuple(Swatch(look, looks[look], group=look) for look in used),
        caption="Stages work concurrently, on one micro-batch each; the longest row sets the pace of the pipeline. "
        "The two directions of a cut are independent.",
    )


def stage_memory_chart(answer: PipelineAnswer, names: Sequence[str]) -> Chart:
    """What a GPU of every device holds at its fullest, and on average; `names` says what devices are called."""
    best, plan, terms = answer.best, answer.best.plan, answer.terms
    bars = []
    for name, gpus, total, average in zip(
        names, plan.devices, best.memory_bytes, best.average_memory_bytes, strict=True
    ):
        mine = [piece for piece in plan.pieces if piece.workers == gpus]
        if any(stage.tensor > 1 for stage in mine):
            parts = {"weights and activations": total}
        else:
            weights = sum(answer.profile.parameters(stage.first, stage.last) for stage in mine)
            parts = {"weights": weights, "gradients and optimiser": weights * (terms.state_multiple - 1)}
            parts |= {"activations": max(0.0, total - sum(parts.values()))}
        bars.append(MemoryBar(name, parts, terms.memory_bytes, average))
    return memory_chart(bars)


def communication_chart(rows: Sequence[CommunicationRow], devices: int, micro_batches: int) -> Chart:
    """How timetables take communication: the step over that without bubble and communication."""
    return _study_chart(
        "communication",
        f"Step time of timetables over communication, {devices} equal stages, {micro_batches} micro-batches",
        {name: [(row.ratio, row.makespan) for row in rows if row.timetable == name] for name in TIMETABLES},
        "round-trip transfer time over the compute time of a stage",
        "step time over compute time",
        lambda ratio: f"{ratio:g}",
        quantity.times,
        f"{devices} equal stages with forward, input-gradient and weight-gradient passes of the same length, "
        f"{micro_batches} micro-batches. 1F1B exposes every transfer; a timetable that runs enough extra micro-batches "
        "ahead hides them.",
    )


def memory_study_chart(rows: Sequence[MemoryRow], devices: int) -> Chart:
    """What timetables keep as micro-batches grow."""
    return _study_chart(
        "live",
        f"Activations kept by timetables over micro-batches, {devices} equal stages",
        {name: [(float(row.micro_batches), row.peak_live) for row in rows if row.timetable == name]
         for name in TIMETABLES},
        "micro-batches per step",
        "micro-batches kept on the fullest device",
        lambda count: f"{count:g}",
        lambda live: f"{live:g}",
        f"{devices} equal stages. GPipe keeps every micro-batch; timetables with early backward passes keep at most as "
        "many as there are stages.",
    )  # fmt: skip


Write = Callable[[float], str]


def _study_chart(
    key: str, summary: str, curves: dict[str, list[tuple[float, float]]], x_title: str, y_title: str, write_x: Write,
    write_y: Write, caption: str,
) -> Chart:  # fmt: skip
    colour = TIMETABLES.colours()
    drawn = {name: points for name, points in curves.items() if points}
    xs = [x for points in drawn.values() for x, _ in points]
    ys = [y for points in drawn.values() for _, y in points]
    data = [
        {
            "type": "scatter", "mode": "lines+markers", "name": TIMETABLES[name].label, "legendgroup": name,
            "x": [x for x, _ in points], "y": [y for _, y in points],
            "line": {"color": colour[name].light, "width": 2},
            "marker": {"size": 5, "color": colour[name].light},
            "customdata": [f"<b>{TIMETABLES[name].label}</b>, {write_x(x)}: {write_y(y)}" for x, y in points],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
        for name, points in drawn.items()
    ]  # fmt: skip
    low = min(ys)
    base = 0.0 if low < 0.5 * max(ys) else low - 0.06 * (max(ys) - low or 1.0)
    figure: Figure = {
        "data": data,
        "layout": layout(
            360,
            xaxis=axis(x_title, range=[min(xs) - 0.02 * max(xs), max(xs) * 1.02]),
            yaxis=axis(y_title, range=[base, max(ys) * 1.04]),
        ),
    }
    legend = tuple(Swatch(TIMETABLES[name].label, colour[name], "line", group=name) for name in drawn)
    return Chart(key, summary, (View("", figure),), legend, caption=caption)
