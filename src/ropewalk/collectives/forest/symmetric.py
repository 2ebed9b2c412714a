"""Forests of fabrics on which all hosts are alike: the trees of one root, and their shifted images for all others.

When the trees of one root are shifted to all roots, all arcs of a class carry the same: what the trees of one root take
of the class altogether. So the trees of one root decide everything, and at 1,024 hosts only they are written down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import overload

import numpy as np

from ropewalk.collectives.forest.forest import Branch, Forest, Tree, check_loads, check_tree
from ropewalk.collectives.forest.shifts import Shifts
from ropewalk.collectives.optimum.network import Network


@dataclass(frozen=True, eq=False)
class ShiftedTrees(Sequence[Tree]):
    """The trees of all roots, each made when it is asked for: all of root 0, then all of root 1 …"""

    first: tuple[Tree, ...]
    shifts: Shifts

    def __len__(self) -> int:
        return len(self.first) * len(self.shifts.network.members)

    @overload
    def __getitem__(self, at: int) -> Tree: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Tree]: ...
    def __getitem__(self, at: int | slice) -> Tree | Sequence[Tree]:
        if isinstance(at, slice):
            return tuple(self[index] for index in range(*at.indices(len(self))))
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        root, tree = divmod(at % len(self), len(self.first))
        return shifted(self.first[tree], self.shifts.moved(root).tolist())

    def __iter__(self) -> Iterator[Tree]:
        for root in range(len(self.shifts.network.members)):
            to = self.shifts.moved(root).tolist()
            for tree in self.first:
                yield shifted(tree, to)


def shifted(tree: Tree, to: list[int]) -> Tree:
    """The tree with every vertex moved."""
    branches = tuple(
        Branch(
            to[branch.parent],
            to[branch.child],
            tuple((tuple([to[vertex] for vertex in path]), rate) for path, rate in branch.ways),
        )
        for branch in tree.branches
    )
    return Tree(to[tree.root], tree.rate, branches, tree.depth)


@dataclass(frozen=True, eq=False)
class SymmetricForest(Forest):
    """A forest whose trees are those of host 0 and their shifted images; reads like any other forest.

    Rates, depth, loads and the proof need the first trees only. `trees` makes each tree when it is asked for.
    """

    first: tuple[Tree, ...]
    """The trees of host 0."""
    shifts: Shifts

    @cached_property
    def algbw(self) -> Fraction:
        return self._rate * len(self.network.members)

    @property
    def depth(self) -> int:
        return max(tree.depth for tree in self.first)

    @property
    def _rate(self) -> Fraction:
        return sum((tree.rate for tree in self.first), Fraction(0))

    def root_rates(self) -> dict[int, Fraction]:
        return dict.fromkeys(self.network.members.tolist(), self._rate)

    def arc_loads(self) -> dict[tuple[int, int], Fraction]:
        """Every arc carries the mean over its class."""
        network = self.network
        ends = list(zip(network.tail.tolist(), network.head.tolist(), strict=True))
        number = dict(zip(ends, network.arc_class.tolist(), strict=True))
        total: dict[int, Fraction] = {}
        for tree in self.first:
            for branch in tree.branches:
                for path, rate in branch.ways:
                    for arc in pairwise(path):
                        total[number[arc]] = total.get(number[arc], Fraction(0)) + rate
        size = np.bincount(network.arc_class).tolist()
        load = {kind: rate * len(network.members) / size[kind] for kind, rate in total.items()}
        return {arc: load[kind] for arc, kind in number.items() if kind in load}

    def scaled(self, factor: Fraction) -> SymmetricForest:
        return symmetric_forest(self.network, self.shifts, tuple(tree.scaled(factor) for tree in self.first))

    def check(self) -> None:
        """Prove the trees of one root, that shifts carry the network onto itself, and that no class is overloaded."""
        members = set(self.network.members.tolist())
        for number, tree in enumerate(self.first):
            check_tree(members, number, tree)
        self.shifts.check()
        check_loads(self.network, [self.arc_loads()])

    def written_out(self) -> Forest:
        """All trees as a plain forest."""
        return Forest(self.network, tuple(self.trees))


def symmetric_forest(network: Network, shifts: Shifts, first: tuple[Tree, ...]) -> SymmetricForest:
    """The forest of one root's trees and their images."""
    return SymmetricForest(network, ShiftedTrees(first, shifts), first, shifts)


def backwards(forest: Forest) -> Forest:
    """The forest that reduces the way this one spreads, on a network with the same capacities both ways."""
    network = forest.network.reversed()
    to = network.opposite.tolist()
    if isinstance(forest, SymmetricForest):
        first = tuple(shifted(tree, to) for tree in forest.first)
        return symmetric_forest(network, replace(forest.shifts, network=network), first)
    return Forest(network, tuple(shifted(tree, to) for tree in forest.trees))
