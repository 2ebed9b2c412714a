"""Collectives that spread from given roots: all-gather and broadcast, and backwards reduce-scatter and reduce."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.forest import Forest
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.topoadopt._costs import costs_of_roots
from ropewalk.collectives.topoadopt._weights import Graph, pack_shares
from ropewalk.collectives.topoadopt.apportioning import apportioned
from ropewalk.collectives.topoadopt.columns import TreeColumns
from ropewalk.collectives.topoadopt.graph import SearchEnd, fresh_search, graph_of, room_for_trees, searched

_FIRST_ROUND = 1e-9
"""Part of what surely fits that the first round packs: it only finds out how much a round can be."""


@dataclass(eq=False)
class Shares:
    """Trees out of each member in the proportion of whole weights."""

    network: Network
    weight: tuple[int, ...]
    columns: TreeColumns = field(init=False)

    def __post_init__(self) -> None:
        self.columns = TreeColumns(self.network.arcs)

    @cached_property
    def graph(self) -> Graph:
        return graph_of(self.network)

    @cached_property
    def share(self) -> Floats:
        return np.array(self.weight, np.float64) / sum(self.weight)

    def search(self, step: float, wanted: float, growth: float) -> SearchEnd:
        least = _FIRST_ROUND * float(self.graph.capacity.min()) / len(self.weight)
        search = fresh_search(self.graph, turn=int(np.argmax(self.share > 0)), floor=least)
        found = room_for_trees(self.graph)
        return searched(
            self.graph,
            search,
            lambda: pack_shares(self.graph, search, found, self.share, step, wanted, growth),
            lambda count: self.columns.add(found, count),
        )

    def use(self) -> csr_array[Any]:
        return self.columns.use()

    def equations(self) -> csr_array[Any]:
        """The trees of a root have its share of the rate."""
        roots, trees = np.flatnonzero(self.share > 0), len(self.columns)
        row = np.concatenate([np.arange(len(roots)), np.searchsorted(roots, self.columns.root)])
        column = np.concatenate([np.zeros(len(roots), np.int64), 1 + np.arange(trees)])
        value = np.concatenate([-self.share[roots], np.ones(trees)])
        return coo_array((value, (row, column)), shape=(len(roots), 1 + trees)).tocsr()

    def groups(self) -> Ints:
        return np.array(self.columns.root, np.int64)

    def depths(self) -> Ints:
        return self.columns.depths()

    def symmetric(self, price: Floats) -> Floats:
        return price

    def least_cost(self, price: Floats) -> Fraction:
        costs = costs_of_roots(self.graph, price, False).tolist()
        together = sum(weight * Fraction(cost) for weight, cost in zip(self.weight, costs, strict=True))
        return Fraction(together, sum(self.weight))

    def counts(self, rate: Floats, units: int) -> Ints:
        roots = self.groups()
        counts = np.zeros(len(rate), np.int64)
        for root, weight in enumerate(self.weight):
            if weight:
                trees = np.flatnonzero(roots == root)
                # A share below what a linear program can tell from nothing has no rates: its first tree takes it all.
                rates = rate[trees] if rate[trees].any() else (trees == trees[0]).astype(np.float64)
                counts[trees] = apportioned(units * weight, rates)
        return counts

    def total(self, counts: Ints) -> int:
        return int(counts.sum())

    def forest(self, counts: Ints, unit: Fraction) -> Forest:
        return Forest(self.network, self.columns.trees(self.network, counts, unit))
