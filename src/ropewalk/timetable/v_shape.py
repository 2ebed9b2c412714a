"""Two pieces a device in the shape of a V: the first device also holds the last piece."""

from __future__ import annotations

from ropewalk.timetable.row import Row
from ropewalk.timetable.table import Entry, Pass, Timetable, from_rows
from ropewalk.timetable.warm_up import check_size


def v_homes(devices: int) -> list[int]:
    """Device of every piece: down the V and up again."""
    return [*range(devices), *reversed(range(devices))]


def zero_bubble_v(devices: int, micro_batches: int) -> Timetable:
    """ZB-V (Qi et al., Zero bubble pipeline parallelism, 2024): no bubble at the memory of 1F1B where F = B = W.

    The loss is on the first device, so gradients of a micro-batch come back to each device as early as they can, and
    every device keeps 2 S pieces of activations at most, as much as the first device of 1F1B.
    """
    check_size("zb-v", devices, micro_batches)
    rows = [_row(device, devices, max(micro_batches, 2 * devices - 1)) for device in range(devices)]
    # A short step is the beginning of a longer one: what is not there is left out.
    there = [[entry for entry in row if entry.micro_batch < micro_batches] for row in rows]
    return from_rows("zb-v", there, v_homes(devices), micro_batches)


def _row(device: int, devices: int, micro_batches: int) -> list[Entry]:
    """Fill the V down, meet its upward leg, then take turns between the two legs, and drain."""
    row = Row(down=device, up=2 * devices - 1 - device)
    for _ in range(2 * (devices - device) - 1):
        row.add(Pass.FORWARD, row.down)
    for _ in range(device):
        row.add(Pass.FORWARD, row.up)
        row.add(Pass.FORWARD, row.down)
    for _ in range(devices - device):
        row.add(Pass.FORWARD, row.up)
        row.add(Pass.INPUT, row.up)
        row.weight_now()
    while row.done(Pass.FORWARD, row.up) < micro_batches:
        if row.done(Pass.FORWARD, row.down) < micro_batches:
            row.add(Pass.FORWARD, row.down)
        row.add(Pass.INPUT, row.down)
        row.weight_now()
        row.add(Pass.FORWARD, row.up)
        row.add(Pass.INPUT, row.up)
        row.weight_now()
    for _ in range(device):
        row.add(Pass.INPUT, row.down)
        row.add(Pass.INPUT, row.up)
    for _ in range(devices - device):
        row.add(Pass.INPUT, row.down)
        row.weight()
    row.all_weights()
    return row.entries
