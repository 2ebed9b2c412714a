"""How long a synchronous pipeline takes, by the stage with the fewest bubbles: DAPPLE's pivot formula.

The pivot works without a pause from its first forward pass to its last backward pass. Before it the pipeline fills,
behind it the last micro-batch runs back and gradients are added up; sums of stages behind the pivot hide behind the
backward passes of stages before them.

The formula is for search. It is exact when the last stage is the pivot and no transfer takes longer than the stages
beside it. With an earlier pivot it may say less than any timetable reaches (two stages of 10 and 9 in each direction
and 4 micro-batches: 80, where early backward takes 92), and a transfer that is the pivot is counted as if a link could
not carry both directions at once. `clock.py` has the exact times of a timetable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.errors import StrategyError
from ropewalk.pipeline._pivot import pivot_parts, pivot_seconds_of_rows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PivotLatency:
    """A step in three parts."""

    pivot: int
    """The stage without bubbles; transfers count as stages where they were given."""
    filling_s: float
    """Until the first micro-batch has passed the pivot forward."""
    steady_s: float
    """Both passes of all other micro-batches on the pivot."""
    ending_s: float
    """From there until the last gradient is summed."""

    @property
    def seconds(self) -> float:
        return self.filling_s + self.steady_s + self.ending_s


@dataclass(frozen=True, eq=False)
class Extended:
    """A pipeline in which every transfer is a stage without weights: compute at 0, 2, …, transfers between."""

    forward: Array
    backward: Array
    all_reduce: Array


def extended(
    forward: ArrayLike,
    backward: ArrayLike,
    send_forward: ArrayLike,
    send_backward: ArrayLike,
    all_reduce: ArrayLike,
) -> Extended:
    """The stages with their transfers between them; the last axis counts stages, axes before it pipelines.

    >>> extended([1, 2], [3, 4], [0.5], [0.25], [7, 8]).forward.tolist()
    [1.0, 0.5, 2.0]
    """
    sends = np.asarray(send_forward, np.float64)
    return Extended(
        _interleaved(forward, sends),
        _interleaved(backward, send_backward),
        _interleaved(all_reduce, np.zeros_like(sends)),
    )


def pivot_latency(
    forward: ArrayLike, backward: ArrayLike, micro_batches: int, all_reduce: ArrayLike | None = None
) -> PivotLatency:
    """The step of a pipeline whose stages take these seconds for a micro-batch.

    >>> pivot_latency([1, 2, 1], [2, 4, 2], 6)
    PivotLatency(pivot=1, filling_s=3.0, steady_s=30.0, ending_s=6.0)
    """
    rows = _checked(forward, backward, all_reduce, micro_batches, axes=1)
    pivot, filling, steady, ending = pivot_parts(*rows, micro_batches)
    return PivotLatency(int(pivot), float(filling), float(steady), float(ending))


def pivot_latencies(
    forward: ArrayLike, backward: ArrayLike, micro_batches: ArrayLike, all_reduce: ArrayLike | None = None
) -> Array:
    """Seconds of the steps of many pipelines of the same length: arrays [pipeline, stage], one number or one a row of
    micro-batches."""
    counts = np.asarray(micro_batches, np.int64)
    rows = _checked(forward, backward, all_reduce, int(counts.min(initial=1)), axes=2)
    seconds: Array = pivot_seconds_of_rows(*rows, np.ascontiguousarray(np.broadcast_to(counts, len(rows[0]))))
    return seconds


def _checked(
    forward: ArrayLike, backward: ArrayLike, all_reduce: ArrayLike | None, micro_batches: int, axes: int
) -> tuple[Array, Array, Array]:
    ahead = np.ascontiguousarray(forward, np.float64)
    back = np.ascontiguousarray(backward, np.float64)
    sums = np.zeros_like(ahead) if all_reduce is None else np.ascontiguousarray(all_reduce, np.float64)
    if ahead.ndim != axes or not ahead.shape == back.shape == sums.shape or not ahead.shape[-1]:
        raise StrategyError(
            f"stages have {ahead.shape} forward, {back.shape} backward and {sums.shape} all-reduce times: "
            "give as many of each, and at least one"
        )
    if micro_batches < 1:
        raise StrategyError(f"a step of {micro_batches} micro-batches does not exist: give 1 or more")
    return ahead, back, sums


def _interleaved(stages: ArrayLike, transfers: ArrayLike) -> Array:
    here, between = np.asarray(stages, np.float64), np.asarray(transfers, np.float64)
    if between.shape[-1] != here.shape[-1] - 1:
        raise StrategyError(
            f"{here.shape[-1]} stages have {here.shape[-1] - 1} boundaries, not {between.shape[-1]}: give one transfer "
            "for each"
        )
    woven = np.empty((*here.shape[:-1], 2 * here.shape[-1] - 1))
    woven[..., ::2], woven[..., 1::2] = here, between
    return woven
