"""Trees that the search has found, each kept once, with the arcs that it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from ropewalk.arrays import Ints
from ropewalk.collectives.forest.forest import Tree
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.topoadopt._weights import FoundTrees
from ropewalk.collectives.topoadopt.growing import arcs_from_parent, depths_from, grown_tree


@dataclass(eq=False)
class TreeColumns:
    """Different trees: of each its root, parents and ways, all as positions among members and numbers of arcs."""

    arcs: int
    root: list[int] = field(default_factory=list)
    parent: list[Ints] = field(default_factory=list)
    ways: list[NDArray[np.int32]] = field(default_factory=list)
    _known: set[tuple[int, bytes]] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.root)

    def add(self, found: FoundTrees, count: int) -> None:
        """Keep those of the first `count` trees that are new."""
        for slot in range(count):
            root = int(found.root[slot])
            key = (root, found.ways[slot].tobytes())
            if key not in self._known:
                self._known.add(key)
                self.root.append(root)
                self.parent.append(found.parent[slot].copy())
                self.ways.append(found.ways[slot].copy())

    def use(self) -> csr_array[Any]:
        """How often each tree (a column) takes each arc (a row)."""
        row, column = [], []
        for number, ways in enumerate(self.ways):
            taken = ways[ways >= 0]
            row.append(taken)
            column.append(np.full(len(taken), number))
        rows, columns = np.concatenate(row), np.concatenate(column)
        table = coo_array((np.ones(len(rows)), (rows, columns)), shape=(self.arcs, len(self)))
        return table.tocsr()

    def depths(self) -> Ints:
        """Branches on the longest way from the root of each tree."""
        deepest: Ints = depths_from(np.stack(self.parent)).max(axis=1)
        return deepest

    def trees(self, network: Network, counts: Ints, unit: Fraction) -> tuple[Tree, ...]:
        """The trees that have a rate, which is a whole number of units."""
        trees = []
        for number in np.flatnonzero(counts).tolist():
            ways = [arcs_from_parent(self.ways[number], child) for child in range(len(self.parent[number]))]
            rate = int(counts[number]) * unit
            trees.append(grown_tree(network, self.parent[number], self.root[number], rate, ways))
        return tuple(trees)
