"""Hot loops over free fibres: who shares switches with whom."""

from __future__ import annotations

import numpy as np

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
