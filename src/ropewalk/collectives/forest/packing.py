"""Packing trees: from so many trees wanted at each root to the trees themselves, with multiplicities.

Trees that reach everyone exist when into every set Y of members there is as much capacity as there are trees with
roots outside Y (Edmonds 1973). They are built bundle by bundle (Berczi and Frank; Schrijver, Combinatorial Optimization
section 53; ForestColl): a bundle of m equal trees that has reached R grows by an arc (x, y) out of R, by as many of
its trees as leave enough capacity for all others, which is a maximum flow from x to y; the other trees of the bundle
are put back as a bundle of their own. Arcs are tried in the order of depth, so that trees stay shallow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.forest.demand import CapacityGraph
from ropewalk.collectives.optimum.maxflow import FlowNetwork
from ropewalk.errors import ProgramError, ProofError
from ropewalk.progress import watcher

_LARGEST = 1 << 50
"""Trees and capacities are counted in 64 bits, with room for sums."""
_REMEMBERED = 256
"""Full sets that the next bundle looks at before it asks for flows."""


@dataclass
class Bundle:
    """Equal trees, as far as they have grown."""

    root: int
    trees: int
    depth: dict[int, int]
    """Of every member that has been reached, in the order in which that happened."""
    arcs: list[tuple[int, int]]


def deepest(bundles: list[Bundle]) -> int:
    """Branches on the longest way from a root."""
    return max(depth for bundle in bundles for depth in bundle.depth.values())


def check_countable(wiring: CapacityGraph) -> None:
    """Refuse capacities with so small a common unit that 64 bits do not count the trees."""
    amounts = sum(wiring.capacity.values())
    if amounts + wiring.total >= _LARGEST:
        raise ProgramError(
            f"the capacities and shards have no common unit but one of which there are more than {_LARGEST:.0e}, so "
            "there are too many trees: round the bandwidths, or the shards if there are any, to fewer digits"
        )


def packed(wiring: CapacityGraph) -> list[Bundle]:
    """Bundles of trees that reach every member and together keep within the wiring's capacities."""
    packing, tell = _Packing(wiring), watcher()
    done: list[Bundle] = []
    while (bundle := packing.next_bundle()) is not None:
        tell(len({one.root for one in done}), len(wiring.trees), "packing trees, root by root")
        done.append(packing.grown(bundle))
    return done


def packed_together(wiring: CapacityGraph) -> list[Bundle]:
    """Like `packed`, but all bundles grow at the same time, hop by hop: shallower, by more and larger flows."""
    packing = _Packing(wiring)
    done: list[Bundle] = []
    waiting = []
    while (bundle := packing.next_bundle()) is not None:
        waiting.append(bundle)
    hop = 0
    while waiting:
        turn, packing.put_back = waiting, []
        waiting = []
        while turn:
            bundle = turn.pop(0)
            # Whatever is not complete has to be left enough: those that come, those that had their turn, and rests.
            packing.put_back = turn + waiting
            before = len(packing.put_back)
            packing.grow(bundle, hop)
            turn += packing.put_back[before:]
            if len(bundle.depth) < packing.n:
                waiting.append(bundle)
            else:
                done.append(packing.named(bundle))
        hop += 1
        if hop > packing.n:
            raise ProofError("trees cannot reach every rank: the capacities are too small")
    return done


