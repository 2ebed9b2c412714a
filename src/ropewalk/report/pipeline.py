"""The page of a pipeline: its timetable over time, other plans, stages, memory, and how timetables compare."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.pipeline.answer import PipelineAnswer
from ropewalk.pipeline.judge import Judged
from ropewalk.pipeline.schedules import pieces_each
from ropewalk.pipeline.timetable_study import communication_study, memory_study
from ropewalk.report import quantity
from ropewalk.report.page import render
from ropewalk.report.pipeline_charts import (
    alternatives_chart,
    balance_chart,
    communication_chart,
    memory_study_chart,
    plan_rows,
    stage_memory_chart,
)
from ropewalk.report.pipeline_timeline import timetable_timeline
from ropewalk.report.step_timeline import StepTimeline

STUDIED_DEVICES = (2, 8)
"""The study of timetables is of a pipeline as deep as the plan, within these."""
STUDIED_MICRO_BATCHES = 4
"""For each device of the study."""
MOST_GPUS_LISTED = 8
AGAINST = ("gpipe", "dapple-released", "straight", "pipedream")
"""Whose timetable is drawn below the plan's: the first of them that fits."""


@dataclass(frozen=True)
class StageRow:
    """One stage of the plan."""

    number: int
    layers: str
    gpus: str
    replicas: int
    tensor: int
    forward_s: float
    backward_s: float
    all_reduce_s: float
    memory_bytes: float
    average_memory_bytes: float


@dataclass(frozen=True)
class Other:
    """Another plan's timetable."""

    title: str
    timeline: StepTimeline


def pipeline_page(answer: PipelineAnswer) -> str:
    """One self-contained HTML page for a plan."""
    devices = min(max(len(answer.best.plan.devices), STUDIED_DEVICES[0]), STUDIED_DEVICES[1])
    micro_batches = STUDIED_MICRO_BATCHES * devices
    counts = range(devices, 2 * micro_batches + 1, max(1, devices // 2))
    charts = [
        alternatives_chart(answer),
        balance_chart(answer),
        stage_memory_chart(answer, device_names(answer.best)),
        communication_chart(communication_study(devices, micro_batches), devices, micro_batches),
        memory_study_chart(memory_study(devices, counts), devices),
    ]
    return render(
        "pipeline.html",
        title=f"{answer.profile.name} on {answer.machines.gpus} GPUs: a pipeline",
        charts=charts,
        headline=headline(answer),
        lead=f"{answer.why()[0].upper()}{answer.why()[1:]}.",
        facts=_facts(answer),
        answer=answer,
        plans=plan_rows(answer),
        missing=[other for other in answer.alternatives if other.judged is None],
        timeline=timetable_timeline("timetable", answer.best.run, device_names(answer.best)),
        against=_against(answer),
        stages=stage_rows(answer),
        notes=_notes(answer),
    )


def headline(answer: PipelineAnswer) -> str:
    plan = answer.best.plan
    name, step = answer.profile.name, quantity.seconds(answer.promised_s)
    sizes = [len(gpus) for gpus in plan.devices]
    if plan.gpus == 1:
        return f"{name} is fastest on a single GPU: {step} per step"
    if len(sizes) == 1:
        return f"{name} is fastest without a pipeline: data parallel, {step} per step"
    gain = answer.speedup_over_dp
    over = (
        "; data parallelism does not fit" if gain is None else f", {quantity.times(gain)} as fast as data parallelism"
    )
    each = f"{sizes[0]} GPU{'s' if sizes[0] > 1 else ''} each" if len(set(sizes)) == 1 else f"{plan.strategy} GPUs"
    return f"{name} in {len(sizes)} stages of {each} takes {step} per step{over}"


def _layers_in_words(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)})"


def device_names(judged: Judged) -> tuple[str, ...]:
    """What lanes are called: the stages of a device and its GPUs."""
    plan = judged.plan
    found = []
    for gpus in plan.devices:
        stages = [str(at % len(plan.stages)) for at, piece in enumerate(plan.pieces) if piece.workers == gpus]
        noun = "stage" if len(stages) == 1 else "stages"
        found.append(f"{noun} {', '.join(stages)} · {gpus_in_words(gpus)}")
    return tuple(found)


