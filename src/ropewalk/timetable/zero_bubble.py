"""Backward passes in two parts, so that gradients of weights fill the bubbles: one piece a device, by hand."""

from __future__ import annotations

from ropewalk.timetable.table import Entry, Pass, Timetable, from_rows
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
    rows = []
    for device in range(devices):
        ahead = min(depth * (devices - 1 - device) + 1, micro_batches)
        late = depth * device
        row = [Entry(Pass.FORWARD, device, number) for number in range(ahead)]
        for number in range(micro_batches):
            row.append(Entry(Pass.INPUT, device, number))
            if number >= late:
                row.append(Entry(Pass.WEIGHT, device, number - late))
            if number + ahead < micro_batches:
                row.append(Entry(Pass.FORWARD, device, number + ahead))
        row += [Entry(Pass.WEIGHT, device, number) for number in range(max(0, micro_batches - late), micro_batches)]
        rows.append(row)
    return from_rows(name, rows, range(devices), micro_batches)
