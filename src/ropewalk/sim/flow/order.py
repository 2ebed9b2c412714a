"""Dependencies turned round, in two linear passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.sim.flow.kernel import kernel


@kernel
def turn_round(
    dep_start: NDArray[np.int64], dep: NDArray[np.int32], tasks: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """CSR by task of those that wait for it, from CSR by task of those it waits for; followers ascend."""
    start = np.zeros(tasks + 1, np.int64)
    for i in range(len(dep)):
        start[dep[i] + 1] += 1
    for task in range(tasks):
        start[task + 1] += start[task]
    follower = np.empty(len(dep), np.int32)
    filled = start[:-1].copy()
    for task in range(tasks):
        for i in range(dep_start[task], dep_start[task + 1]):
            follower[filled[dep[i]]] = task
            filled[dep[i]] += 1
    return start, follower
