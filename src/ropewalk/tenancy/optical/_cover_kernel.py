"""The knapsack of the cheapest cover, place by place."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Flags, Ints
from ropewalk.compiled import kernel

NEVER = np.iinfo(np.int64).max // 2


@kernel
def taking(room: Ints, cost: Ints, target: int) -> Flags:
    """[place, number]: do the first places hold so many cheapest where this one, the last of them, holds some?

    Of equal costs, the lower places hold them.
    """
    took = np.zeros((len(room), target + 1), np.bool_)
    best = np.full(target + 1, NEVER)
    best[0] = 0
    for place in range(len(room)):
        for number in range(target, 0, -1):
            with_it = best[max(0, number - room[place])] + cost[place]
            if with_it < best[number]:
                took[place, number] = True
                best[number] = with_it
    return took
