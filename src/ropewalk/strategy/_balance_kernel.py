"""Cuts of a row of costs by dynamic programming; the kernel of `stages.balanced`."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel


@kernel
def balance(before: Floats, pieces: int, slack: float) -> Ints:
    """The first layer of each piece, given the cost in front of every layer and of all of them.

    The largest piece is as small as possible, then the sum of squares is; of cuts that are equally even up to `slack`,
    which rounding must not decide between, the earliest are taken.
    """
    layers = len(before) - 1
    largest = _smallest_largest(before, pieces) * (1 + slack)
    total = np.full(layers + 1, np.inf)
    for end in range(layers + 1):
        if before[end] <= largest:
            total[end] = before[end] ** 2
    came_from = np.zeros((pieces + 1, layers + 1), np.int64)
    for piece in range(2, pieces + 1):
        here = np.full(layers + 1, np.inf)
        for end in range(piece, layers + 1):
            least = np.inf
            for start in range(end - 1, piece - 2, -1):
                size = before[end] - before[start]
                if size > largest:
                    break
                least = min(least, total[start] + size**2)
            if least == np.inf:
                continue
            for start in range(piece - 1, end):
                size = before[end] - before[start]
                if size <= largest and total[start] + size**2 <= least * (1 + slack):
                    here[end], came_from[piece, end] = total[start] + size**2, start
                    break
        total = here
    firsts = np.zeros(pieces, np.int64)
    end = layers
    for piece in range(pieces, 1, -1):
        end = came_from[piece, end]
        firsts[piece - 1] = end
    return firsts


@kernel
def _smallest_largest(before: Floats, pieces: int) -> float:
    """The least possible cost of the largest piece, by dynamic programming over the number of pieces."""
    layers = len(before) - 1
    best = before.copy()  # best[j]: the first j layers in one piece
    for piece in range(2, pieces + 1):
        here = np.full(layers + 1, np.inf)
        for end in range(piece, layers + 1):
            for start in range(end - 1, piece - 2, -1):
                size = before[end] - before[start]
                if size >= here[end]:
                    break  # from here on the last piece alone is no smaller
                here[end] = min(here[end], max(best[start], size))
        best = here
    return float(best[layers])
