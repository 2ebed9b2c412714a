"""Hot loops over free fibres: who shares switches with whom, and circuits for which nobody has to make way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints, Words
from ropewalk.compiled import kernel
from ropewalk.tenancy._bits_kernel import common


@kernel
def shared_switches(leafs: Words, spines: Words) -> Ints:
    """[leaf, spine]: bits that the two rows have in common."""
    found = np.empty((len(leafs), len(spines)), np.int64)
    for leaf in range(len(leafs)):
        for spine in range(len(spines)):
            found[leaf, spine] = common(leafs[leaf], spines[spine])
    return found


@kernel
def cheapest_pair(words: Words, larger: Ints, smaller: Ints, idle: Ints, width: int) -> tuple[int, int]:
    """The first two leafs with the fewest idle servers together that share `width` switches; (-1, -1) if none do."""
    best, found = 0, (-1, -1)
    for one in larger:
        for other in smaller:
            cost = idle[one] + idle[other]
            if one == other or (found[0] >= 0 and cost >= best) or common(words[one], words[other]) < width:
                continue
            best, found = cost, (one, other)
    return found


@kernel
def lay_plainly(
    free: NDArray[np.bool_], room: Ints, order: Ints, leafs: Ints, spines: Ints, laid: NDArray[np.int64]
) -> int:
    """Lay circuits one after the other, each where its spine has most fibres left, until one finds no switch.

    `free` [leaf, switch] and `room` [spine, switch] are used up; `laid` gets leaf, spine and switch of each circuit.
    Answers how many are laid.
    """
    count = 0
    for spine in range(len(spines)):
        for leaf in order:
            for _ in range(leafs[leaf] * spines[spine]):
                best = -1
                for switch in range(room.shape[1]):
                    if free[leaf, switch] and room[spine, switch] > (room[spine, best] if best >= 0 else 0):
                        best = switch
                if best < 0:
                    return count
                free[leaf, best] = False
                room[spine, best] -= 1
                laid[count] = leaf, spine, best
                count += 1
    return count
