"""The strength of a graph: how many spanning trees fit into it, counted in bandwidth.

Without switches and with links alike both ways, an all-reduce reduces and spreads along the same undirected trees, and
the trees that fit are as many as the narrowest partition allows: min over partitions P of c(P) / (|P| - 1), where c(P)
is the bandwidth between different parts (Tutte and Nash-Williams 1961; Cunningham 1985).

A partition that is narrower than a given ratio is found vertex by vertex: vertex j looks for the best set of earlier
vertices to stand with, by one minimum cut, and sets that share a vertex merge (Barahona 1995). Newton's iteration then
lowers the ratio until no partition is narrower.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.collectives.optimum.maxflow import FlowNetwork
from ropewalk.collectives.optimum.network import Network


class Strength(NamedTuple):
    """The largest rate of spanning trees, and the partition that forbids more."""

    value: Fraction
    """In units of capacity."""
    part: Ints
    """The part that each vertex is in, numbered from 0."""


def strength(network: Network) -> Strength:
    """The strength of a network of members alone, whose arcs are alike both ways.

    >>> from ropewalk.collectives.optimum.modelling import network_of
    >>> from ropewalk.fabric import Mesh
    >>> strength(network_of(Mesh((4, 4)).build())).value
    Fraction(8, 5)
    """
    assert network.mirror is not None
    assert network.is_member.all()
    best = _ratio(network, np.arange(network.vertices))
    while True:
        part = _narrowest_partition(network, best.value)
        # All in one part: no partition is narrower than the ratio.
        if part.max() == 0 or (narrower := _ratio(network, part)).value >= best.value:
            return best
        best = narrower


def _ratio(network: Network, part: Ints) -> Strength:
    between = network.capacity_of(np.flatnonzero(part[network.tail] != part[network.head]))
    return Strength(Fraction(between, 2 * int(part.max())), part)


def _narrowest_partition(network: Network, ratio: Fraction) -> Ints:
    """The partition with the least sum over its parts of (bandwidth out of the part) / 2 - ratio.

    In whole numbers, f(A) = q d(A) - 2p for a ratio p/q; y(j) is the least of f(A) - y(A without j) over the sets A
    of j and earlier vertices, and each such A is tight, so that tight sets that meet have a tight union.
    """
    n = network.vertices
    vertex = np.arange(n)
    flows = FlowNetwork(
        n + 2,
        np.concatenate([network.tail, np.full(n, n), vertex]),
        np.concatenate([network.head, vertex, np.full(n, n + 1)]),
    )
    p, q = ratio.numerator, ratio.denominator
    links = [q * capacity for capacity in network.capacity]
    beyond = sum(links) + 2 * p * n + 1
    part = vertex.copy()
    reward = [0] * n
    for j in range(n):
        join = [max(0, reward[u]) for u in range(j)] + [beyond] + [0] * (n - j - 1)
        stay = [max(0, -reward[u]) for u in range(j)] + [0] + [beyond] * (n - j - 1)
        cut = flows.cut(_small([*links, *join, *stay]), n, n + 1)
        reward[j] = cut.flow - sum(join[:j]) - 2 * p
        together = np.unique(part[np.flatnonzero(cut.source_side[:n])])
        part[np.isin(part, together)] = together[0]
    return np.unique(part, return_inverse=True)[1].astype(np.int64)


def _small(values: list[int]) -> Ints | list[int]:
    return np.array(values, np.int64) if max(values) < 1 << 40 else values
