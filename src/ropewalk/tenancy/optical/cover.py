"""The cheapest set of leafs or spines that holds a number of virtual ones: a knapsack, solved exactly.

This is the leaf program of OCS-vClos (and the spine program, where only ports count) without a solver: each of n places
holds up to `room` virtual ones, costs `cost` if it holds any, and together they must hold `target`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def cheapest_cover(room: NDArray[np.int64], cost: NDArray[np.int64], target: int) -> NDArray[np.int64] | None:
    """How many each place holds, or None where all together hold too few. Ties go to the lower numbers.

    >>> cheapest_cover(np.array([4, 2, 1]), np.array([9, 5, 3]), 3).tolist()
    [0, 2, 1]
    """
    from ropewalk.tenancy.optical._cover_kernel import taking

    room = np.minimum(room, target)
    places = np.flatnonzero(room > 0)
    if int(room.sum()) < target:
        return None
    took = taking(room[places], cost[places], target)
    held = np.zeros(len(room), np.int64)
    left = target
    for row in range(len(places) - 1, -1, -1):
        if left and took[row, left]:
            place = places[row]
            held[place] = min(int(room[place]), left)
            left -= int(held[place])
    return held
