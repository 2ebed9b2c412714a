"""In which order a pipeline stage runs forward and backward passes of its micro-batches.

A schedule is a function (stage, stages, micro-batches, pieces of each stage) -> `Order`. It says nothing about time:
a stage starts each pass of its order when the one before it is done and its input has arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Order:
    """The passes of one stage, one after the other."""

    backward: NDArray[np.bool_]
    micro_batch: NDArray[np.int32]
    piece: NDArray[np.int32]
    """Which of the stage's pieces of the model, 0 for the one nearest the input."""

    def kept(self, piece_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bytes kept for backward passes after every pass, when a forward pass of piece i keeps `piece_bytes[i]`."""
        return np.cumsum(np.where(self.backward, -1.0, 1.0) * piece_bytes[self.piece])

    @property
    def most_in_flight(self) -> int:
        """The largest number of forward passes whose backward pass is still to come."""
        return int(np.cumsum(np.where(self.backward, -1, 1)).max())


Schedule = Callable[[int, int, int, int], Order]


def gpipe(stage: int, stages: int, micro_batches: int, pieces: int) -> Order:
    """All forward passes, then all backward passes (Huang et al., GPipe, 2019).

    >>> gpipe(0, 2, 2, 1).micro_batch.tolist()
    [0, 1, 1, 0]
    """
    ahead = [(False, number, 0) for number in range(micro_batches)]
    return _order(ahead + [(True, number, 0) for number in reversed(range(micro_batches))])


def one_forward_one_backward(stage: int, stages: int, micro_batches: int, pieces: int) -> Order:
    """As few forward passes ahead as keep later stages busy, then one backward pass for each forward pass.

    Fan et al., DAPPLE, 2021; Narayanan et al., PipeDream-Flush, 2021.

    >>> one_forward_one_backward(0, 2, 3, 1).backward.astype(int).tolist()
    [0, 0, 1, 0, 1, 1]
    """
    warm_up = min(stages - 1 - stage, micro_batches)
    return _alternate(warm_up, [(n, 0) for n in range(micro_batches)], [(n, 0) for n in range(micro_batches)])


def interleaved(stage: int, stages: int, micro_batches: int, pieces: int) -> Order:
    """1F1B over several pieces of the model on each stage: micro-batches go round in groups as large as the pipeline.

    Narayanan et al., Efficient large-scale language model training on GPU clusters using Megatron-LM, 2021. The number
    of micro-batches is a multiple of the number of stages.
    """
    turns = np.arange(micro_batches * pieces)
    group, within = np.divmod(turns, stages * pieces)
    piece, place = np.divmod(within, stages)
    number = group * stages + place
    warm_up = min(2 * (stages - 1 - stage) + (pieces - 1) * stages, len(turns))
    if micro_batches == stages:
        warm_up = len(turns)
    forward = list(zip(number.tolist(), piece.tolist(), strict=True))
    backward = list(zip(number.tolist(), (pieces - 1 - piece).tolist(), strict=True))
    return _alternate(warm_up, forward, backward)


SCHEDULES: dict[str, Schedule] = {"1f1b": one_forward_one_backward, "gpipe": gpipe, "interleaved": interleaved}
"""Every schedule by the name people type."""


def _alternate(warm_up: int, forward: list[tuple[int, int]], backward: list[tuple[int, int]]) -> Order:
    """`warm_up` forward passes, then forward and backward passes in turn, then the backward passes that are left."""
    passes = [(False, *at) for at in forward[:warm_up]]
    for ahead, behind in zip(forward[warm_up:], backward, strict=False):
        passes += [(False, *ahead), (True, *behind)]
    return _order(passes + [(True, *at) for at in backward[len(forward) - warm_up :]])


def _order(passes: list[tuple[bool, int, int]]) -> Order:
    backward, number, piece = zip(*passes, strict=True)
    return Order(np.array(backward, bool), np.array(number, np.int32), np.array(piece, np.int32))
