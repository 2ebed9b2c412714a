"""All forward passes, then all backward passes."""

from __future__ import annotations

from ropewalk.timetable.table import Timetable
from ropewalk.timetable.warm_up import with_warm_up


def gpipe(devices: int, micro_batches: int) -> Timetable:
    """Huang et al., GPipe, 2019, with backward passes in the order of the forward ones, as PyTorch's `ScheduleGPipe`.

    Figure 2 of the paper draws them in reverse; that takes as long. Every device keeps the activations of every
    micro-batch.

    >>> print(gpipe(2, 2))
    gpipe: 2 devices, 2 pieces, 2 micro-batches
    0  0F0 0F1 0B0 0B1
    1  1F0 1F1 1B0 1B1
    """
    return with_warm_up("gpipe", [micro_batches] * devices, micro_batches)
