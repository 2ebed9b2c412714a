"""Strands: trees as hosts see them, each arc with one chain of hosts and the links it takes between them.

A branch of a tree may take several ways, some of them through hosts outside the group. Where such relays are to do the
forwarding themselves, a tree comes apart into strands whose branches each have one chain of hosts; relays become places
of the strand. A relay that a strand would reach twice is reached once and sends on twice, so links carry at most
what the tree puts on them. Where relays are only part of the way, every tree is one strand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from ropewalk.collectives.forest.demand import Path
from ropewalk.collectives.forest.forest import Branch, Tree
from ropewalk.collectives.optimum.network import Network

Chain = tuple[int, ...]
"""Hosts that handle the data one after the other, from parent to child."""

Trail = tuple[tuple[int, ...], ...]
"""Links in the order in which data travels; those between the same two nodes, which share the load, stand together."""

Arc = tuple[int, int]

WHOLE = Fraction(1)
"""The part of an arc that has one trail; always this very object."""


@dataclass(frozen=True)
class TreeStrand:
    """Hosts joined to a tree that carries `rate` bytes/s."""

    root: int
    rate: Fraction
    arcs: tuple[Arc, ...]
    """(parent, child) pairs in an order in which the tree grows."""
    trails: tuple[tuple[tuple[Trail, Fraction], ...], ...]
    """For each arc the trails it takes and their parts of the rate, which sum to 1."""


class Surveyor:
    """Translates ways between vertices of a network into chains of hosts and trails of links."""

    def __init__(self, network: Network, relays_as_ranks: bool) -> None:
        self.backwards = network.backwards
        self._node = network.node.tolist()
        self._hosts = network.fabric.hosts if relays_as_ranks else 0
        self._links = dict(
            zip(zip(network.tail.tolist(), network.head.tolist(), strict=True), network.links, strict=True)
        )
        self._chains: dict[Path, Chain] = {}
        self._trails: dict[Path, tuple[Trail, ...]] = {}

    def chain(self, path: Path) -> Chain:
        """The hosts on a way: both ends, and relays that do the forwarding."""
        if path not in self._chains:
            inside = dict.fromkeys(self._node[vertex] for vertex in path[1:-1])
            ends = (path[0], path[-1])
            between = (node for node in inside if node < self._hosts and node not in ends)
            self._chains[path] = (path[0], *between, path[-1])
        return self._chains[path]

    def trails(self, path: Path) -> tuple[Trail, ...]:
        """The links from each host of the chain to the next; the limits of hosts are no links."""
        if path not in self._trails:
            chain = self.chain(path)
            legs: list[list[tuple[int, ...]]] = [[] for _ in chain[1:]]
            leg = 0
            for u, v in pairwise(path):
                links = self._links[u, v]
                if links:
                    legs[leg].append(links)
                if leg + 2 < len(chain) and self._node[v] == chain[leg + 1]:
                    leg += 1
            self._trails[path] = tuple(tuple(leg[::-1] if self.backwards else leg) for leg in legs)
        return self._trails[path]


def strands_of(network: Network, trees: Iterable[Tree], relays_as_ranks: bool) -> Iterator[TreeStrand]:
    """The strands of trees on a network, tree by tree."""
    surveyor = Surveyor(network, relays_as_ranks)
    for tree in trees:
        yield from _strands_of_tree(tree, surveyor)


_Bundle = tuple[Chain, tuple[tuple[Path, Fraction], ...], Fraction]
"""The paths of a branch that have one chain of hosts, with the rate of each and of all."""


def _strands_of_tree(tree: Tree, surveyor: Surveyor) -> Iterator[TreeStrand]:
    bundles = [_by_chain(branch, surveyor) for branch in tree.branches]
    # The rate of the tree is laid out from 0 on; each branch divides it among its chains in the same order.
    borders = {Fraction(0), tree.rate}
    for choices in bundles:
        at = Fraction(0)
        for _, _, rate in choices[:-1]:
            at += rate
            borders.add(at)
    for low, high in pairwise(sorted(borders)):
        yield _grown(tree.root, high - low, [_at(choices, low) for choices in bundles], surveyor)


def _by_chain(branch: Branch, surveyor: Surveyor) -> list[_Bundle]:
    if len(branch.ways) == 1:
        ((path, rate),) = branch.ways
        return [(surveyor.chain(path), branch.ways, rate)]
    chains: dict[Chain, list[tuple[Path, Fraction]]] = {}
    for path, rate in branch.ways:
        chains.setdefault(surveyor.chain(path), []).append((path, rate))
    # The widest first in every branch, so that few borders fall between others.
    totals = [(chain, tuple(ways), sum((rate for _, rate in ways), Fraction(0))) for chain, ways in chains.items()]
    return sorted(totals, key=lambda bundle: (len(bundle[0]), -bundle[2], bundle[0]))


def _at(choices: list[_Bundle], place: Fraction) -> _Bundle:
    for bundle in choices[:-1]:
        if place < bundle[2]:
            return bundle
        place -= bundle[2]
    return choices[-1]


def _grown(root: int, rate: Fraction, branches: list[_Bundle], surveyor: Surveyor) -> TreeStrand:
    reached = {root}
    arcs: list[Arc] = []
    trails: list[tuple[tuple[Trail, Fraction], ...]] = []
    for chain, ways, total in branches:
        # What a relay already has need not be brought to it again.
        known = max(place for place, host in enumerate(chain) if host in reached)
        for leg in range(known, len(chain) - 1):
            arcs.append((chain[leg], chain[leg + 1]))
            trails.append(_parts(leg, ways, total, surveyor))
        reached.update(chain[known:])
    return TreeStrand(root, rate, tuple(arcs), tuple(trails))


def _parts(
    leg: int, ways: tuple[tuple[Path, Fraction], ...], total: Fraction, surveyor: Surveyor
) -> tuple[tuple[Trail, Fraction], ...]:
    if len(ways) == 1:
        return ((surveyor.trails(ways[0][0])[leg], WHOLE),)
    parts: dict[Trail, Fraction] = {}
    for path, rate in ways:
        trail = surveyor.trails(path)[leg]
        parts[trail] = parts.get(trail, Fraction(0)) + rate / total
    return tuple(parts.items())
