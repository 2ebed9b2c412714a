"""Two chunks per device in the shape of a V: the first device also holds the last piece."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.timetable.table import Pass, RowColumns, Timetable, from_columns
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
    there = [row.only(row.micro_batch < micro_batches) for row in rows]
    return from_columns("zb-v", there, v_homes(devices), micro_batches)


def _row(device: int, devices: int, micro_batches: int) -> RowColumns:
    """Fill the V down, meet its upward leg, then take turns between the two legs, and drain."""
    down, up, left = device, 2 * devices - 1 - device, devices - device
    fill, meet, turns = np.arange(device), np.arange(left), np.arange(micro_batches - devices)
    drained = micro_batches - devices + fill, micro_batches - device + fill
    last = micro_batches - devices + device + meet
    put_off = _by_turns((Pass.WEIGHT, down, drained[0]), (Pass.WEIGHT, up, drained[1]))
    put_off = _joined(put_off, _by_turns((Pass.WEIGHT, down, last)))
    steady = _by_turns(
        (Pass.FORWARD, down, 2 * devices - 1 - device + turns), (Pass.INPUT, down, turns), (Pass.WEIGHT, down, turns),
        (Pass.FORWARD, up, devices + turns), (Pass.INPUT, up, left + turns), (Pass.WEIGHT, up, left + turns),
    )  # fmt: skip
    closing = _by_turns((Pass.INPUT, down, last), (Pass.WEIGHT, down, last))
    for column, source in zip(closing, put_off, strict=True):
        column[1::2] = source[:left]
    return _joined(
        _by_turns((Pass.FORWARD, down, np.arange(2 * left - 1))),
        _by_turns((Pass.FORWARD, up, fill), (Pass.FORWARD, down, 2 * left - 1 + fill)),
        _by_turns((Pass.FORWARD, up, device + meet), (Pass.INPUT, up, meet), (Pass.WEIGHT, up, meet)),
        steady.only(steady.micro_batch < micro_batches),
        _by_turns((Pass.INPUT, down, drained[0]), (Pass.INPUT, up, drained[1])),
        closing,
        put_off.only(np.arange(len(put_off.kind)) >= left),
    )


def _by_turns(*passes: tuple[Pass, int, NDArray[np.int64]]) -> RowColumns:
    """A pass of every kind given, for the first micro-batch of each, then for the second, and so on."""
    many = len(passes[0][2])
    kind, piece = (np.tile([int(one[at]) for one in passes], many) for at in (0, 1))
    return RowColumns(kind, piece, np.column_stack([numbers for _, _, numbers in passes]).ravel())


def _joined(*parts: RowColumns) -> RowColumns:
    return RowColumns(*(np.concatenate(column) for column in zip(*parts, strict=True)))
