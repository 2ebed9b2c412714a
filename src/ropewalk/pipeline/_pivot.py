"""The pivot formula over many pipelines at once."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]


@njit(cache=True, nogil=True)
def pivot_parts(
    forward: Array, backward: Array, all_reduce: Array, micro_batches: int
) -> tuple[int, float, float, float]:
    """The pivot of one pipeline and the three parts of its step: filling, the pivot's own work, the end."""
    stages = len(forward)
    again = micro_batches - 1
    pivot = stages - 1
    between = 0.0  # both passes of the stages between the one that is looked at and the pivot
    for stage in range(stages - 2, -1, -1):
        own = forward[stage] + backward[stage]
        if again * own > again * (forward[pivot] + backward[pivot]) + between:
            pivot, between = stage, 0.0
        else:
            between += own
    filling = 0.0
    for stage in range(pivot + 1):
        filling += forward[stage]
    ending = -np.inf
    passed = 0.0
    for stage in range(pivot, -1, -1):
        passed += backward[stage]
        ending = max(ending, all_reduce[stage] + passed)
    passed = 0.0
    for stage in range(pivot + 1, stages):
        ending = max(ending, all_reduce[stage] - passed)
        passed += backward[stage]
    return pivot, filling, again * (forward[pivot] + backward[pivot]), ending


@njit(cache=True, nogil=True)
def pivot_seconds(forward: Array, backward: Array, all_reduce: Array, micro_batches: int) -> float:
    """Seconds of a step of one pipeline; what other kernels call."""
    parts: tuple[int, float, float, float] = pivot_parts(forward, backward, all_reduce, micro_batches)
    return parts[1] + parts[2] + parts[3]


@njit(cache=True, nogil=True)
def pivot_seconds_of_rows(
    forward: Array, backward: Array, all_reduce: Array, micro_batches: NDArray[np.int64]
) -> Array:
    """Seconds of a step of the pipeline in each row."""
    seconds = np.empty(len(forward))
    for row in range(len(forward)):
        seconds[row] = pivot_seconds(forward[row], backward[row], all_reduce[row], micro_batches[row])
    return seconds
