"""The streamed all-reduce on the page: every scheme beside the bound, each overlap over time, one above the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk import palette
from ropewalk.overlap.exchange import ALL_THREE, ExchangeRun, Overlaps
from ropewalk.overlap.stream_answer import MODEL, StreamRow, stream_rows, stream_sentence
from ropewalk.overlap.stream_plan import StreamPlan
from ropewalk.report import quantity
from ropewalk.report.chart import Chart, plain
from ropewalk.report.colours import COMPUTE_PHASES
from ropewalk.report.lanes import Bar, LaneGroup, lane_timeline
from ropewalk.report.overlap_charts import StepBar, steps_chart
from ropewalk.report.step_timeline import StepTimeline

SENDING, MIXING = ("sending data to reduce", "sending broadcast data"), "mixing"
LOOKS = {
    "backward": COMPUTE_PHASES["backward"],
    "forward of the next step": COMPUTE_PHASES["forward"],
    SENDING[0]: palette.GREEN,
    SENDING[1]: palette.AMBER,
    MIXING: palette.PURPLE,
}
LANES = ("compute", "wire", "adder")
DRAWN = (
    ("no overlap", Overlaps(False, False, False), "the whole fused tensor is sent and mixed in turn; then "
     "broadcast; then layers start"),
    ("mixing", Overlaps(True, False, False), "one chunk is mixed while the next is in flight"),
    ("broadcasting", Overlaps(False, True, False), "a chunk is broadcast as soon as it is reduced"),
    ("computing", Overlaps(False, False, True), "a layer starts as soon as its own tensors are complete"),
    ("all three", ALL_THREE, "streamed: all three together"),
)  # fmt: skip
STRETCHES = 500
"""Parts of the span that are drawn, each as one thing."""


@dataclass(frozen=True)
class StreamSection:
    """What the page says about streams."""

    sentence: str
    model: str
    """On what the schemes are compared."""
    rows: list[StreamRow]
    bound_s: float
    chart: Chart
    timeline: StepTimeline
    legend: list[tuple[str, str, float]]
    """What every row of the timeline is, and its step."""


def stream_section(plan: StreamPlan) -> StreamSection:
    rows = stream_rows(plan)
    said = stream_sentence(plan)
    runs = {name: plan.with_overlaps(overlaps, keep=True) for name, overlaps, _ in DRAWN}
    return StreamSection(
        f"{said[0].upper()}{said[1:]}.",
        f"{MODEL[0].upper()}{MODEL[1:]}.",
        rows,
        plan.bounds.step_s,
        _chart(plan, rows),
        _timeline(plan, runs),
        [(name, about, runs[name].step_s) for name, _, about in DRAWN],
    )


def _chart(plan: StreamPlan, rows: list[StreamRow]) -> Chart:
    bars = [
        StepBar(row.name, row.step_s, f"<b>{plain(row.name)}</b>: {plain(row.what)}")
        for row in rows
        if row.sort != "bound"
    ]
    return steps_chart(
        "streams",
        f"Step time under {len(bars)} schemes on a ring of {plan.ring.ranks} ranks",
        bars,
        plan.tensors.compute_s,
        plan.bounds.step_s,
        f"The bound: {plan.bounds.in_words()}. Rows starting with fused are the stream with some of its overlaps.",
    )


def _timeline(plan: StreamPlan, runs: dict[str, ExchangeRun]) -> StepTimeline:
    span = max(found.step_s for found in runs.values())
    bars: list[Bar] = []
    for number, found in enumerate(runs.values()):
        bars += _bars(plan, found, len(LANES) * number, span)
    return lane_timeline(
        "timeline-overlaps",
        [LaneGroup(name, LANES, quantity.seconds(found.step_s)) for name, found in runs.items()],
        bars,
        LOOKS,
        span_s=span,
        summary="Computation, sending and reduction of one rank in a step: without overlap, with each overlap, and "
        "with all",
        caption="One rank of the ring, with the same chunks and time scale in every row. Where messages are too short "
        "to be drawn, stripes show the shares of sending and mixing.",
    )


def _bars(plan: StreamPlan, found: ExchangeRun, lane: int, span: float) -> list[Bar]:
    tensors, rounds = plan.tensors, plan.ring.rounds
    ends = np.cumsum(tensors.backward_s[::-1])
    bars = [
        Bar(lane, float(end - took), float(end), f"{name} backward", "backward")
        for end, took, name in zip(ends, tensors.backward_s[::-1], tensors.layer_names[::-1], strict=True)
    ]
    starts = tensors.forward_start(found.arrival_s, barrier=found.exchange.barrier)
    bars += [
        Bar(lane, float(begin), float(begin + took), f"{name} forward", "forward of the next step")
        for begin, took, name in zip(starts, tensors.forward_s, tensors.layer_names, strict=True)
    ]
    reduces = np.tile(np.arange(2 * rounds) < rounds, len(found.done_s))
    wire = {SENDING[0]: found.sent_s[reduces], SENDING[1]: found.sent_s[~reduces]}
    for below, times in ((1, wire), (2, {MIXING: found.added_s[reduces]})):
        bars += [Bar(lane + below, begin, end, look, look) for look, begin, end in _strips(times, span)]
    return bars


def _strips(times: dict[str, NDArray[np.float64]], span: float) -> list[tuple[str, float, float]]:
    """What a lane does in every narrow stretch of the span, equal neighbours as one: (look, begin, end)."""
    edges = np.linspace(0.0, span, STRETCHES + 1)
    width = span / STRETCHES
    busy = np.array([np.diff(_busy_until(edges, one)) for one in times.values()])
    share = np.vstack([busy, np.maximum(0.0, width - busy.sum(axis=0))])
    owed = np.zeros(len(share))
    look = np.zeros(STRETCHES, np.int64)
    for number in range(STRETCHES):
        # What a stretch does not show is owed to the next ones, so that fine turns keep their proportions.
        owed += share[:, number]
        look[number] = owed.argmax()
        owed[look[number]] -= width
    first = np.flatnonzero(np.diff(look, prepend=-1))
    names = [*times, ""]
    return [
        (names[look[begin]], float(edges[begin]), float(edges[end]))
        for begin, end in zip(first, [*first[1:], STRETCHES], strict=True)
        if names[look[begin]]
    ]


def _busy_until(edges: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seconds of these stretches of time, which never overlap, that lie before each edge."""
    ordered = times[np.argsort(times[:, 0], kind="stable")]
    length = ordered[:, 1] - ordered[:, 0]
    before = np.concatenate([[0.0], np.cumsum(length)])
    number = np.searchsorted(ordered[:, 0], edges, side="right")
    beyond = np.where(number > 0, np.maximum(0.0, ordered[number - 1, 1] - edges), 0.0) if len(ordered) else 0.0
    return np.asarray(before[number] - beyond, np.float64)


def ring_fact(plan: StreamPlan) -> str:
    """The ring in a few words."""
    mixer = plan.ring.mixer
    added = "reduction is free" if mixer.free else f"reduces {quantity.gigabytes(mixer.rate)}"
    return f"{quantity.count(plan.ring.ranks)} ranks, each sends {quantity.gigabytes(plan.ring.bandwidth)}, {added}"
