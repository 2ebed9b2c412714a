"""Crux's priority compression: many priorities onto the few levels that switches have.

Jobs that share links are a directed graph, from the one with the higher priority to the other; an edge weighs what is
lost if both get the same level. Levels follow the edges, and as much weight as possible lies between different levels:
a maximum K-cut of the graph along one of its topological orders. For one order the best cut into K stretches is found
exactly by dynamic programming; several orders are drawn and the best cut of them is taken.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

LEVELS = 8
"""Queues of a switch port."""
ORDERS = 16
"""Topological orders that are drawn beside the one by priority."""
Edges = Mapping[tuple[int, int], float]
"""(job that goes first, other job) -> what is lost if both have the same level."""


def compressed(priority: NDArray[np.float64], edges: Edges, levels: int = LEVELS, seed: int = 0) -> NDArray[np.int64]:
    """The level of every job, 0 first; along no edge does it go down.

    >>> compressed(np.array([4.0, 3.0, 2.0, 1.0]), {(0, 1): 4.0, (1, 2): 3.0, (2, 3): 2.0, (0, 3): 4.0}, levels=2)
    array([0, 1, 1, 1])
    """
    count = len(priority)
    ranked = np.lexsort((np.arange(count), -priority))
    if count <= levels:
        found = np.zeros(count, np.int64)
        found[ranked] = np.arange(count)
        return found
    weight = np.zeros((count, count))
    for (first, other), lost in edges.items():
        weight[first, other] += lost
    random, best, least = np.random.default_rng(seed), ranked, np.inf
    level_of_place = np.zeros(count, np.int64)
    for draw in range(ORDERS + 1):
        order = ranked if draw == 0 else _topological(weight, random)
        lost, cut = _cut(weight[np.ix_(order, order)], levels)
        if lost < least - 1e-12:
            best, least, level_of_place = order, lost, cut
    found = np.zeros(count, np.int64)
    found[best] = level_of_place
    return found


def _topological(weight: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    """A random order in which every edge leads forward."""
    waits = (weight > 0).sum(axis=0)
    ready, order = np.flatnonzero(waits == 0).tolist(), []
    while ready:
        job = ready.pop(int(random.integers(len(ready))))
        order.append(job)
        behind = np.flatnonzero(weight[job] > 0)
        waits[behind] -= 1
        ready += behind[waits[behind] == 0].tolist()
    return np.array(order, np.int64)


def _cut(weight: NDArray[np.float64], levels: int) -> tuple[float, NDArray[np.int64]]:
    """(weight inside stretches, level of every place) of the best cut of an order into so many stretches."""
    count = len(weight)
    inside = np.zeros((count + 1, count + 1))
    sums = np.zeros((count + 1, count + 1))
    sums[1:, 1:] = weight.cumsum(axis=0).cumsum(axis=1)
    for begin in range(count + 1):
        ends = np.arange(begin, count + 1)
        inside[begin, begin:] = sums[ends, ends] - sums[begin, ends] - sums[ends, begin] + sums[begin, begin]
    inside[np.tril_indices(count + 1, -1)] = np.inf
    best = inside[0].copy()
    cuts = []
    for _ in range(levels - 1):
        tries = best[:, None] + inside
        cuts.append(tries.argmin(axis=0))
        best = tries.min(axis=0)
    level, end = np.zeros(count, np.int64), count
    for at in range(levels - 1, 0, -1):
        begin = int(cuts[at - 1][end])
        level[begin:end] = at
        end = begin
    return float(best[count]), level
