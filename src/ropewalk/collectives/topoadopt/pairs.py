"""All-reduce where links differ by direction: a tree to a root and a tree out of it, any member being a root."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, hstack

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.forest import AllReduceForest, Forest
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.topoadopt._costs import costs_of_roots
from ropewalk.collectives.topoadopt._weights import Graph, pack_pairs
from ropewalk.collectives.topoadopt.apportioning import apportioned
from ropewalk.collectives.topoadopt.columns import TreeColumns
from ropewalk.collectives.topoadopt.graph import SearchEnd, fresh_search, graph_of, room_for_trees, searched


@dataclass(eq=False)
class Pairs:
    """Trees of an all-reduce; those that spread are counted first, then those that reduce."""

    network: Network
    spreading: TreeColumns = field(init=False)
    reducing: TreeColumns = field(init=False)

    def __post_init__(self) -> None:
        self.spreading, self.reducing = TreeColumns(self.network.arcs), TreeColumns(self.network.arcs)

    @cached_property
    def graph(self) -> Graph:
        return graph_of(self.network)

    def search(self, step: float, wanted: float, growth: float) -> SearchEnd:
        search = fresh_search(self.graph, floor=-np.inf, rest=np.inf)
        out, back = room_for_trees(self.graph), room_for_trees(self.graph)

        def keep(count: int) -> None:
            self.spreading.add(out, count)
            self.reducing.add(back, count)

        def pack() -> tuple[int, bool]:
            ended: tuple[int, bool] = pack_pairs(self.graph, search, out, back, step, wanted, growth)
            return ended

        return searched(self.graph, search, pack, keep)

    def use(self) -> csr_array[Any]:
        return csr_array(hstack([self.spreading.use(), self.reducing.use()]))

    def equations(self) -> csr_array[Any]:
        """The rate is that of all trees that spread; every root spreads what it reduces."""
        members, spread, reduce = len(self.network.members), len(self.spreading), len(self.reducing)
        place = 1 + np.arange(spread + reduce)
        row = np.concatenate([[0], np.zeros(spread, np.int64), 1 + self._roots()])
        column = np.concatenate([[0], place[:spread], place])
        value = np.concatenate([[-1.0], np.ones(2 * spread), -np.ones(reduce)])
        return coo_array((value, (row, column)), shape=(1 + members, 1 + spread + reduce)).tocsr()

    def groups(self) -> Ints:
        kind = np.repeat([0, 1], [len(self.spreading), len(self.reducing)])
        groups: Ints = 2 * self._roots() + kind
        return groups

    def depths(self) -> Ints:
        return np.concatenate([self.spreading.depths(), self.reducing.depths()])

    def symmetric(self, price: Floats) -> Floats:
        return price

    def least_cost(self, price: Floats) -> Fraction:
        costs = costs_of_roots(self.graph, price, False) + costs_of_roots(self.graph, price, True)
        return Fraction(float(costs.min()))

    def counts(self, rate: Floats, units: int) -> Ints:
        roots, spread = self._roots(), len(self.spreading)
        members = np.arange(len(self.network.members))
        of_root = np.array([rate[:spread][roots[:spread] == root].sum() for root in members])
        # A root whose trees of one kind were all too small to count can have no trees of the other kind either.
        of_root[[not (rate[spread:][roots[spread:] == root] > 0).any() for root in members]] = 0
        counts = np.zeros(len(rate), np.int64)
        for root, whole in enumerate(apportioned(units, of_root).tolist()):
            if whole:
                for part in (slice(0, spread), slice(spread, None)):
                    trees = np.flatnonzero(roots[part] == root) + (part.start or 0)
                    counts[trees] = apportioned(whole, rate[trees])
        return counts

    def total(self, counts: Ints) -> int:
        return int(counts[: len(self.spreading)].sum())

    def forest(self, counts: Ints, unit: Fraction) -> AllReduceForest:
        reverse, spread = self.network.reversed(), len(self.spreading)
        return AllReduceForest(
            Forest(reverse, self.reducing.trees(reverse, counts[spread:], unit)),
            Forest(self.network, self.spreading.trees(self.network, counts[:spread], unit)),
        )

    def _roots(self) -> Ints:
        return np.array(self.spreading.root + self.reducing.root, np.int64)
