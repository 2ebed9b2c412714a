"""Evening out whole numbers of trees, the kernel: units move from trees over the fullest arc to others of their group.

A unit moves where afterwards every arc that it touches is less full than the fullest arc was, so that either the
fullest arc becomes less full or there is one less that is as full: the search ends by itself.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel

_LESS = 1 - 1e-12
"""Fills that differ by rounding alone are equal."""


@kernel
def even_out(first: Ints, arc: Ints, times: Ints, start: Ints, end: Ints, capacity: Floats, counts: Ints) -> float:
    """Change `counts` in place, keeping the sum of every group; how full the fullest arc is in the end.

    Tree t takes arcs `arc[first[t] : first[t + 1]]`, each so many times; its group are trees `start[t]` to `end[t]`,
    the latter not included. Ties fall to the lowest trees.
    """
    trees = len(counts)
    load = np.zeros(len(capacity), np.int64)
    for tree in range(trees):
        for place in range(first[tree], first[tree + 1]):
            load[arc[place]] += counts[tree] * times[place]
    while True:
        fill = load / capacity
        fullest = np.argmax(fill)
        limit = fill[fullest] * _LESS
        least, giver, taker = limit, -1, -1
        for tree in range(trees):
            if counts[tree] == 0:
                continue
            takes = False
            for place in range(first[tree], first[tree + 1]):
                takes |= arc[place] == fullest
            if not takes:
                continue
            for place in range(first[tree], first[tree + 1]):
                load[arc[place]] -= times[place]
            for other in range(start[tree], end[tree]):
                most = 0.0
                for place in range(first[other], first[other + 1]):
                    most = max(most, (load[arc[place]] + times[place]) / capacity[arc[place]])
                    if most >= least:
                        break
                if most < least:
                    least, giver, taker = most, tree, other
            for place in range(first[tree], first[tree + 1]):
                load[arc[place]] += times[place]
        if giver < 0:
            return float(fill[fullest])
        counts[giver] -= 1
        counts[taker] += 1
        for place in range(first[giver], first[giver + 1]):
            load[arc[place]] -= times[place]
        for place in range(first[taker], first[taker + 1]):
            load[arc[place]] += times[place]
