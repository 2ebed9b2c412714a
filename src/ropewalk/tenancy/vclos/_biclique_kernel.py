"""The search for l leafs that have s free spines in common, cheapest leafs first: branch and bound over bit masks.

Leafs come sorted by cost. A node of the search is a set of chosen leafs with the spines they all can still reach; it is
left when too few spines or too few further leafs remain, when even the cheapest completion costs as much as the best
one found, or when an earlier (so no dearer) leaf at the same place could reach every spine that this one can.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

NONE = 0
"""The whole space was searched: there is nothing."""
BEST = 1
"""The whole space was searched: this is cheapest."""
FOUND = 2
"""The budget ran out after something was found."""
UNKNOWN = 3
"""The budget ran out before anything was found."""

_kernel = njit(cache=True, nogil=True)


@_kernel
def _ones(word: np.uint64) -> int:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@_kernel
def _common(mask: NDArray[np.uint64], words: NDArray[np.uint64]) -> int:
    """How many spines two masks share."""
    total = 0
    for w in range(len(mask)):
        total += _ones(mask[w] & words[w])
    return total


@_kernel
def _covers(mask: NDArray[np.uint64], earlier: NDArray[np.uint64], later: NDArray[np.uint64]) -> bool:
    """Does the earlier leaf reach every spine of the mask that the later one reaches?"""
    for w in range(len(mask)):  # noqa: SIM110 (kernels have no generators)
        if mask[w] & later[w] & ~earlier[w]:
            return False
    return True


@_kernel
def _drop_rare_spines(
    mask: NDArray[np.uint64], words: NDArray[np.uint64], candidates: NDArray[np.int64], count: int, least: int
) -> bool:
    """Take spines out of the mask that fewer than `least` candidates reach; says whether any went."""
    changed = False
    for w in range(len(mask)):
        left = mask[w]
        while left:
            bit = left & (~left + np.uint64(1))
            left ^= bit
            reached = 0
            for c in range(count):
                if words[candidates[c], w] & bit:
                    reached += 1
                    if reached >= least:
                        break
            if reached < least:
                mask[w] ^= bit
                changed = True
    return changed


@_kernel
def _keep_reaching(
    mask: NDArray[np.uint64], words: NDArray[np.uint64], candidates: NDArray[np.int64], count: int, spines: int
) -> int:
    """Keep, in order, the candidates that share enough spines with the mask; says how many."""
    kept = 0
    for c in range(count):
        if _common(mask, words[candidates[c]]) >= spines:
            candidates[kept] = candidates[c]
            kept += 1
    return kept


@_kernel
def _core(
    mask: NDArray[np.uint64],
    words: NDArray[np.uint64],
    candidates: NDArray[np.int64],
    count: int,
    leafs: int,
    spines: int,
) -> int:
    """Shrink mask and candidates until each spine is reached by enough leafs and each leaf reaches enough spines."""
    while True:
        count = _keep_reaching(mask, words, candidates, count, spines)
        if count < leafs:
            return 0
        if not _drop_rare_spines(mask, words, candidates, count, leafs):
            return count
        if _common(mask, mask) < spines:
            return 0


@_kernel
def cheapest_leafs(
    words: NDArray[np.uint64], cost: NDArray[np.int64], leafs: int, spines: int, budget: int
) -> tuple[int, int, NDArray[np.int64]]:
    """(status, nodes visited, chosen rows of `words`); rows must be sorted by cost."""
    rows, width = words.shape
    chosen = np.zeros(leafs, np.int64)
    candidates = np.zeros((leafs, rows), np.int64)
    count = np.zeros(leafs, np.int64)
    place = np.zeros(leafs, np.int64)
    mask = np.zeros((leafs, width), np.uint64)
    spent = np.zeros(leafs, np.int64)
    path = np.zeros(leafs, np.int64)
    best = np.int64(1) << np.int64(62)
    nodes = 0

    mask[0] = ~mask[0]
    candidates[0] = np.arange(rows)
    count[0] = _core(mask[0], words, candidates[0], rows, leafs, spines)
    depth = 0
    while depth >= 0:
        missing = leafs - depth
        at = place[depth]
        if count[depth] - at < missing:
            depth -= 1
            continue
        least = spent[depth]
        for c in range(at, at + missing):
            least += cost[candidates[depth, c]]
        if least >= best:
            depth -= 1  # costs ascend, so whatever stands behind is no cheaper
            continue
        place[depth] += 1
        leaf = candidates[depth, at]
        path[depth] = leaf
        if missing == 1:
            best = least
            chosen[:] = path
            nodes += 1
            depth -= 1
            continue
        skip = False
        for c in range(at):
            if _covers(mask[depth], words[candidates[depth, c]], words[leaf]):
                skip = True
                break
        if skip:
            continue
        if nodes >= budget:
            return (FOUND if best < np.int64(1) << np.int64(62) else UNKNOWN), nodes, chosen
        nodes += 1
        below = depth + 1
        mask[below] = mask[depth] & words[leaf]
        after = count[depth] - at - 1
        candidates[below, :after] = candidates[depth, at + 1 : count[depth]]
        count[below] = _core(mask[below], words, candidates[below], after, missing - 1, spines)
        place[below] = 0
        spent[below] = spent[depth] + cost[leaf]
        depth = below
    return (BEST if best < np.int64(1) << np.int64(62) else NONE), nodes, chosen
