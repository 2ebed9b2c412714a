"""Links that can never be the bottleneck are left out before a simulation starts.

If every flow over a link also crosses another one that is at least as tight for it, the first link is never full
before the second: it constrains nothing. On a fat-tree by D-mod-K, for example, all that travels down from a core ends
at one host, whose own link is as narrow as those above it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.flow.system import System


@kernel
def dominated_links(start: Ints, link: NDArray[np.int32], weight: Floats, capacity: Floats) -> NDArray[np.bool_]:
    """Which links are dominated by another one; of two that dominate each other, the one with the higher number."""
    links, rows = len(capacity), len(start) - 1
    first = np.zeros(links + 1, np.int64)
    for entry in range(len(link)):
        first[link[entry] + 1] += 1
    for one in range(links):
        first[one + 1] += first[one]
    row_of, own = np.empty(len(link), np.int64), np.empty(len(link))
    filled = first[:-1].copy()
    for row in range(rows):
        for entry in range(start[row], start[row + 1]):
            slot = filled[link[entry]]
            row_of[slot], own[slot] = row, weight[entry] / capacity[link[entry]]
            filled[link[entry]] += 1
    found = np.zeros(links, np.bool_)
    for one in range(links):
        if first[one] == first[one + 1]:
            continue
        row = row_of[first[one]]
        for candidate in range(start[row], start[row + 1]):
            other = link[candidate]
            if other == one:
                continue
            tighter, everywhere = False, True
            for slot in range(first[one], first[one + 1]):
                use = -1.0
                for entry in range(start[row_of[slot]], start[row_of[slot] + 1]):
                    if link[entry] == other:
                        use = weight[entry] / capacity[other]
                        break
                if use < own[slot]:
                    everywhere = False
                    break
                tighter |= use > own[slot]
            # Of two links that are equally tight for the same flows, one has to stay.
            if everywhere and (tighter or other < one or _used_elsewhere(first, one, other)):
                found[one] = True
                break
    return found


@kernel
def _used_elsewhere(first: Ints, one: int, other: int) -> bool:
    """Does the other link carry flows that this one does not? Then it cannot be dominated by this one."""
    return first[other + 1] - first[other] > first[one + 1] - first[one]


def without_dominated_links(system: System) -> System:
    """The same system, in which flows only use links that can hold them back."""
    capacity = system.capacity.copy()  # writable: for constants the kernel would be compiled once more
    drop = dominated_links(system.use_start, system.use_link, system.use_weight, capacity)
    if not drop.any():
        return system
    keep = ~drop[system.use_link]
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    return replace(
        system,
        use_start=kept_before[system.use_start],
        use_link=system.use_link[keep],
        use_weight=system.use_weight[keep],
    )