def gpus_in_words(gpus: tuple[int, ...]) -> str:
    if len(gpus) == 1:
        return f"GPU {gpus[0]}"
    if gpus[-1] - gpus[0] == len(gpus) - 1:
        return f"GPUs {gpus[0]}–{gpus[-1]}"
    shown = ", ".join(map(str, gpus[:MOST_GPUS_LISTED]))
    return f"GPUs {shown}" + (f", … ({len(gpus)})" if len(gpus) > MOST_GPUS_LISTED else "")


def stage_rows(answer: PipelineAnswer) -> list[StageRow]:
    plan, times = answer.best.plan, answer.best.run.times
    memory = dict(zip(plan.devices, answer.best.memory_bytes, strict=True))
    average = dict(zip(plan.devices, answer.best.average_memory_bytes, strict=True))
    names = answer.profile.names
    return [
        StageRow(
            number % len(plan.stages),
            _layers_in_words([names[at] for at in stage.layers]),
            gpus_in_words(stage.workers),
            stage.replicas,
            stage.tensor,
            float(times.forward[number]),
            float(times.backward[number] + times.weight[number]),
            float(times.all_reduce[number]),
            memory[stage.workers],
            average[stage.workers],
        )
        for number, stage in enumerate(plan.pieces)
    ]


def _against(answer: PipelineAnswer) -> Other | None:
    """A timetable to compare with, of those that were not chosen."""
    by_name = {other.name: other for other in answer.alternatives}
    for name in AGAINST:
        other = by_name.get(name)
        if other is not None and other.judged is not None and other.judged.plan != answer.best.plan:
            judged = other.judged
            title = f"{other.what}: {quantity.seconds(judged.step_s)} by the planner's clock"
            return Other(title, timetable_timeline("timetable-against", judged.run, device_names(judged)))
    return None


def _facts(answer: PipelineAnswer) -> list[tuple[str, str]]:
    best, plan, machines = answer.best, answer.best.plan, answer.machines
    gain = answer.speedup_over_dp
    sizes = [end - begin for begin, end in zip((0, *machines.separators), machines.separators, strict=False)]
    shape = f"{len(sizes)} × {sizes[0]}" if len(set(sizes)) == 1 else ", ".join(map(str, sizes))
    return [
        ("Step time", quantity.seconds(answer.promised_s)),
        *([] if answer.expected is None else [("Interval of the step time", answer.expected.said())]),
        ("Planner's estimate", quantity.seconds(answer.step_s)),
        ("Samples per second", quantity.rate(plan.global_batch / answer.promised_s)),
        ("Against data parallelism", "it does not fit" if gain is None else quantity.times(gain)),
        ("Against one GPU", quantity.times(answer.single_gpu_s / answer.promised_s)),
        ("Timetable", plan.schedule),
        ("Micro-batches", f"{quantity.count(plan.micro_batches)} of {quantity.count(plan.micro_batch)} samples"),
        ("Idle", quantity.percent(best.run.bubble)),
        ("Exposed all-reduce", quantity.seconds(best.exposed_sums_s)),
        ("Communication to compute ratio", f"{best.run.times.communication_ratio:.2f}"),
        ("Activations", "recomputed" if plan.recompute else "kept"),
        ("GPUs", f"{shape}, {quantity.gigabytes(machines.inside)} inside"),
        ("NICs per server", f"{machines.nics} × {quantity.bandwidth(machines.p2p_between)}"),
        ("Plans timed", quantity.count(answer.searched.plans)),
    ]  # fmt: skip


def _notes(answer: PipelineAnswer) -> list[str]:
    """How far was searched, and what is assumed."""
    plan = answer.best.plan
    notes = [
        "Every plan was timed or excluded by a bound: this is the optimum under these costs."
        if answer.searched.exact
        else f"The search is not exhaustive: {'; '.join(answer.searched.restrictions)}.",
        "Every plan on this page was timed by the same event simulation of its timetable; formulas only propose "
        "candidates.",
        "A micro-batch is split over the replicas of a stage; between stages with m and n replicas, m + n − gcd(m, n) "
        "messages are sent.",
        "Gradients of a stage are all-reduced when its last backward pass is done"
        + (", and while it still runs" if answer.terms.overlap_sums else "")
        + "; later stages hide theirs behind the backward passes of earlier ones.",
        f"Costs: {answer.profile.source}.",
    ]
    if pieces_each(plan.schedule) > 1:
        notes.append("Every device holds two model chunks; chunks are called stages here.")
    return notes
