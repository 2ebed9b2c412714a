"""Slurm's topology/tree: as few leaf switches as possible, near each other, each the tightest that fits.

Leafs are added one at a time. Among those that still have idle nodes the next is one that is nearer to those already
taken and holds all that is missing, or at the same distance the better fit: one that holds all that is missing before
one that does not; of two that do, the one with fewer idle nodes; of two that do not, the one whose switch above is the
better fit, or with more idle nodes. All idle nodes of it are taken, in order, until there are enough.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.placements.levels import Levels, levels_of
from ropewalk.tenancy.placements.seated import GangRequest


def tree_best_fit(levels: Levels, idle: Ints, nodes: int) -> Ints:
    """The leafs that a job of so many nodes gets, in the order in which they are added; `idle` is by server, 0 or 1.

    >>> two = Levels(np.repeat([[0, 1, 2]], 4, axis=1).reshape(1, -1))
    >>> tree_best_fit(two, np.array([1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1]), 3).tolist()
    [1]
    """
    counts = [levels.sums(level, idle) for level in range(levels.depth)]
    counts.insert(0, np.array([idle.sum()]))
    parents = [np.zeros(levels.count(0), np.int64), *(levels.parents(level) for level in range(1, levels.depth))]
    leafs = levels.count(levels.depth - 1)
    distance, chosen, missing = np.zeros(leafs, np.int64), [], nodes
    while missing > 0:
        best = -1
        for leaf in np.flatnonzero(counts[-1]).tolist():
            best = _better(leaf, best, distance, counts, parents, missing)
        if best < 0:
            break
        chosen.append(best)
        distance += _distances(parents, best)
        taken = int(counts[-1][best])
        missing -= taken
        _take(counts, parents, best, taken)
    return np.array(chosen, np.int64)


def by_tree(state: Occupancy, asked: GangRequest) -> Ints:
    """Servers of a job: those of each leaf that is added, the fullest first where a part is smaller than a server."""
    levels, room = levels_of(state.plant), asked.room
    found: list[int] = []
    for leaf in tree_best_fit(levels, (room > 0).astype(np.int64), asked.parts).tolist():
        servers = np.flatnonzero((levels.of_server[-1] == leaf) & (room > 0))
        found += servers[np.argsort(room[servers], kind="stable")].tolist()
    return np.array(found[: asked.parts], np.int64)


def _better(leaf: int, best: int, distance: Ints, counts: list[Ints], parents: list[Ints], missing: int) -> int:
    if best < 0:
        return leaf
    order, fits = _compare(leaf, best, counts, parents, missing)
    nearer = distance[leaf] < distance[best] and fits
    return leaf if nearer or (distance[leaf] == distance[best] and order > 0) else best


def _compare(one: int, other: int, counts: list[Ints], parents: list[Ints], missing: int) -> tuple[int, bool]:
    """(1 where the first is the better fit, -1 where the second is, 0 for neither; whether the first fits)."""
    level = len(counts) - 1
    while True:
        a, b = int(counts[level][one]), int(counts[level][other])
        fits, other_fits = a >= missing, b >= missing
        if fits and other_fits:
            return (int(a < b) - int(a > b)), fits
        if fits or other_fits:
            return (1 if fits else -1), fits
        if level == 0 or parents[level - 1][one] == parents[level - 1][other]:
            return (int(a > b) - int(a < b)), fits
        one, other, level = int(parents[level - 1][one]), int(parents[level - 1][other]), level - 1


def _distances(parents: list[Ints], leaf: int) -> Ints:
    """Hops from a leaf to every leaf: two for every level that has to be climbed."""
    above = [np.arange(len(parents[-1]))]
    for level in range(len(parents) - 1, -1, -1):
        above.append(parents[level][above[-1]])
    apart = np.stack([row != row[leaf] for row in above])
    return np.asarray(2 * apart.sum(axis=0), np.int64)


def _take(counts: list[Ints], parents: list[Ints], leaf: int, taken: int) -> None:
    domain = leaf
    for level in range(len(counts) - 1, -1, -1):
        counts[level][domain] -= taken
        domain = int(parents[level - 1][domain]) if level else domain
