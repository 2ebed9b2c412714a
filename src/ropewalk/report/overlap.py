"""The page of an order of communication: methods beside the bound, before and after over time, settings, speeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ropewalk.overlap.answer import OverlapAnswer
from ropewalk.overlap.study import SpeedRow
from ropewalk.report import quantity
from ropewalk.report.overlap_charts import methods_chart, settings_chart, speeds_chart
from ropewalk.report.overlap_streams import ring_fact, stream_section
from ropewalk.report.overlap_timeline import method_timeline
from ropewalk.report.page import render
from ropewalk.report.step_timeline import StepTimeline

MOST_GROUPS = 40
MOST_NAMED = 6
NOTICED = 0.1
"""Part of computing above which reductions matter by themselves."""


@dataclass(frozen=True)
class Drawn:
    """One method over time."""

    name: str
    what: str
    timeline: StepTimeline


@dataclass(frozen=True)
class GroupRow:
    """Tensors that are all-reduced together."""

    tensors: str
    count: int
    size_bytes: float


def overlap_page(
    answer: OverlapAnswer,
    speeds: Sequence[SpeedRow] = (),
) -> str:
    """One self-contained HTML page; `speeds` adds a chart over networks."""
    charts = [methods_chart(answer)]
    found = settings_chart(answer)
    if found is not None:
        charts.append(found)
    streams = None if answer.streams is None else stream_section(answer.streams)
    if streams is not None:
        charts.append(streams.chart)
    if speeds:
        charts.append(speeds_chart(speeds, answer.tensors.compute_s, mixes=_mixes(answer)))
    return render(
        "overlap.html",
        title=f"{answer.tensors.model} on {answer.question.workers} GPUs: order of communication",
        charts=charts,
        headline=headline(answer),
        lead=f"{answer.why()[0].upper()}{answer.why()[1:]}.",
        facts=_facts(answer),
        best=answer.best,
        methods=sorted(answer.methods, key=lambda method: (method.time_s, method.launches)),
        compute_s=answer.tensors.compute_s,
        drawn=drawn(answer),
        streams=streams,
        fabric_streams=answer.fabric_streams,
        groups=group_rows(answer)[:MOST_GROUPS],
        groups_left=max(0, len(answer.best.groups) - MOST_GROUPS),
        notes=[*answer.notes, *_reading(answer)],
    )


def _mixes(answer: OverlapAnswer) -> bool:
    """Do reductions take long enough to matter on a network of any bandwidth?"""
    return answer.tensors.total_bytes / answer.link.mixed > NOTICED * answer.tensors.compute_s


def headline(answer: OverlapAnswer) -> str:
    best, usual = answer.best, answer.usual
    gain = usual.time_s / best.time_s
    start = f"A step of {answer.tensors.model} takes {quantity.seconds(best.time_s)}"
    if gain < 1 + 5e-4:
        return f"{start} under any order of communication"
    than = NAMES.get(usual.name, usual.name)
    return f"{start} with {NAMES.get(best.name, best.name)}, {quantity.percent(gain - 1)} faster than with {than}"


NAMES = {
    "fifo": "tensors in order of readiness",
    "buckets": "DDP's buckets",
    "merged": "merged gradients",
    "priority": "priorities",
    "released": "ByteScheduler's defaults",
    "byteps": "BytePS",
    "dear": "decoupled all-reduce",
    "fused": "fused, ordered all-reduce",
    "streamed": "streamed all-reduce",
}
"""As a sentence says them."""


def drawn(answer: OverlapAnswer) -> list[Drawn]:
    """Before and after: what frameworks do, then priorities, then the best, all to one scale."""
    names = ("fifo" if answer.link.duplex else "buckets", "priority", answer.best.name)
    chosen = [answer.method(name) for name in dict.fromkeys(names)]
    span = max(method.step_s for method in chosen)
    found = []
    for method in chosen:
        timeline = method_timeline(answer, method, span)
        if timeline is not None:
            found.append(Drawn(method.name, f"{method.what}: {quantity.seconds(method.step_s)}", timeline))
    return found


def group_rows(answer: OverlapAnswer) -> list[GroupRow]:
    names, sizes = answer.tensors.names, answer.tensors.size_bytes
    rows = []
    for group in answer.best.groups.members:
        listed = [names[tensor] for tensor in group]
        shown = ", ".join(listed) if len(listed) <= MOST_NAMED else f"{listed[0]} … {listed[-1]}"
        rows.append(GroupRow(shown, len(group), float(sizes[list(group)].sum())))
    return rows


def _facts(answer: OverlapAnswer) -> list[tuple[str, str]]:
    asked, best = answer.question, answer.best
    chosen = answer.tuned.best
    return [
        ("Step time", quantity.seconds(best.time_s)),
        ("Interval of the step time", answer.expected.said()),
        ("Simulated on" if answer.is_simulated else "Estimated for", str(asked.cluster.network)),
        ("Lower bound", quantity.seconds(answer.bounds.step_s)),
        ("Compute", quantity.seconds(answer.tensors.compute_s)),
        ("Exposed communication", quantity.seconds(answer.exposed_s)),
        ("Workers", _workers(asked.servers, asked.cluster.equal.gpus)),
        ("Synchronised by", "all-reduce" if not answer.link.duplex else "parameter servers"),
        ("Gradients", f"{quantity.size(answer.tensors.total_bytes)} in {quantity.count(len(answer.tensors))} tensors"),
        ("Gradient bytes per second", quantity.gigabytes(answer.link.bandwidth)),
        ("Start-up latency", quantity.seconds(answer.link.start_up_s)),
        ("Operations per step", quantity.count(best.launches)),
        *([] if answer.streams is None else [("Ring of the streamed all-reduce", ring_fact(answer.streams))]),
        ("Piece, credit of priorities", f"{quantity.size(chosen.partition_bytes)}, "
         f"{quantity.size(chosen.credit_bytes)}"),
        ("Costs", answer.tensors.source),
    ]  # fmt: skip


def _workers(servers: int, gpus: int) -> str:
    """How many servers of how many GPUs.

    >>> _workers(4, 1), _workers(1, 8)
    ('4 servers of 1 GPU', '1 server of 8 GPUs')
    """
    return f"{quantity.count(servers)} server{'s' * (servers != 1)} of {gpus} GPU{'s' * (gpus != 1)}"


def _reading(answer: OverlapAnswer) -> list[str]:
    """What is assumed."""
    return [
        "Time 0 is the start of a backward pass; the step ends with the following forward pass, so that the "
        "communication "
        "between them is in the middle.",
        "Timelines and speeds are estimates with one operation at a time, each  "
        f"{quantity.seconds(answer.link.start_up_s)} and its bytes, as one all-reduce takes on the fabric; steps are "
        "simulated where a lowered step can run them.",
        "Methods with a barrier start no layer before all tensors have arrived; the others start each layer as soon "
        "as its own have.",
        "The order is fixed in advance and the same on all ranks, so in-order libraries cannot deadlock.",
    ]
