"""Forests with a fixed number of trees for each root, all of the same weight: what formats for libraries can express.

With k trees of one unit each, an arc holds floor(U c) of them for some U, and a smaller U is a faster schedule. What
fits at U fits at every larger one, and floor(U c) only changes where U c is whole for some capacity, so the smallest U
is found exactly by halving the list of those places (ForestColl, arXiv 2402.06787, on fixed k).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from ropewalk.collectives.forest.demand import CapacityGraph
from ropewalk.collectives.forest.forest import Forest, forest_of
from ropewalk.collectives.forest.growing import bundles_of
from ropewalk.collectives.forest.packing import Bundle
from ropewalk.collectives.forest.symmetric import backwards
from ropewalk.collectives.forest.synthesis import AllReduceForest
from ropewalk.collectives.optimum.gather import largest_ratio
from ropewalk.collectives.optimum.network import Network
from ropewalk.errors import ProgramError


def fixed_forest(network: Network, trees_per_root: int, kind: str) -> Forest | AllReduceForest:
    """The best forest with so many trees of one weight from (or to) every member; with shards, so many a unit of shard.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import Dgx
    >>> forest = fixed_forest(network_of(Dgx(2).build()), 1, "allgather")
    >>> forest.algbw / 10**9, len(forest.trees)
    (Fraction(2400, 7), 16)
    """
    if kind not in _KINDS:
        raise ProgramError(f"{kind} has no fixed number of trees per root: give one of {', '.join(_KINDS)}")
    if trees_per_root < 1:
        raise ProgramError(f"{trees_per_root} trees per root: give at least 1")
    if network.copying:
        raise ProgramError("trees are for switches that only forward: leave in-network multicast out")
    return _KINDS[kind](network, trees_per_root)


def _gathering(network: Network, trees_per_root: int) -> Forest:
    stretch = _smallest_stretch(network, trees_per_root)
    trees = {
        int(member): weight * trees_per_root
        for member, weight in zip(network.members, network.weight, strict=True)
        if weight
    }
    wiring = CapacityGraph(network.vertices, trees, tuple(network.members.tolist()), network.bandwidth(1 / stretch))
    ends = zip(network.tail.tolist(), network.head.tolist(), strict=True)
    for arc, amount in zip(ends, _whole_capacities(network, stretch), strict=True):
        wiring.add(arc, amount)
    wiring, bundles = bundles_of(network, wiring)
    return forest_of(network, wiring, [single for bundle in bundles for single in _singles(bundle)])


def _summing(network: Network, trees_per_root: int) -> AllReduceForest:
    """Both halves at the same time, each with its trees, sharing every arc in the proportion of their times."""
    spreading = _gathering(network, trees_per_root)
    mirrored = network.mirror is not None
    reducing = backwards(spreading) if mirrored else _gathering(network.reversed(), trees_per_root)
    both = 1 / (1 / reducing.algbw + 1 / spreading.algbw)
    return AllReduceForest(reducing.scaled(both / reducing.algbw), spreading.scaled(both / spreading.algbw))


_KINDS: Mapping[str, Callable[[Network, int], Forest | AllReduceForest]] = {
    "allgather": _gathering,
    "reducescatter": lambda network, trees: _gathering(network.reversed(), trees),
    "allreduce": _summing,
}


def _singles(bundle: Bundle) -> list[Bundle]:
    return [Bundle(bundle.root, 1, bundle.depth, bundle.arcs) for _ in range(bundle.trees)]


def _whole_capacities(network: Network, stretch: Fraction) -> list[int]:
    return [math.floor(stretch * capacity) for capacity in network.capacity]


def _smallest_stretch(network: Network, trees_per_root: int) -> Fraction:
    """The smallest U, trees a unit of capacity, at which the trees fit into floor(U c)."""
    least = trees_per_root * largest_ratio(network).value
    enough = least
    while not _fits(network, enough, trees_per_root):
        enough *= 2
        if enough > trees_per_root * network.total_weight * 2:
            raise ProgramError(
                f"with whole numbers of trees some switch of {network.fabric.name}, or a limit of a host, receives "
                "more "
                "than it sends: give links with equal bandwidth in both directions and no limits, or use --method "
                "forest"
            )
    places = sorted(
        {
            Fraction(trees, capacity)
            for capacity in set(network.capacity)
            for trees in range(math.ceil(least * capacity), math.floor(enough * capacity) + 1)
        }
        | {least, enough}
    )
    return places[bisect_left(places, True, key=lambda stretch: _fits(network, stretch, trees_per_root))]


def _fits(network: Network, stretch: Fraction, trees_per_root: int) -> bool:
    """Whether all trees of all roots reach every member within whole capacities, and switches pass on what they get."""
    whole = _whole_capacities(network, stretch)
    surplus = np.zeros(network.vertices, np.int64)
    np.add.at(surplus, network.head, whole)
    np.subtract.at(surplus, network.tail, whole)
    if surplus[~network.is_member].any():
        return False
    need = trees_per_root * network.total_weight
    capacity = whole + [trees_per_root * weight for weight in network.weight]
    return network.flow_network.first_shortfall(capacity, network.vertices, network.sinks, need) is None
