"""A wiring: which servers are joined by how many cables, and which of the cables form rings for which groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import FabricError
from ropewalk.fabric.fabric import Fabric, FabricDraft

Orders = tuple[tuple[int, ...], ...]
"""Directed rings over the members 0 … k-1 of a group: the order in which each of them visits the members."""


@dataclass(frozen=True)
class GroupRings:
    """Regular rings of all groups of one size: member i of a coset of `size` servers sends to member i + jump.

    The members of a coset are `servers / size` places apart, so the ring jumps by `jump * servers / size` places.
    """

    size: int
    jumps: tuple[int, ...]
    """Coprime to the size. Duplex: each stands for itself and its opposite, size - jump."""
    wired: bool = True
    """Made of cables of their own; otherwise their hops go over the cables of others."""


@dataclass(frozen=True)
class Wiring:
    """Cables between servers with `degree` ports each; a simplex cable has a sending and a receiving port."""

    servers: int
    degree: int
    duplex: bool
    bandwidth: float
    """Bytes/s of one cable, each way where it is duplex."""
    latency: float
    rings: tuple[GroupRings, ...]
    cables: tuple[tuple[int, int, int], ...]
    """(from, to, how many); duplex cables are listed once, the lower server first."""
    degree_sums: int
    """Ports of every server that were given to rings (d_A)."""
    degree_pairs: int
    """Ports that were given to matchings for pairs (d_MP)."""
    places: tuple[int, ...] = ()
    """Where each server stands on the rings, the first server first; in the order of their numbers unless given."""

    @property
    def by_place(self) -> tuple[int, ...]:
        """The server at each place of the rings."""
        places = self.places or range(self.servers)
        return tuple(sorted(range(self.servers), key=places.__getitem__))

    def renumbered(self, places: Sequence[int]) -> Wiring:
        """The same cables between other servers: server s takes the place of server `places[s]`.

        >>> line = Wiring(3, 2, True, 1.0, 0.0, (), ((0, 1, 1), (1, 2, 1)), 2, 0)
        >>> line.renumbered((1, 0, 2)).cables
        ((0, 1, 1), (0, 2, 1))
        """
        if self.places or sorted(places) != list(range(self.servers)):
            raise FabricError(f"the positions are not an order of {self.servers} servers: name each of 0 to n-1 once")
        if list(places) == list(range(self.servers)):
            return self
        moved = replace(self, places=tuple(places))
        server = moved.by_place
        ends = [(server[a], server[b], count) for a, b, count in self.cables]
        ordered = [(min(a, b), max(a, b), count) if self.duplex else (a, b, count) for a, b, count in ends]
        return replace(moved, cables=tuple(sorted(ordered)))

    def ports_used(self) -> NDArray[np.int64]:
        """Ports in use on every server: cables that end there, or (simplex) the more of sending and receiving."""
        out, into = np.zeros(self.servers, np.int64), np.zeros(self.servers, np.int64)
        for a, b, count in self.cables:
            out[a] += count
            into[b] += count
        return out + into if self.duplex else np.maximum(out, into)

    def fabric(self) -> Fabric:
        """The wiring as a fabric: servers are hosts, parallel cables are one link with their bandwidth together."""
        if not self.cables:
            raise FabricError("a wiring without cables connects nothing: give servers at least one port")
        draft = FabricDraft(f"wired:{self.servers}x{self.degree}")
        draft.add_hosts([f"server{number}" for number in range(self.servers)])
        ends = np.array(self.cables, np.int64)
        draft.add_links(
            ends[:, 0], ends[:, 1], ends[:, 2] * self.bandwidth, self.latency, ends[:, 2], duplex=self.duplex
        )
        return draft.freeze()

    def ring_cables(self, size: int, jump: int) -> Iterator[tuple[tuple[int, int], int]]:
        """The two ends of every cable of one ring over all groups of a size, and how far along its ring each is.

        A duplex cable is listed with the lower server first; a ring of two servers is one duplex cable.

        >>> wiring = Wiring(4, 2, True, 1.0, 0.0, (), ((0, 1, 1),), 2, 0)
        >>> [ends for ends, _ in wiring.ring_cables(2, 1)], [ends for ends, _ in wiring.ring_cables(4, 1)]
        ([(0, 2), (1, 3)], [(0, 1), (1, 2), (2, 3), (0, 3)])
        """
        stride, server = self.servers // size, self.by_place
        for coset in range(stride):
            for along in range(1 if self.duplex and size == 2 else size):
                a = server[coset + stride * (along * jump % size)]
                b = server[coset + stride * ((along + 1) * jump % size)]
                yield ((a, b) if a < b or not self.duplex else (b, a)), along

    def ring_orders(self, size: int) -> Orders:
        """The rings for groups of a size; a group without one keeps its own order."""
        jumps = {rings.size: rings.jumps for rings in self.rings if rings.jumps}
        return regular_rings(size, jumps.get(size, (1,)), both_ways=self.duplex)


def rings_in_words(wiring: Wiring) -> list[str]:
    """What the rings join, a line for each number of servers and jump.

    >>> rings = GroupRings(32, (3,)), GroupRings(128, (1,), wired=False)
    >>> for line in rings_in_words(Wiring(128, 4, True, 1.0, 0.0, rings, (), 4, 0)):
    ...     print(line)
    servers 0-12-24-36-… form a ring of 32, and so do 1-13-25-37-… and 2 others (stride 12)
    servers 0-1-2-3-… form a ring of 128 (stride 1), relayed over other cables
    """
    lines = []
    for rings in wiring.rings:
        groups = wiring.servers // rings.size
        for jump, times in Counter(rings.jumps).items():
            others = f", and so do {_members(wiring, rings.size, jump, 1)}" if groups > 1 else ""
            others += f" and {groups - 2} other{'s' * (groups > 3)}" if groups > 2 else ""
            lines.append(
                f"servers {_members(wiring, rings.size, jump, 0)} form a ring of {rings.size}{others} "
                f"(stride {jump * groups}{f', {times} cables each' if times > 1 else ''})"
                f"{'' if rings.wired else ', relayed over other cables'}"
            )
    return lines


def _members(wiring: Wiring, size: int, jump: int, coset: int) -> str:
    """The first servers of a ring, all of a small one."""
    stride = wiring.servers // size
    shown = [str(wiring.by_place[coset + stride * (at * jump % size)]) for at in range(min(size, 4))]
    return "-".join(shown) + ("-…" if size > 4 else "")


def regular_rings(size: int, jumps: tuple[int, ...], *, both_ways: bool) -> Orders:
    """Member i sends to member i + jump; both ways, every ring has its opposite beside it.

    >>> regular_rings(5, (2,), both_ways=False)
    ((0, 2, 4, 1, 3),)
    """
    forward = [tuple(place * jump % size for place in range(size)) for jump in jumps]
    if not both_ways or size == 2:
        return tuple(forward)
    return tuple(order for ring in forward for order in (ring, (ring[0], *ring[:0:-1])))
