"""A timetable over time: for each stage what its GPUs compute, what it hands on, and when it adds up gradients."""

from __future__ import annotations

import numpy as np

from ropewalk import palette
from ropewalk.report.lanes import Bar, LaneGroup, lane_timeline
from ropewalk.report.step_timeline import StepTimeline
from ropewalk.timetable.clock import TimetableRun
from ropewalk.timetable.passes import LETTERS, Pass

LOOKS = {
    "forward": palette.BLUE,
    "backward": palette.GREEN,
    "gradients of inputs": palette.GREEN,
    "gradients of weights": palette.AMBER,
    "activations sent": palette.SKY,
    "gradients sent": palette.PINK,
    "all-reduce": palette.PURPLE,
}
LOOK_OF_PASS = {
    Pass.FORWARD: "forward",
    Pass.BACKWARD: "backward",
    Pass.INPUT: "gradients of inputs",
    Pass.WEIGHT: "gradients of weights",
}
MOST_DEVICES = 16
MOST_BARS = 8_000
"""Of each of two timelines on a page; of longer pipelines fewer devices are drawn."""


def timetable_timeline(key: str, run: TimetableRun, names: tuple[str, ...]) -> StepTimeline:
    """A group of lanes for each device; `names` says what devices are called."""
    table = run.timetable
    shown, remark = _devices(run)
    lanes_of = {device: _lanes(run, device) for device in shown}
    first, top = {}, 0
    for device in shown:
        first[device] = top
        top += len(lanes_of[device])
    bars = []
    for at in np.flatnonzero(np.isin(table.device, shown)).tolist():
        device = int(table.device[at])
        kind, piece, number = Pass(table.kind[at]), int(table.piece[at]), int(table.micro_batch[at])
        label = f"{piece}{LETTERS[kind]}{number}"
        bars.append(Bar(first[device], float(run.start[at]), float(run.end[at]), label, LOOK_OF_PASS[kind]))
        if not np.isnan(run.sent[at]):
            forward = kind is Pass.FORWARD
            lane = lanes_of[device].index("sends")
            look = "activations sent" if forward else "gradients sent"
            bars.append(Bar(first[device] + lane, float(run.sent[at]), float(run.arrived[at]), f"{label} sent", look))
    for piece, took in enumerate(run.times.all_reduce[: table.pieces].tolist()):
        for device in {int(home) for home in table.device_of_piece[piece :: table.pieces]}:
            if took and device in first:
                lane = first[device] + lanes_of[device].index("all-reduce")
                begin, end = float(run.all_reduce_start[piece]), float(run.all_reduce_end[piece])
                bars.append(Bar(lane, begin, end, f"gradients of piece {piece}", "all-reduce"))
    return lane_timeline(
        key,
        [LaneGroup(names[device], lanes_of[device]) for device in shown],
        bars,
        LOOKS,
        span_s=run.makespan,
        summary=f"When each of {table.devices} devices runs which pass of which of {table.micro_batches} micro-batches",
        caption=f"{remark}A label is the piece of the model, F, B, I (gradients of inputs) or W (of weights), and the "
        "micro-batch.",
    )


def _lanes(run: TimetableRun, device: int) -> tuple[str, ...]:
    """Computing, and what else there is to draw."""
    table = run.timetable
    mine = table.device == device
    lanes = ["compute"]
    if (~np.isnan(run.sent[mine]) & (run.arrived[mine] > run.sent[mine])).any():
        lanes.append("sends")
    if any(run.times.all_reduce[int(piece) % table.pieces] > 0 for piece in np.unique(table.piece[mine])):
        lanes.append("all-reduce")
    return tuple(lanes)


def _devices(run: TimetableRun) -> tuple[list[int], str]:
    """All devices where they are few; otherwise evenly chosen ones."""
    table = run.timetable
    each = max(1, 2 * table.passes // table.devices)
    most = max(2, min(MOST_DEVICES, MOST_BARS // each))
    if table.devices <= most:
        return list(range(table.devices)), ""
    chosen = np.unique(np.linspace(0, table.devices - 1, most).astype(np.int64)).tolist()
    return chosen, f"{len(chosen)} of {table.devices} devices are drawn, sampled evenly. "
