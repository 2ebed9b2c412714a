"""All-reduce where links are equal both ways: trees without a direction, each used to reduce and to spread.

Under prices that are equal both ways the cheapest tree into any root and the one out of it are the cheapest spanning
tree, so a column is one tree, and its root can be its centre, which halves its depth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.forest import AllReduceForest, Forest
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.topoadopt._costs import cost_both_ways
from ropewalk.collectives.topoadopt._weights import Graph, pack_both_ways
from ropewalk.collectives.topoadopt.apportioning import apportioned
from ropewalk.collectives.topoadopt.columns import TreeColumns
from ropewalk.collectives.topoadopt.graph import SearchEnd, fresh_search, graph_of, room_for_trees, searched
from ropewalk.collectives.topoadopt.growing import arcs_from_parent, centre, depths_from, grown_tree, rerooted


@dataclass(eq=False)
class BothWays:
    """Trees of an all-reduce on a network that is its own mirror image."""

    network: Network
    columns: TreeColumns = field(init=False)

    def __post_init__(self) -> None:
        self.columns = TreeColumns(self.network.arcs)

    @cached_property
    def graph(self) -> Graph:
        return graph_of(self.network)

    def search(self, step: float, wanted: float, growth: float) -> SearchEnd:
        search, found = fresh_search(self.graph), room_for_trees(self.graph)
        return searched(
            self.graph,
            search,
            lambda: pack_both_ways(self.graph, search, found, step, wanted, growth),
            lambda count: self.columns.add(found, count),
        )

    def use(self) -> csr_array[Any]:
        one_way = self.columns.use()
        return csr_array(one_way + one_way[self.graph.mirror])

    def equations(self) -> csr_array[Any]:
        return csr_array(np.concatenate([[-1.0], np.ones(len(self.columns))])[None, :])

    def groups(self) -> Ints:
        return np.zeros(len(self.columns), np.int64)

    def depths(self) -> Ints:
        parents = self.columns.parent
        return np.array([int(depths_from(rerooted(parent, centre(parent))).max()) for parent in parents], np.int64)

    def symmetric(self, price: Floats) -> Floats:
        """The sum of a price and its mirror image: it bounds as well, because the image of a packing is one."""
        both: Floats = price + price[self.graph.mirror]
        return both

    def least_cost(self, price: Floats) -> Fraction:
        return 2 * Fraction(cost_both_ways(self.graph, price))

    def counts(self, rate: Floats, units: int) -> Ints:
        return apportioned(units, rate)

    def total(self, counts: Ints) -> int:
        return int(counts.sum())

    def forest(self, counts: Ints, unit: Fraction) -> AllReduceForest:
        mirror, reverse = self.graph.mirror, self.network.reversed()
        spreading, reducing = [], []
        for number in np.flatnonzero(counts).tolist():
            parent, ways = self.columns.parent[number], self.columns.ways[number]
            root = centre(parent)
            hanging = rerooted(parent, root)
            out = [arcs_from_parent(ways, child) for child in range(len(parent))]
            turned = np.flatnonzero((hanging != parent) & (hanging >= 0)).tolist()
            # A branch that now leads the other way was found as the way to what has become its parent.
            for child, arcs in [(child, out[hanging[child]]) for child in turned]:
                out[child] = [int(mirror[arc]) for arc in reversed(arcs)]
            back = [[int(mirror[arc]) for arc in arcs] for arcs in out]
            rate = int(counts[number]) * unit
            spreading.append(grown_tree(self.network, hanging, root, rate, out))
            reducing.append(grown_tree(reverse, hanging, root, rate, back))
        return AllReduceForest(Forest(reverse, tuple(reducing)), Forest(self.network, tuple(spreading)))
