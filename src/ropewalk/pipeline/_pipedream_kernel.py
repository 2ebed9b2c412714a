"""PipeDream's recurrence over one level of machines."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Flags, Floats, Ints32
from ropewalk.compiled import kernel


@kernel
def divide(
    seconds: Floats,
    weights: Floats,
    crossing: Floats,
    contains: Flags,
    count: int,
    inner: int,
    bandwidth: float,
    sends: bool,
    last: bool,
) -> tuple[Floats, Ints32, Ints32, Ints32]:
    """The slowest stage of states i..j on 1 … `count` machines, and how it was reached: arrays [i, j, machines - 1].

    `seconds[i, j]` is what one machine takes for states i..j, of which it has `inner` parts that sum gradients side by
    side; `weights` are running sums. A stage may end behind state k before one that ends behind j only where
    `contains[k, j]`: j has all layers of k and more. Found are the state before the last stage (-1: there is one
    stage), and how many machines the stages before it and the last stage have.
    """
    states = len(crossing)
    best = np.full((states, states, count), np.inf)
    before = np.full((states, states, count), -1, np.int32)
    others = np.zeros((states, states, count), np.int32)
    used = np.zeros((states, states, count), np.int32)
    for i in range(states):
        for j in range(i, states):
            for m in range(count):
                summed = 4.0 * m * (weights[j + 1] - weights[i]) / (bandwidth * (m + 1)) / inner
                best[i, j, m] = (seconds[i, j] + summed) / (m + 1)
                used[i, j, m] = m + 1
    for i in range(1 if last else states):
        for m in range(1, count):
            for j in range(i + 1, states):
                for k in range(i, j):
                    if not contains[k, j]:
                        continue
                    for own in range(1, m + 1):
                        summed = 4.0 * (own - 1) * (weights[j + 1] - weights[k + 1]) / (bandwidth * own)
                        value = max(best[i, k, m - own], (seconds[k + 1, j] + summed) / own)
                        if sends:
                            value = max(value, 2.0 * crossing[k] / (bandwidth * own))
                            if j < states - 1:
                                value = max(value, 2.0 * crossing[j] / (bandwidth * own))
                        if value < best[i, j, m]:
                            best[i, j, m], before[i, j, m] = value, k
                            others[i, j, m], used[i, j, m] = m - own, own
    return best, before, others, used
