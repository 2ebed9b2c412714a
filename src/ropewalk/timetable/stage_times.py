"""What the pieces of a pipeline take: passes, hand-overs, all-reduces."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ropewalk.arrays import Floats
from ropewalk.errors import Findings, StrategyError


@dataclass(frozen=True, eq=False)
class StageTimes:
    """Seconds by piece of the model, for one micro-batch.

    Where devices keep several copies of the model that differ, pieces of the second copy follow those of the first; no
    pass hands anything on from one copy to the next.
    """

    forward: Floats
    backward: Floats
    """Of the whole backward pass, or of gradients of inputs alone where `weight` is not 0."""
    weight: Floats
    """Of gradients of weights; a whole backward pass takes `backward + weight`."""
    send_forward: Floats
    """By boundary: seconds in which piece i hands its activations to piece i + 1."""
    send_backward: Floats
    """By boundary: seconds in which piece i + 1 hands gradients back to piece i."""
    all_reduce: Floats
    """By piece: seconds in which its replicas, those of all copies together, add up their gradients."""
    overlap: float = 0.0
    """How much of the shorter of two passes side by side is hidden behind the longer one, 0 … 1."""

    def __post_init__(self) -> None:
        findings = Findings(StrategyError, "times of a pipeline")
        pieces = len(self.forward)
        if not pieces:
            findings.add("there is no piece: give the forward seconds of at least one")
        for name, expected in (
            ("forward", pieces), ("backward", pieces), ("weight", pieces), ("all_reduce", pieces),
            ("send_forward", pieces - 1), ("send_backward", pieces - 1),
        ):  # fmt: skip
            column = getattr(self, name)
            if len(column) != expected and pieces:
                findings.add(f"{name} has {len(column)} entries for {pieces} pieces: give {expected}")
            if not np.all(np.isfinite(column) & (column >= 0)):
                findings.add(f"{name} is {column.tolist()}: give seconds, 0 or more")
        if not 0 <= self.overlap <= 1:
            findings.add(f"overlap is {self.overlap}: give a share from 0 to 1")
        findings.raise_if_any()

    @property
    def pieces(self) -> int:
        return len(self.forward)

    @property
    def communication_ratio(self) -> float:
        """The slowest hand-over, there and back, against the slowest stage (DAPPLE's ACR)."""
        if self.pieces == 1:
            return 0.0
        compute = float((self.forward + self.backward + self.weight).max())
        handover = float((self.send_forward + self.send_backward).max())
        if compute:
            return handover / compute
        return float("inf") if handover else 0.0

    def copied(self, copies: int) -> StageTimes:
        """The same for so many copies of the model that are alike."""
        forward, backward, weight = (np.tile(one, copies) for one in (self.forward, self.backward, self.weight))
        onward, back = (
            np.tile(np.append(one, 0.0), copies)[:-1] for one in (self.send_forward, self.send_backward)
        )  # nothing behind the last piece of a copy
        return StageTimes(forward, backward, weight, onward, back, np.tile(self.all_reduce, copies), self.overlap)

    def recomputing(self) -> StageTimes:
        """The same pipeline when pieces keep only their input and run their forward pass again before backward."""
        return replace(self, backward=self.backward + self.forward)


def stage_times(
    forward: ArrayLike,
    backward: ArrayLike,
    weight: ArrayLike = 0.0,
    send_forward: ArrayLike = 0.0,
    send_backward: ArrayLike | None = None,
    all_reduce: ArrayLike = 0.0,
    *,
    pieces: int | None = None,
    overlap: float = 0.0,
) -> StageTimes:
    """Times of a pipeline; a single number holds for every piece, gradients travel like activations unless said.

    >>> stage_times(1, [2, 4, 2]).forward.tolist()
    [1.0, 1.0, 1.0]
    >>> stage_times(1, 2, send_forward=0.5, pieces=3).send_backward.tolist()
    [0.5, 0.5]
    """
    back = send_forward if send_backward is None else send_backward
    by_piece = [np.asarray(values, np.float64) for values in (forward, backward, weight, all_reduce)]
    by_boundary = [np.asarray(values, np.float64) for values in (send_forward, back)]
    counts = {values.size for values in by_piece if values.ndim} | {
        values.size + 1 for values in by_boundary if values.ndim
    }
    if pieces is not None:
        counts.add(pieces)
    if len(counts) != 1:
        say = (
            "give the number of pieces" if not counts else f"the times are for {sorted(counts)} pieces: make them agree"
        )
        raise StrategyError(f"times of a pipeline: {say}")
    (count,) = counts
    ahead, behind, weights, reduces = (_spread(values, count) for values in by_piece)
    onward, backward_send = (_spread(values, max(0, count - 1)) for values in by_boundary)
    return StageTimes(ahead, behind, weights, onward, backward_send, reduces, overlap)


def _spread(values: Floats, count: int) -> Floats:
    return np.array(np.broadcast_to(values, (count,)), np.float64)
