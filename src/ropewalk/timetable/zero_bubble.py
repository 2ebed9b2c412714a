"""Backward passes in two parts, so that gradients of weights fill the bubbles: one piece a device, by hand."""

from __future__ import annotations

import numpy as np

from ropewalk.timetable.table import Pass, RowColumns, Timetable, from_columns
from ropewalk.timetable.warm_up import check_size


def zero_bubble_h1(devices: int, micro_batches: int) -> Timetable:
    """ZB-H1 (Qi et al., Zero bubble pipeline parallelism, 2024): no device keeps more than the first one of 1F1B.

    Device i runs S - i forward passes ahead and puts off gradients of weights by i micro-batches, so that gradients of
    inputs come back sooner. The bubble is (p - 1)(F + B - W).

    >>> print(zero_bubble_h1(2, 3))
    zb-h1: 2 devices, 2 pieces, 3 micro-batches
    0  0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2
    1  1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2
    """
    return _put_off("zb-h1", devices, micro_batches, depth=1)


def zero_bubble_h2(devices: int, micro_batches: int) -> Timetable:
    """ZB-H2: 2 S - 1 micro-batches kept everywhere, a bubble of (p - 1)(F + B - 2W), none where all three are equal.

    That is the bubble within the span of a device; the step as a whole still begins with the first forward pass on the
    first device and ends with the last gradients on the last one.
    """
    return _put_off("zb-h2", devices, micro_batches, depth=2)


def _put_off(name: str, devices: int, micro_batches: int, depth: int) -> Timetable:
    """Device i is `depth` (S - 1 - i) + 1 forward passes ahead and `depth` i gradients of weights behind."""
    check_size(name, devices, micro_batches)
    rows = [_row(device, devices, micro_batches, depth) for device in range(devices)]
    return from_columns(name, rows, range(devices), micro_batches)


def _row(device: int, devices: int, micro_batches: int, depth: int) -> RowColumns:
    """Forward passes ahead; then by turns an INPUT, the WEIGHT that it was put off for, and the next forward pass."""
    every = np.arange(micro_batches)
    ahead, late = min(depth * (devices - 1 - device) + 1, micro_batches), min(depth * device, micro_batches)
    first, now, then = every[:ahead], every[: micro_batches - late], every[micro_batches - late :]
    parts = (  # kind, micro-batches, turn and place within it
        (Pass.FORWARD, first, np.full(ahead, -1), 0),
        (Pass.INPUT, every, every, 0),
        (Pass.WEIGHT, now, every[late:], 1),
        (Pass.FORWARD, every[ahead:], every[: micro_batches - ahead], 2),
        (Pass.WEIGHT, then, np.full(late, micro_batches), 0),
    )
    kind, place = (
        np.concatenate([np.full(len(numbers), value) for value, numbers in pairs])
        for pairs in (
            [(int(kind), numbers) for kind, numbers, _, _ in parts],
            [(place, numbers) for _, numbers, _, place in parts],
        )
    )
    number, turn = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
    return RowColumns(kind, np.full(len(kind), device), number).only(np.lexsort((place, turn)))
