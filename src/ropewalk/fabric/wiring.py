"""A wiring: which servers are joined by how many cables, and which of the cables form rings for which groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import FabricError
from ropewalk.fabric.fabric import Fabric, FabricDraft

Orders = tuple[tuple[int, ...], ...]
"""Directed rings over the members 0 … k-1 of a group: the order in which each of them visits the members."""


@dataclass(frozen=True)
class GroupRings:
    """Regular rings of all groups of one size: member i of a coset of `size` servers sends to member i + jump.

    The members of a coset are `servers / size` apart, so on servers the ring jumps by `jump * servers / size`.
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
            raise FabricError("a wiring without cables joins nobody: give servers at least one port")
        draft = FabricDraft(f"wired:{self.servers}x{self.degree}")
        draft.add_hosts([f"server{number}" for number in range(self.servers)])
        ends = np.array(self.cables, np.int64)
        draft.add_links(
            ends[:, 0], ends[:, 1], ends[:, 2] * self.bandwidth, self.latency, ends[:, 2], duplex=self.duplex
        )
        return draft.freeze()

    def ring_orders(self, size: int) -> Orders:
        """The rings for groups of a size; a group that it has none for goes round in its own order."""
        jumps = {rings.size: rings.jumps for rings in self.rings if rings.jumps}
        return regular_rings(size, jumps.get(size, (1,)), both_ways=self.duplex)


def regular_rings(size: int, jumps: tuple[int, ...], *, both_ways: bool) -> Orders:
    """Member i sends to member i + jump; both ways, every ring has its opposite beside it.

    >>> regular_rings(5, (2,), both_ways=False)
    ((0, 2, 4, 1, 3),)
    """
    forward = [tuple(place * jump % size for place in range(size)) for jump in jumps]
    if not both_ways or size == 2:
        return tuple(forward)
    return tuple(order for ring in forward for order in (ring, (ring[0], *ring[:0:-1])))
