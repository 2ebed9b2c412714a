"""Multiplicative weights, the kernels: the cheapest trees take what fits, and the arcs they use become dearer.

Garg and Koenemann 2007. Every arc has a weight and costs its weight over its capacity. The cheapest column (trees that
together do the collective once) is given a rate that fills no arc more than once over, and every arc's weight grows by
the factor 1 + step * (part of it that was filled). No column can have been cheaper, so what all weights add up to over
what the column costs bounds every packing from above (linear-programming duality): the least bound seen is the
certificate. All rates over the load of the fullest arc are a packing.

Three kernels differ in what a column is: a tree both ways, where everything is equal both ways; a tree to a root and
one out of it, the root being free; a tree out of every root, in given shares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.topoadopt._arborescence import cheapest_arborescence, cheapest_spanning_tree
from ropewalk.collectives.topoadopt._ways import shortest_ways, write_way
from ropewalk.compiled import kernel

_LARGE = 1e100
"""Weights are divided by their sum when it exceeds this."""


class Graph(NamedTuple):
    """A network as arrays."""

    first: Ints
    leaving: Ints
    tail: Ints
    head: Ints
    members: Ints
    forwarders: Ints
    mirror: Ints
    """The arc that carries the same data backwards, where everything is equal both ways; else empty."""
    capacity: Floats


class Search(NamedTuple):
    """Where the search stands."""

    weight: Floats
    load: Floats
    best_weight: Floats
    """The weights that gave the least bound."""
    bound: Floats
    """One number: the least bound."""
    packed: Floats
    """One number: all rates together, not yet divided by the load of the fullest arc."""
    growth: Floats
    """One number: the logarithm of the factor by which all weights together have grown."""
    turn: Ints
    """One number: the root whose turn it is."""
    floor: Floats
    """One number. Free roots: the logarithm of a cost that no column is below. Given shares: the rate of a round."""
    rest: Floats
    """One number. Free roots: the floor after this round. Given shares: what the root in turn has still to get."""
    spent: Floats
    """Given shares: what this round has cost, and `growth` when it began."""


class FoundTrees(NamedTuple):
    """Trees in the order they are found."""

    root: Ints
    rate: Floats
    parent: Ints
    ways: NDArray[np.int32]
    """Arcs on the way to each child, the last one first, then -1."""


@kernel
def _priced(graph: Graph, search: Search, between: Floats, last: Ints) -> float:
    """Costs between members under the current weights; what all weights add up to."""
    cost = search.weight / graph.capacity
    shortest_ways(graph.first, graph.leaving, graph.head, graph.members, graph.forwarders, cost, between, last)
    total: float = search.weight.sum()
    return total


@kernel
def _use(graph: Graph, parent: Ints, last: Ints, found: FoundTrees, slot: int, use: Floats, reduces: bool) -> None:
    """Write a tree down and count how often it takes each arc.

    The paths of a tree that reduces run from the child to the parent, here the first arc first.
    """
    found.parent[slot] = parent
    found.ways[slot] = -1
    way = np.empty(len(graph.first), np.int64)
    for child in range(len(parent)):
        if parent[child] >= 0:
            start, end = (child, parent[child]) if reduces else (parent[child], child)
            length = write_way(last, graph.tail, graph.members, start, end, way)
            for place in range(length):
                found.ways[slot, child, place] = way[length - 1 - place] if reduces else way[place]
                use[way[place]] += 1


@kernel
def _most(graph: Graph, use: Floats) -> float:
    """The rate that fills the fullest arc once."""
    rate = np.inf
    for arc in range(len(use)):
        if use[arc] > 0:
            rate = min(rate, graph.capacity[arc] / use[arc])
    return rate


@kernel
def _charge(graph: Graph, search: Search, use: Floats, rate: float, step: float) -> None:
    """Make arcs dearer by what they are used."""
    before = search.weight.sum()
    for arc in range(len(use)):
        if use[arc] > 0:
            search.load[arc] += rate * use[arc]
            search.weight[arc] *= 1 + step * rate * use[arc] / graph.capacity[arc]
    after = search.weight.sum()
    search.growth[0] += np.log(after / before)
    if after > _LARGE:
        search.weight[:] /= after


@kernel
def _note_bound(search: Search, bound: float) -> None:
    if bound < search.bound[0]:
        search.bound[0] = bound
        search.best_weight[:] = search.weight


@kernel
def _finished(graph: Graph, search: Search, wanted: float, growth: float) -> bool:
    """Whether what is packed is the wanted part of the bound, or weights have grown by all that theory asks for."""
    fullest = (search.load / graph.capacity).max()
    if search.growth[0] >= growth:
        return True
    enough: bool = search.packed[0] / fullest >= wanted * search.bound[0]
    return enough


@kernel
def pack_both_ways(
    graph: Graph, search: Search, found: FoundTrees, step: float, wanted: float, growth: float
) -> tuple[int, bool]:
    """Trees that reduce and spread over the same arcs there and back; how many were found, and whether that is it."""
    n = len(graph.members)
    between = np.empty((n, n))
    last = np.empty((n, len(graph.first) - 1), np.int64)
    parent = np.empty(n, np.int64)
    use = np.empty(len(graph.capacity))
    for slot in range(len(found.rate)):
        total = _priced(graph, search, between, last)
        _note_bound(search, total / (2 * cheapest_spanning_tree(between, parent)))
        use[:] = 0
        _use(graph, parent, last, found, slot, use, False)
        use += use[graph.mirror]
        rate = _most(graph, use)
        found.root[slot] = 0
        found.rate[slot] = rate
        search.packed[0] += rate
        _charge(graph, search, use, rate, step)
        if _finished(graph, search, wanted, growth):
            return slot + 1, True
    return len(found.rate), False


@kernel
def pack_pairs(
    graph: Graph, search: Search, spreading: FoundTrees, reducing: FoundTrees, step: float, wanted: float, growth: float
) -> tuple[int, bool]:
    """A tree to a root and one out of it at a time; roots take turns, each as long as it is nearly the cheapest.

    Fleischer 2000: a root that is left costs more than 1 + step times the floor, and weights only grow, so that after
    a round over all roots the least cost at which one was left is the new floor.
    """
    n = len(graph.members)
    between = np.empty((n, n))
    last = np.empty((n, len(graph.first) - 1), np.int64)
    out, back = np.empty(n, np.int64), np.empty(n, np.int64)
    use = np.empty(len(graph.capacity))
    slot = 0
    while slot < len(spreading.rate):
        total = _priced(graph, search, between, last)
        root = search.turn[0]
        cost = cheapest_arborescence(between, root, out)
        cost += cheapest_arborescence(between.T.copy(), root, back)
        # Weights may have been divided meanwhile; growth tells by how much.
        true_cost = np.log(cost / total) + search.growth[0]
        if true_cost > np.log(1 + step) + search.floor[0]:
            search.rest[0] = min(search.rest[0], true_cost)
            search.turn[0] += 1
            if search.turn[0] == n:
                search.turn[0] = 0
                search.floor[0] = search.rest[0]
                search.rest[0] = np.inf
                _note_bound(search, np.exp(search.growth[0] - search.floor[0]))
            continue
        use[:] = 0
        _use(graph, out, last, spreading, slot, use, False)
        _use(graph, back, last, reducing, slot, use, True)
        rate = _most(graph, use)
        spreading.root[slot], reducing.root[slot] = root, root
        spreading.rate[slot], reducing.rate[slot] = rate, rate
        search.packed[0] += rate
        _charge(graph, search, use, rate, step)
        slot += 1
        if _finished(graph, search, wanted, growth):
            return slot, True
    return slot, False


@kernel
def pack_shares(
    graph: Graph, search: Search, found: FoundTrees, share: Floats, step: float, wanted: float, growth: float
) -> tuple[int, bool]:
    """Trees out of every root in given shares; in a round each root gets its share of the best rate known so far."""
    n = len(graph.members)
    between = np.empty((n, n))
    last = np.empty((n, len(graph.first) - 1), np.int64)
    parent = np.empty(n, np.int64)
    use = np.empty(len(graph.capacity))
    for slot in range(len(found.rate)):
        root = search.turn[0]
        if search.rest[0] == 0:
            search.rest[0] = share[root] * search.floor[0]
        _priced(graph, search, between, last)
        cost = cheapest_arborescence(between, root, parent)
        use[:] = 0
        _use(graph, parent, last, found, slot, use, False)
        rate = min(search.rest[0], _most(graph, use))
        found.root[slot] = root
        found.rate[slot] = rate
        search.spent[0] += cost * rate / search.weight.sum() * np.exp(search.growth[0] - search.spent[1])
        _charge(graph, search, use, rate, step)
        search.rest[0] -= rate
        if search.rest[0] > 0:
            continue
        search.turn[0] += 1
        while search.turn[0] < n and share[search.turn[0]] == 0:
            search.turn[0] += 1
        if search.turn[0] < n:
            continue
        search.packed[0] += search.floor[0]
        _note_bound(search, np.exp(search.growth[0] - search.spent[1]) * search.floor[0] / search.spent[0])
        search.spent[0], search.spent[1] = 0, search.growth[0]
        search.turn[0] = np.argmax(share > 0)
        fullest = (search.load / graph.capacity).max()
        if _finished(graph, search, wanted, growth):
            return slot + 1, True
        search.floor[0] = max(search.floor[0], search.packed[0] / fullest)
    return len(found.rate), False
