"""All forward passes, then all backward passes."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

from ropewalk.timetable.passes import Entry, Pass
from ropewalk.timetable.table import Timetable, from_rows
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


@lru_cache(maxsize=16)
def gpipe_on_one(pieces: int, micro_batches: int) -> Timetable:
    """The same on one device that holds all pieces: micro-batch by micro-batch through the model, then back.

    >>> print(gpipe_on_one(2, 2))
    gpipe: 1 devices, 2 pieces, 2 micro-batches
    0  0F0 1F0 0F1 1F1 1B0 0B0 1B1 0B1
    """
    ahead = ((Pass.FORWARD, piece, number) for number in range(micro_batches) for piece in range(pieces))
    back = ((Pass.BACKWARD, piece, number) for number in range(micro_batches) for piece in reversed(range(pieces)))
    return from_rows("gpipe", [[Entry(*each) for each in chain(ahead, back)]], [0] * pieces, micro_batches)