class _Packing:
    """Capacities that are left, trees that have not been started, and bundles that were put back half grown.

    Flows start at x and may also use one unit for every tree that is still to be grown, into whatever that tree has
    reached. Vertex n hands those units out; a bundle that has been put back has a vertex of its own beyond n.
    """

    def __init__(self, wiring: CapacityGraph) -> None:
        self.members = list(wiring.members)
        self.place = {member: at for at, member in enumerate(self.members)}
        self.n = len(self.members)
        self.arc_of: dict[tuple[int, int], int] = {}
        for u, v in sorted(wiring.capacity):
            if u not in self.place or v not in self.place:
                raise ProofError(f"vertex {u if u not in self.place else v} is not a member: remove switches first")
            self.arc_of[self.place[u], self.place[v]] = len(self.arc_of)
        check_countable(wiring)
        amounts = [wiring.capacity[ends] for ends in sorted(wiring.capacity)]
        self.left = np.array(amounts, np.int64)
        self.ends = np.array(list(self.arc_of), np.int64).reshape(-1, 2)
        self.full = np.zeros((0, self.n), np.bool_)
        self.entering = np.zeros((0, len(amounts)), np.bool_)
        self.outgoing: list[list[int]] = [[] for _ in range(self.n)]
        for u, v in self.arc_of:
            self.outgoing[u].append(v)
        self.unstarted = np.zeros(self.n, np.int64)
        for root, trees in wiring.trees.items():
            self.unstarted[self.place[root]] = trees
        self.put_back: list[Bundle] = []
        self._flows: dict[int, FlowNetwork] = {}

    def next_bundle(self) -> Bundle | None:
        """A bundle that was put back, or all trees of the next root; None when everything has grown."""
        if self.put_back:
            return self.put_back.pop()
        roots = np.flatnonzero(self.unstarted)
        if not len(roots):
            return None
        root = int(roots[0])
        bundle = Bundle(root, int(self.unstarted[root]), {root: 0}, [])
        self.unstarted[root] = 0
        return bundle

    def grown(self, bundle: Bundle) -> Bundle:
        """The bundle, or the part of it that could grow together, until it reaches everyone."""
        self.grow(bundle)
        if len(bundle.depth) < self.n:
            name = self.members[bundle.root]
            raise ProofError(f"trees of root {name} cannot reach every rank: the capacities are too small")
        return self.named(bundle)

    def grow(self, bundle: Bundle, hop: int | None = None) -> None:
        """Let a bundle take every arc it can, or only those that start so many hops from its root."""
        reached = list(bundle.depth) if hop is None else [v for v, depth in bundle.depth.items() if depth == hop]
        # Growing one bundle changes nothing for the others, so an arc that no tree could take stays out of reach, and
        # one pass in the order of reaching is enough.
        known = self._room_of_known_sets()
        for x in reached:
            for y in self.outgoing[x]:
                if y in bundle.depth:
                    continue
                arc = self.arc_of[x, y]
                if (known[self.entering[:, arc]] <= 0).any():
                    continue
                trees, full = self._room(bundle, x, y)
                if trees == 0:
                    if full is not None:
                        self._remember(full)
                        known = np.append(known, 0)[-_REMEMBERED:]
                    continue
                self.left[arc] -= trees
                if trees < bundle.trees:
                    rest = Bundle(bundle.root, bundle.trees - trees, dict(bundle.depth), list(bundle.arcs))
                    self.put_back.append(rest)
                    bundle.trees = trees
                    known = self._room_of_known_sets()
                else:
                    known -= trees * self.entering[:, arc]
                bundle.depth[y] = bundle.depth[x] + 1
                bundle.arcs.append((x, y))
                if hop is None:
                    reached.append(y)

    def named(self, bundle: Bundle) -> Bundle:
        """The bundle with members instead of their places."""
        named = self.members
        return Bundle(
            named[bundle.root],
            bundle.trees,
            {named[at]: depth for at, depth in bundle.depth.items()},
            [(named[x], named[y]) for x, y in bundle.arcs],
        )

    def _room_of_known_sets(self) -> Ints:
        """How many more trees than those that wait could enter each of the sets that were full once.

        A set without room lets no tree of the bundle at hand in, whatever its root.
        """
        waiting = (~self.full).astype(np.int64) @ self.unstarted
        if self.put_back:
            reached = np.zeros((len(self.put_back), self.n), np.float32)
            for row, other in enumerate(self.put_back):
                reached[row, list(other.depth)] = 1
            apart = reached @ self.full.T.astype(np.float32) == 0
            waiting += np.array([other.trees for other in self.put_back], np.int64) @ apart.astype(np.int64)
        return self.entering.astype(np.int64) @ self.left - waiting

    def _remember(self, full: NDArray[np.bool_]) -> None:
        entering = full[self.ends[:, 1]] & ~full[self.ends[:, 0]]
        self.full = np.concatenate([self.full, full[None]])[-_REMEMBERED:]
        self.entering = np.concatenate([self.entering, entering[None]])[-_REMEMBERED:]

    def _room(self, bundle: Bundle, x: int, y: int) -> tuple[int, NDArray[np.bool_] | None]:
        """How many trees of the bundle can take an arc without making another impossible; if none, the full set."""
        most = min(bundle.trees, int(self.left[self.arc_of[x, y]]))
        if most <= 0:
            return 0, None
        others = self.put_back
        waiting = int(self.unstarted.sum()) + sum(other.trees for other in others)
        beyond = int(self.left.sum()) + waiting + 1
        to_hub = np.zeros(self.n, np.int64)
        to_hub[x] = beyond
        into = np.zeros((len(others), self.n), np.int64)
        for row, other in enumerate(others):
            into[row, list(other.depth)] = beyond
        started = np.array([other.trees for other in others], np.int64)
        capacity = np.concatenate([self.left, to_hub, self.unstarted, started, into.ravel()])
        flows = self._network(len(others))
        short = flows.first_shortfall(capacity, x, np.array([y]), waiting + most)
        return (most, None) if short is None else (short.flow - waiting, ~short.source_side[: self.n])

    def _network(self, bundles: int) -> FlowNetwork:
        """Arcs between members, to the hub, from the hub to roots, to bundles, and from bundles to members."""
        if bundles not in self._flows:
            n, every = self.n, np.arange(self.n)
            ends = self.ends
            own = n + 1 + np.arange(bundles)
            tail = [ends[:, 0], every, np.full(n, n), np.full(bundles, n), np.repeat(own, n)]
            head = [ends[:, 1], np.full(n, n), every, own, np.tile(every, bundles)]
            self._flows[bundles] = FlowNetwork(n + 1 + bundles, np.concatenate(tail), np.concatenate(head))
        return self._flows[bundles]
