"""The network that an optimum is computed on: members of a group, everything that forwards for them, whole capacities.

Parallel links are one arc here. Capacities are whole multiples of one `unit` of bytes/s, so that flows and cuts are
computed without rounding. Vertices that are not members (switches, hosts outside the group) only forward: what
they send of a byte, they have received as often, unless they are allowed to copy and add up on the way.

A limit on what a host sends and receives over all its links together makes two more vertices of it, one that
everything leaves through and one that everything enters through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.optimum.maxflow import FlowNetwork
from ropewalk.fabric import Fabric
from ropewalk.fabric.translation import Translations

_UNEVEN = 10_000
"""Linear programs are solved to about 1e-7 of their largest number."""


@dataclass(frozen=True, eq=False)
class Network:
    """Arcs with whole capacities between vertices; vertices 0 … nodes-1 are the nodes of the fabric."""

    fabric: Fabric
    members: Ints
    """Hosts of the group, in the order of ranks."""
    weight: tuple[int, ...]
    """How much of the data each member brings (or ends up with), in whole numbers without a common divisor."""
    vertices: int
    tail: Ints
    head: Ints
    capacity: tuple[int, ...]
    unit: Fraction
    """Bytes/s of capacity 1."""
    links: tuple[tuple[int, ...], ...]
    """The links of the fabric that make up each arc; none where the arc is the limit of a host."""
    node: Ints
    """The node of the fabric that each vertex is, or is a part of."""
    opposite: Ints
    """What each vertex is when all data runs backwards: itself, except that ways out and ways in change places."""
    copying: bool
    """Whether vertices that are not members copy what they forward and add up what they reduce."""
    symmetry: Translations | None
    """Shifts that make all members alike; None where the fabric, the group or the shards have none that are known."""
    backwards: bool = False
    """Whether arcs run against the links of the fabric."""

    @property
    def arcs(self) -> int:
        return len(self.tail)

    @property
    def total_weight(self) -> int:
        return sum(self.weight)

    @property
    def equal_shards(self) -> bool:
        return all(weight == 1 for weight in self.weight)

    @cached_property
    def flow_network(self) -> FlowNetwork:
        """The arcs, then one from an outer source (the last vertex) to every member."""
        source = np.full(len(self.members), self.vertices)
        return FlowNetwork(
            self.vertices + 1, np.concatenate([self.tail, source]), np.concatenate([self.head, self.members])
        )

    @cached_property
    def is_member(self) -> NDArray[np.bool_]:
        mask = np.zeros(self.vertices, np.bool_)
        mask[self.members] = True
        return mask

    @cached_property
    def sinks(self) -> Ints:
        """Members that have to be looked at: one where all are alike."""
        return self.members[:1] if self.symmetry is not None else self.members

    @cached_property
    def forwarders(self) -> Ints:
        """Vertices that must send exactly what they receive."""
        return np.flatnonzero(~self.is_member) if not self.copying else np.zeros(0, np.int64)

    @cached_property
    def balanced(self) -> bool:
        """Whether everything but members can send as much as it can receive: then cuts tell the whole truth.

        Splitting such a vertex into direct ways keeps all cuts (Mader; Bang-Jensen, Frank and Jackson 1995).
        """
        surplus = [0] * self.vertices
        for tail, head, capacity in zip(self.tail, self.head, self.capacity, strict=True):
            surplus[tail] -= capacity
            surplus[head] += capacity
        return all(surplus[vertex] == 0 for vertex in np.flatnonzero(~self.is_member))

    @cached_property
    def mirror(self) -> Ints | None:
        """For every arc the one that carries the same data backwards; None unless all of them have equal capacity."""
        place = {ends: arc for arc, ends in enumerate(zip(self.tail.tolist(), self.head.tolist(), strict=True))}
        back = [
            place.get((head, tail), -1)
            for tail, head in zip(self.opposite[self.tail].tolist(), self.opposite[self.head].tolist(), strict=True)
        ]
        if any(other < 0 or self.capacity[other] != self.capacity[arc] for arc, other in enumerate(back)):
            return None
        return np.array(back, np.int64)

    @cached_property
    def arc_class(self) -> Ints:
        """Arcs that the symmetry carries onto each other have the same number; without symmetry each has its own."""
        if self.symmetry is None:
            return np.arange(self.arcs)
        kinds = [tuple(sorted({int(self.symmetry.kind[link]) for link in links})) for links in self.links]
        number = {kind: at for at, kind in enumerate(dict.fromkeys(kinds))}
        return np.array([number[kind] for kind in kinds], np.int64)

    @property
    def uneven(self) -> bool:
        """Whether some links are so much faster than others that floating point would lose the slow ones."""
        return max(self.capacity) > _UNEVEN * min(self.capacity)

    def reversed(self) -> Network:
        """The network in which every byte travels back to where it came from."""
        return replace(self, tail=self.head, head=self.tail, backwards=not self.backwards)

    def bandwidth(self, capacity: int | Fraction) -> Fraction:
        """A capacity in bytes/s."""
        return capacity * self.unit

    def leaving(self, inside: NDArray[np.bool_]) -> Ints:
        """The arcs that lead out of a set of vertices."""
        return np.flatnonzero(inside[self.tail] & ~inside[self.head])

    def capacity_of(self, arcs: Sequence[int] | Ints) -> int:
        return sum(self.capacity[arc] for arc in arcs)

    def weight_in(self, inside: NDArray[np.bool_]) -> int:
        """The shards that members of a set of vertices bring."""
        return sum(weight for member, weight in zip(self.members, self.weight, strict=True) if inside[member])
