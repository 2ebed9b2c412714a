"""The search for l leafs that have s free spines in common, cheapest leafs first: branch and bound over bit masks.

Leafs come sorted by cost. A node of the search is a set of chosen leafs with the spines they all can still reach; it is
left when too few spines or too few further leafs remain, when even the cheapest completion costs as much as the best
one found, or when an earlier (so no dearer) leaf at the same place could reach every spine that this one can.

On rails a row of words stands for a unit: the words of its leafs in turn, of which each must have s spines in common.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel
from ropewalk.tenancy._bits_kernel import common

NONE = 0
"""The whole space was searched: there is nothing."""
BEST = 1
"""The whole space was searched: this is cheapest."""
FOUND = 2
"""The budget ran out after something was found."""
UNKNOWN = 3
"""The budget ran out before anything was found."""

ANYTHING = 1 << 62
"""Costs more than any leafs."""


@kernel
def enough(mask: NDArray[np.uint64], words: NDArray[np.uint64], rails: int, spines: int) -> bool:
    """Do a mask and a row share so many spines on every rail?"""
    wide = len(mask) // rails
    for rail in range(rails):
        if common(mask[rail * wide : (rail + 1) * wide], words[rail * wide : (rail + 1) * wide]) < spines:
            return False
    return True


@kernel
def covers(mask: NDArray[np.uint64], earlier: NDArray[np.uint64], later: NDArray[np.uint64]) -> bool:
    """Does the earlier leaf reach every spine of the mask that the later one reaches?"""
    for w in range(len(mask)):  # noqa: SIM110 (kernels have no generators)
        if mask[w] & later[w] & ~earlier[w]:
            return False
    return True


@kernel
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


@kernel
def _keep_reaching(
    mask: NDArray[np.uint64],
    words: NDArray[np.uint64],
    candidates: NDArray[np.int64],
    count: int,
    rails: int,
    spines: int,
) -> int:
    """Keep, in order, the candidates that share enough spines with the mask; says how many."""
    kept = 0
    for c in range(count):
        if enough(mask, words[candidates[c]], rails, spines):
            candidates[kept] = candidates[c]
            kept += 1
    return kept


@kernel
def core(
    mask: NDArray[np.uint64],
    words: NDArray[np.uint64],
    candidates: NDArray[np.int64],
    count: int,
    leafs: int,
    rails: int,
    spines: int,
) -> int:
    """Shrink mask and candidates until each spine is reached by enough leafs and each leaf reaches enough spines."""
    while True:
        count = _keep_reaching(mask, words, candidates, count, rails, spines)
        if count < leafs:
            return 0
        if not _drop_rare_spines(mask, words, candidates, count, leafs):
            return count
        if not enough(mask, mask, rails, spines):
            return 0


@kernel
def cheapest_leafs(
    words: NDArray[np.uint64],
    cost: NDArray[np.int64],
    leafs: int,
    rails: int,
    spines: int,
    budget: int,
    most: int,
) -> tuple[int, int, NDArray[np.int64]]:
    """(status, nodes visited, chosen rows of `words`) of what costs less than `most`; rows must be sorted by cost."""
    rows, width = words.shape
    chosen = np.zeros(leafs, np.int64)
    candidates = np.empty((leafs, rows), np.int64)
    count = np.zeros(leafs, np.int64)
    place = np.zeros(leafs, np.int64)
    mask = np.zeros((leafs, width), np.uint64)
    spent = np.zeros(leafs, np.int64)
    path = np.zeros(leafs, np.int64)
    best = most
    nodes = 0

    mask[0] = ~mask[0]
    candidates[0] = np.arange(rows)
    count[0] = core(mask[0], words, candidates[0], rows, leafs, rails, spines)
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
            if covers(mask[depth], words[candidates[depth, c]], words[leaf]):
                skip = True
                break
        if skip:
            continue
        if nodes >= budget:
            return (FOUND if best < most else UNKNOWN), nodes, chosen
        nodes += 1
        below = depth + 1
        mask[below] = mask[depth] & words[leaf]
        after = count[depth] - at - 1
        candidates[below, :after] = candidates[depth, at + 1 : count[depth]]
        count[below] = core(mask[below], words, candidates[below], after, missing - 1, rails, spines)
        place[below] = 0
        spent[below] = spent[depth] + cost[leaf]
        depth = below
    return (BEST if best < most else NONE), nodes, chosen


@kernel
def cheapest_in_a_pod(
    words: NDArray[np.uint64],
    ports: NDArray[np.int64],
    rows: NDArray[np.int64],
    first_row: NDArray[np.int64],
    leafs: int,
    rails: int,
    spines: int,
    budget: int,
) -> tuple[int, int, NDArray[np.int64]]:
    """The same over pods, whose leafs have no spine in common: rows `first_row[p]` to `first_row[p + 1]` - 1 are pod p.

    Answers rows of `words`; those of a pod come sorted by cost.
    """
    best, status, nodes = ANYTHING, NONE, 0
    chosen = np.zeros(leafs, np.int64)
    for pod in range(len(first_row) - 1):
        mine = rows[first_row[pod] : first_row[pod + 1]]
        if len(mine) < leafs:
            continue
        found, visited, places = cheapest_leafs(words[mine], ports[mine], leafs, rails, spines, budget - nodes, best)
        nodes += visited
        if found in (BEST, FOUND):
            chosen = mine[places]
            best = int(ports[chosen].sum())
        if found in (FOUND, UNKNOWN):
            return (FOUND if best < ANYTHING else UNKNOWN), nodes, chosen
        if best < ANYTHING:
            status = BEST
    return status, nodes, chosen
