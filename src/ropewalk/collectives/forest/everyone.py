"""Straight to everyone: where the fabric has room for it, every root sends to every member directly, in one hop.

Ways are negotiated (McMurchie and Ebeling 1995): every pair takes a cheap way that keeps off full arcs; where that
ends in a dead end, arcs that are asked for too much become dearer and all pairs start again. Prices also tell when to
give up: if all ways together cost more than all arcs are worth, there is no room, however they are chosen.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.forest._everyone import prices_of_ways, routed
from ropewalk.collectives.forest.demand import CapacityGraph
from ropewalk.collectives.forest.packing import Bundle, check_countable

_ROUNDS = 12
_STEP = 0.7
"""How much of what an arc was asked for beyond its capacity goes into its price."""


def straight_to_everyone(wiring: CapacityGraph) -> tuple[CapacityGraph, list[Bundle]] | None:
    """The ways that are used and one bundle for every root; None where no room for that is found."""
    # Roots take turns, so that no part of the fabric is filled by one of them.
    n = len(wiring.members)
    turns = [(at, (at + jump) % n) for jump in range(1, n) for at in range(n) if wiring.members[at] in wiring.trees]
    pairs = [(wiring.members[u], wiring.members[v]) for u, v in turns]
    used = _negotiated(wiring, pairs, [wiring.trees[root] for root, _ in pairs])
    if used is None:
        return None
    return used, [_star(wiring, root, root, trees) for root, trees in wiring.trees.items()]


def by_way_of_everyone(wiring: CapacityGraph) -> tuple[CapacityGraph, list[Bundle]] | None:
    """From one root a part to each other member, which hands it to all others; None where no room for that is found."""
    ((root, trees),) = wiring.trees.items()
    others = [member for member in wiring.members if member != root]
    n = len(others)
    if n < 2:
        return None
    fine = CapacityGraph(wiring.vertices, {root: trees * n}, wiring.members, wiring.unit / n)
    for ways in wiring.ways.values():
        for path, amount in ways:
            fine.add(path, amount * n)
    pairs = [(root, other) for other in others]
    pairs += [(others[at], others[(at + jump) % n]) for jump in range(1, n) for at in range(n)]
    used = _negotiated(fine, pairs, [trees] * len(pairs))
    if used is None:
        return None
    return used, [_star(wiring, root, other, trees) for other in others]


def _negotiated(wiring: CapacityGraph, pairs: list[tuple[int, int]], amounts: list[int]) -> CapacityGraph | None:
    """Ways for amounts between pairs of members, past no other member; None where no room for them is found."""
    check_countable(wiring)
    listed = sorted(wiring.capacity)
    tail, head = (np.array(column, np.int64) for column in zip(*listed, strict=True))
    capacity = np.array([wiring.capacity[ends] for ends in listed], np.int64)
    first = np.searchsorted(tail, np.arange(wiring.vertices + 1))
    is_member = np.zeros(wiring.vertices, np.bool_)
    is_member[list(wiring.members)] = True
    roots, ends = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    wanted = np.array(amounts, np.int64)
    asked = np.zeros((wiring.vertices, wiring.vertices), np.int64)
    np.add.at(asked, (roots, ends), wanted)
    base = np.ones(len(capacity))
    for _ in range(_ROUNDS):
        if _too_dear(asked, first, head, capacity, base, is_member):
            return None
        left = capacity.copy()
        fits, ways, stops, arcs = routed(roots, ends, wanted, first, head, capacity, base, is_member, left, True)
        if fits:
            used = CapacityGraph(wiring.vertices, dict(wiring.trees), wiring.members, wiring.unit)
            for (pair, amount), (begin, stop) in zip(ways.tolist(), pairwise([0, *stops.tolist()]), strict=True):
                used.add((int(roots[pair]), *head[arcs[begin:stop]].tolist()), amount)
            return used
        if _too_dear(asked, first, head, capacity, (left <= 0).astype(np.float64), is_member):
            return None
        left = capacity.copy()
        routed(roots, ends, wanted, first, head, capacity, base, is_member, left, False)
        base *= np.clip((capacity - left) / capacity, 0.5, 2.0) ** _STEP
    return None


def _too_dear(
    asked: Ints, first: Ints, head: Ints, capacity: Ints, price: Floats, is_member: NDArray[np.bool_]
) -> bool:
    """Whether the cheapest paths of all pairs cost more than all arcs together: then they cannot all fit."""
    worth = float((capacity * price).sum()) * (1 + 1e-9)
    unused = np.full(len(is_member), -1, np.int64)
    total = 0.0
    for start in np.flatnonzero(asked.any(axis=1)).tolist():
        cost = prices_of_ways(start, -1, first, head, price, is_member, unused, unused.copy())
        wanted = asked[start] > 0
        total += float(cost[wanted] @ asked[start, wanted])
        if total > worth:
            return True
    return False


def _star(wiring: CapacityGraph, root: int, hub: int, trees: int) -> Bundle:
    """Equal trees in which a hub, the root or one hop from it, reaches all others."""
    at = wiring.members.index(hub)
    others = [member for member in wiring.members[at + 1 :] + wiring.members[:at] if member != root]
    depth, arcs = ({root: 0}, []) if hub == root else ({root: 0, hub: 1}, [(root, hub)])
    return Bundle(root, trees, depth | dict.fromkeys(others, depth[hub] + 1), arcs + [(hub, v) for v in others])
