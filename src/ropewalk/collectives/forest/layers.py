"""Forests in layers: as shallow as they can be, found without a single maximum flow.

Where all trees of a root reach a member only from members nearer to that root, any choice of who brings which tree
makes trees: nothing can go in a circle. So every member decides for itself which neighbour brings it which trees,
within the capacities into it, and that is a small transport problem of roots and neighbours (the breadth-first
broadcast of Zhao et al., NSDI 2025, at a given rate). It has no solution on every fabric; then trees are packed.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.forest._layering import UNREACHED, brought, hops_from_all
from ropewalk.collectives.forest.demand import CapacityGraph
from ropewalk.collectives.forest.packing import Bundle, check_countable
from ropewalk.collectives.forest.size import foresee_trees
from ropewalk.progress import counted

Brought = list[tuple[Ints, Ints]]
"""For every member the members that bring it trees, and how many of each root (rows) each of them (columns) does."""


def layered(wiring: CapacityGraph) -> list[Bundle] | None:
    """Bundles of trees in which everyone is reached from nearer to the root; None where capacities forbid that."""
    check_countable(wiring)
    members = list(wiring.members)
    place = {member: at for at, member in enumerate(members)}
    arcs = sorted((place[u], place[v], amount) for (u, v), amount in wiring.capacity.items())
    tail, head, capacity = (np.array(column, np.int64) for column in zip(*arcs, strict=True))
    wanted = np.zeros(len(members), np.int64)
    for root, trees in wiring.trees.items():
        wanted[place[root]] = trees
    first = np.searchsorted(tail, np.arange(len(members) + 1))
    for hops in _ways_to_count_hops(first, head, capacity, wanted):
        found = _all_brought(tail, head, capacity, wanted, hops)
        if found is not None:
            roots = np.flatnonzero(wanted).tolist()
            trees_of = partial(_trees_of, wanted=wanted, hops=hops, found=found, members=members)
            foresee_trees(len(members), roots, trees_of)
            return [bundle for root in counted(roots, "growing trees, root by root") for bundle in trees_of(root)]
    return None


def _ways_to_count_hops(first: Ints, head: Ints, capacity: Ints, wanted: Ints) -> list[Ints]:
    """Over all arcs; over arcs that take some of a root's trees at once; each only if it reaches everyone.

    The last ones tell members apart that are as many hops away, so that they can bring each other trees: deeper, but
    with more freedom.
    """
    most = int(wanted.max())
    counted: list[Ints] = []
    for least in dict.fromkeys((1, -(-most // 4), -(-most // 2), most)):
        hops = hops_from_all(first, head, capacity >= least)
        if hops[wanted > 0].max() < UNREACHED and not any((hops == other).all() for other in counted):
            counted.append(hops)
    every = np.arange(len(wanted))
    turned = (every - every[:, None]) % len(wanted)
    return counted + [hops * len(wanted) + order for hops in counted for order in (turned, turned.max() - turned)]


def _all_brought(tail: Ints, head: Ints, capacity: Ints, wanted: Ints, hops: Ints) -> Brought | None:
    found: Brought = []
    into = np.argsort(head, kind="stable")
    start = np.searchsorted(head[into], np.arange(len(wanted) + 1))
    for member, (begin, end) in enumerate(pairwise(start.tolist())):
        arcs = into[begin:end]
        before: NDArray[np.bool_] = hops[:, tail[arcs]] < hops[:, [member]]
        amount = brought(member, before, wanted, capacity[arcs])
        if len(arcs) and amount[0, 0] < 0:
            return None
        found.append((tail[arcs], amount))
    return found


def _trees_of(root: int, wanted: Ints, hops: Ints, found: Brought, members: list[int]) -> list[Bundle]:
    """The trees of one root, laid side by side: every member's neighbours take them one after the other."""
    order = [int(v) for v in np.lexsort((np.arange(len(members)), hops[root])) if v != root]
    ends = {0, int(wanted[root])}
    parents: dict[int, list[tuple[int, int]]] = {}
    for v in order:
        neighbours, amount = found[v]
        used = np.flatnonzero(amount[root])
        # The largest part first: then parts of different members end at the same place more often.
        used = used[np.lexsort((used, -amount[root, used]))]
        stops = np.cumsum(amount[root, used]).tolist()
        parents[v] = list(zip(stops, neighbours[used].tolist(), strict=True))
        ends.update(stops)
    bundles = []
    for begin, end in pairwise(sorted(ends)):
        depth, arcs = {root: 0}, []
        for v in order:
            parent = next(neighbour for stop, neighbour in parents[v] if begin < stop)
            depth[v] = depth[parent] + 1
            arcs.append((members[parent], members[v]))
        named = {members[at]: value for at, value in depth.items()}
        bundles.append(Bundle(members[root], end - begin, named, arcs))
    return bundles
