"""A forest: trees with rates that together carry a collective, each arc of a tree with its ways through the fabric.

Data flows from the root to the leaves in a forest that spreads, and from the leaves to the root in one that reduces.
`check()` proves with fractions that every tree reaches every member once, and that no arc carries more than it can.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise

from ropewalk.collectives.forest.demand import CapacityGraph, Path
from ropewalk.collectives.forest.packing import Bundle
from ropewalk.collectives.optimum.network import Network
from ropewalk.errors import ProofError
from ropewalk.progress import counted


@dataclass(frozen=True)
class Branch:
    """An arc of a tree: from a member to the next one further from the root, by one or more ways."""

    parent: int
    child: int
    ways: tuple[tuple[Path, Fraction], ...]
    """Vertices of the network from parent to child, and bytes/s that take them."""


@dataclass(frozen=True)
class Tree:
    """A tree that reaches all members, with branches in the order in which it grows."""

    root: int
    rate: Fraction
    """Bytes/s that it carries."""
    branches: tuple[Branch, ...]
    depth: int
    """Branches on the longest way from the root."""

    def scaled(self, factor: Fraction) -> Tree:
        """The same tree at another rate."""
        branches = tuple(
            replace(branch, ways=tuple((path, rate * factor) for path, rate in branch.ways)) for branch in self.branches
        )
        return replace(self, rate=self.rate * factor, branches=branches)


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees on a network; on a reversed network the data runs from the leaves to the roots."""

    network: Network
    trees: Sequence[Tree]

    @cached_property
    def algbw(self) -> Fraction:
        """Bytes/s of all trees together."""
        return sum((tree.rate for tree in self.trees), Fraction(0))

    @property
    def depth(self) -> int:
        return max(tree.depth for tree in self.trees)

    @property
    def tree_count(self) -> int:
        return len(self.trees)

    def root_rates(self) -> dict[int, Fraction]:
        """Bytes/s with each member as root."""
        rates: dict[int, Fraction] = {}
        for tree in self.trees:
            rates[tree.root] = rates.get(tree.root, Fraction(0)) + tree.rate
        return rates

    def arc_loads(self) -> dict[tuple[int, int], Fraction]:
        """Bytes/s over every arc of the network that is used."""
        loads: dict[tuple[int, int], Fraction] = {}
        for tree in self.trees:
            for branch in tree.branches:
                for path, rate in branch.ways:
                    for ends in pairwise(path):
                        loads[ends] = loads.get(ends, Fraction(0)) + rate
        return loads

    def scaled(self, factor: Fraction) -> Forest:
        return replace(self, trees=tuple(tree.scaled(factor) for tree in self.trees))

    def check(self) -> None:
        """Prove that every tree reaches every member once, by ways that exist, and that no arc is overloaded."""
        members = set(self.network.members.tolist())
        for number, tree in enumerate(self.trees):
            check_tree(members, number, tree)
        check_loads(self.network, [self.arc_loads()])


def check_tree(members: set[int], number: int, tree: Tree) -> None:
    """Prove that a tree reaches every member once, by ways that carry its rate."""
    reached = {tree.root}
    for branch in tree.branches:
        if branch.parent not in reached or branch.child in reached:
            raise ProofError(f"tree {number} does not grow by the branch {branch.parent}->{branch.child}")
        reached.add(branch.child)
        _check_ways(number, tree, branch, members)
    if reached != members:
        raise ProofError(f"tree {number} of root {tree.root} misses members {sorted(members - reached)}")


def _check_ways(number: int, tree: Tree, branch: Branch, members: set[int]) -> None:
    if sum((rate for _, rate in branch.ways), Fraction(0)) != tree.rate:
        raise ProofError(f"tree {number}: the paths of {branch.parent}->{branch.child} do not carry its rate")
    for path, _ in branch.ways:
        if (path[0], path[-1]) != (branch.parent, branch.child) or members.intersection(path[1:-1]):
            raise ProofError(f"tree {number}: {path} is not a path from {branch.parent} to {branch.child}")


def check_loads(network: Network, loads: Iterable[dict[tuple[int, int], Fraction]]) -> None:
    """Prove that loads together keep within the network's arcs."""
    left = {
        ends: network.bandwidth(capacity)
        for ends, capacity in zip(
            zip(network.tail.tolist(), network.head.tolist(), strict=True), network.capacity, strict=True
        )
    }
    for load in loads:
        for ends, rate in load.items():
            left[ends] = left.get(ends, Fraction(0)) - rate
    for (u, v), rate in left.items():
        if rate < 0:
            raise ProofError(f"arc {u}->{v} carries {float(-rate):g} bytes/s more than it can")


def forest_of(network: Network, wiring: CapacityGraph, bundles: Sequence[Bundle]) -> Forest:
    """Trees with rates and ways, from bundles that were packed into a wiring; uses the wiring up."""
    trees = []

    @cache  # the same few amounts come in every branch, and fractions are slow to multiply
    def rate(amount: int) -> Fraction:
        return amount * wiring.unit

    for bundle in counted(bundles, "giving trees their paths"):
        branches = tuple(
            Branch(x, y, tuple((path, rate(amount)) for path, amount in wiring.take((x, y), bundle.trees)))
            for x, y in bundle.arcs
        )
        trees.append(Tree(bundle.root, rate(bundle.trees), branches, max(bundle.depth.values())))
    return Forest(network, tuple(trees))
