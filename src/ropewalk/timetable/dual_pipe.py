"""Two streams of micro-batches that meet on every device, one forward and one backward pass side by side."""

from __future__ import annotations

from ropewalk.errors import Findings, StrategyError
from ropewalk.timetable.row import Row
from ropewalk.timetable.table import Entry, Pass, Timetable, from_rows
from ropewalk.timetable.v_shape import v_homes
from ropewalk.timetable.warm_up import check_size


def dual_pipe(devices: int, micro_batches: int) -> Timetable:
    """DualPipe (DeepSeek-V3 technical report, 2024): half of the micro-batches go through from each end.

    Devices keep two pieces, so the model is there twice: pieces 0 … p-1 down the row of devices for the first half of
    the micro-batches, their copies p … 2p-1 up the row for the second half. The bubble is (p/2 - 1)(F&B + B - 3W).
    """
    findings = Findings(StrategyError, "timetable dualpipe")
    if devices < 2 or devices % 2:
        findings.add(f"micro-batches from both ends cannot meet in the middle of {devices} devices: use an even number")
    if micro_batches % 2 or micro_batches < 2 * devices:
        findings.add(f"{micro_batches} micro-batches: use an even number, {2 * devices} or more")
    findings.raise_if_any()
    half, each = devices // 2, micro_batches // 2
    rows = []
    for device in range(devices):
        near, far = device, 2 * devices - 1 - device
        if device >= half:
            near, far = far, near
        depth = min(device, devices - 1 - device)
        first = {max(near, far): each}
        rows.append(_row(Row(near, far, first), depth, half, each))
    return from_rows("dualpipe", rows, v_homes(devices), micro_batches, copies=2,
                     copy_of_micro_batch=[0] * each + [1] * each)  # fmt: skip


def dual_pipe_v(devices: int, micro_batches: int) -> Timetable:
    """DualPipeV: the same meeting of streams in a V of two chunks per device, with the model there once."""
    check_size("dualpipev", devices, micro_batches)
    if micro_batches < 2 * devices:
        raise StrategyError(
            f"timetable dualpipev: {micro_batches} micro-batches for {2 * devices} pieces: use {2 * devices} or more"
        )
    rows = [_row(Row(device, 2 * devices - 1 - device), device, devices, micro_batches) for device in range(devices)]
    return from_rows("dualpipev", rows, v_homes(devices), micro_batches)


def _row(row: Row, depth: int, half: int, each: int) -> list[Entry]:
    """A device `depth` steps from the end of its half of the row: fill, meet, take turns, drain.

    `row.down` is the piece whose micro-batches come from the near end, `row.up` the one whose come from the far end.
    """
    behind = half - depth - 1
    for _ in range(2 * behind):
        row.add(Pass.FORWARD, row.down)
    for _ in range(depth + 1):
        row.add(Pass.FORWARD, row.down)
        row.add(Pass.FORWARD, row.up)
    for _ in range(behind):
        row.add(Pass.INPUT, row.up)
        row.weight()
        row.add(Pass.FORWARD, row.up)
    for turn in range(each - 2 * half + depth + 1):
        if turn == 0 and behind == 0:
            # In the middle of the row the others wait for these two: one after the other they are sooner there.
            row.add(Pass.FORWARD, row.down)
            row.add(Pass.BACKWARD, row.up)
        else:
            row.pair(row.down, row.up)
        row.pair(row.up, row.down)
    for _ in range(behind):
        row.add(Pass.BACKWARD, row.up)
        row.pair(row.up, row.down)
    # From the middle of the draining on, gradients of weights are put off to fill what follows.
    whole = (depth + 1) // 2 * 2 + (depth + 1) % 2
    for number in range(2 * (depth + 1)):
        kind = Pass.BACKWARD if number < whole else Pass.INPUT
        row.add(kind, row.down if number % 2 else row.up)
    for _ in range(behind):
        row.weight()
        row.add(Pass.INPUT, row.down)
    row.all_weights()
    return row.entries
