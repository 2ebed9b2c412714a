"""Ways for every pair of members, with the part of its bytes that takes each: what an all-to-all at the optimum needs.

Amounts are whole numbers, so that the load of every arc, and with it the rate that all pairs can have together, is a
fraction without rounding. Where shifts of the fabric make all members alike, only the paths of the first are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.optimum.network import Network
from ropewalk.errors import ProgramError, ProofError

MOST_HOPS = 1 << 27
"""Arcs of ways that may be written out; beyond lie gigabytes."""


@dataclass(frozen=True, eq=False)
class PairPaths:
    """Ways over arcs of a network: way p carries amount[p] / whole of what its pair sends."""

    network: Network
    source: Ints
    destination: Ints
    amount: tuple[int, ...]
    whole: int
    arc_start: Ints
    arc: Ints
    bound: Fraction
    """A rate of each pair, in units of capacity, that no ways can exceed."""

    @property
    def paths(self) -> int:
        return len(self.amount)

    @property
    def hops(self) -> Ints:
        return np.diff(self.arc_start)

    @cached_property
    def rate(self) -> Fraction:
        """What every pair can have at the same time by these ways, in units of capacity."""
        network = self.network
        size = np.bincount(network.arc_class)
        limit = {
            number: capacity * int(size[number])
            for number, capacity in zip(network.arc_class.tolist(), network.capacity, strict=True)
        }
        return min(
            Fraction(limit[number] * self.whole, load) for number, load in enumerate(self.class_loads()) if load > 0
        )

    @property
    def algbw(self) -> Fraction:
        """Bytes/s of the buffer of a member, whose own part stays where it is."""
        return self.network.bandwidth(len(self.network.members) * self.rate)

    @property
    def gap(self) -> Fraction:
        """How much more than this rate is not yet ruled out, as a part of it; 0 where the optimum is proved."""
        return self.bound / self.rate - 1

    def class_loads(self) -> list[int]:
        """What all pairs put on each class of arcs together when each sends `whole`."""
        images = len(self.network.members) // len(np.unique(self.source))
        carried = np.repeat(self._amounts(), self.hops)
        load = np.zeros(int(self.network.arc_class.max()) + 1, carried.dtype)
        np.add.at(load, self.network.arc_class[self.arc], carried)
        return [int(total) * images for total in load]

    def _amounts(self) -> NDArray[np.int64] | NDArray[np.object_]:
        fits = self.whole * len(self.arc) < 1 << 62
        return np.array(self.amount, np.int64) if fits else np.array(self.amount, object)

    def check(self) -> None:
        """Prove that every pair has ways from its source to its destination that carry all of its bytes."""
        network = self.network
        tail, head = network.tail[self.arc], network.head[self.arc]
        joined = np.ones(len(self.arc), bool)
        joined[self.arc_start[:-1]] = False
        after = np.flatnonzero(joined)
        begins, ends = tail[self.arc_start[:-1]], head[self.arc_start[1:] - 1]
        if (tail[after] != head[after - 1]).any() or (begins != self.source).any() or (ends != self.destination).any():
            raise ProofError("a path of an all-to-all does not lead from its source to its destination")
        sent: dict[tuple[int, int], int] = {}
        for pair, amount in zip(
            zip(self.source.tolist(), self.destination.tolist(), strict=True), self.amount, strict=True
        ):
            sent[pair] = sent.get(pair, 0) + amount
        members = network.members.tolist()
        pairs = {(u, v) for u in network.sinks.tolist() for v in members if u != v}
        if set(sent) != pairs or set(sent.values()) != {self.whole} or min(self.amount) < 1:
            raise ProofError("the paths of an all-to-all do not carry all that every pair sends")

    def with_amounts(self, amounts: Iterable[int], whole: int) -> PairPaths:
        """The same ways with other amounts; those that carry nothing are left out."""
        amount = np.array(list(amounts), object)
        kept = np.flatnonzero(amount > 0)
        chosen = np.repeat(amount > 0, self.hops)
        return replace(
            self,
            source=self.source[kept],
            destination=self.destination[kept],
            amount=tuple(int(value) for value in amount[kept]),
            whole=whole,
            arc_start=np.concatenate([[0], np.cumsum(self.hops[kept])]).astype(np.int64),
            arc=self.arc[chosen],
        )

    def of_all_members(self) -> PairPaths:
        """The paths of every member, written out by shifting those of the first where only these are kept."""
        moves = self.network.symmetry
        if moves is None:
            return self
        hosts = len(self.network.members)
        if hosts * len(self.arc) > MOST_HOPS:
            raise ProgramError(
                f"the paths of an all-to-all on {self.network.fabric.name} have {hosts * len(self.arc):.3g} hops, more "
                f"than the limit of {MOST_HOPS}: use fewer hosts"
            )
        link_of_arc = np.array([links[0] for links in self.network.links])
        arc_of_link = np.full(self.network.fabric.links, -1)
        for number, links in enumerate(self.network.links):
            arc_of_link[list(links)] = number
        by = np.arange(hosts)[:, None]
        # Moving by s is moving back by the shift that takes s to host 0.
        back = moves.moved_back(0, by)
        arc = arc_of_link[moves.link_moved_back(link_of_arc[self.arc].astype(np.int32)[None, :], back)]
        return replace(
            self,
            network=replace(self.network, symmetry=None),
            source=moves.moved(self.source[None, :], by).ravel(),
            destination=moves.moved(self.destination[None, :], by).ravel(),
            amount=self.amount * hosts,
            arc_start=np.concatenate([[0], np.cumsum(np.tile(self.hops, hosts))]).astype(np.int64),
            arc=arc.ravel(),
        )
