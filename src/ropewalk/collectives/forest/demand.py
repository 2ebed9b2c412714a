"""What a forest has to do, in whole numbers: so many trees from each root, within whole capacities."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ropewalk.collectives.optimum.maxflow import FlowNetwork, Shortfall
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.rational import common_unit

Path = tuple[int, ...]
"""Vertices from the first to the last."""


@dataclass(eq=False)
class CapacityGraph:
    """Whole capacities between vertices, each with the ways through the network that they stand for.

    At the start every arc is its own way; taking switches out replaces pairs of arcs by longer ways.
    """

    vertices: int
    trees: dict[int, int]
    """How many trees every root has to have; a root is a member."""
    members: tuple[int, ...]
    unit: Fraction
    """Bytes/s of one tree."""
    ways: dict[tuple[int, int], list[tuple[Path, int]]] = field(default_factory=dict)
    capacity: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, path: Path, amount: int) -> None:
        """Add capacity from the first to the last vertex of a way; a way that ends where it starts is of no use."""
        path = without_detours(path)
        if len(path) < 2 or amount == 0:
            return
        ends = (path[0], path[-1])
        self.capacity[ends] = self.capacity.get(ends, 0) + amount
        self.ways.setdefault(ends, []).append((path, amount))

    def take(self, ends: tuple[int, int], amount: int) -> list[tuple[Path, int]]:
        """Remove capacity; the ways that are used up for it, the last added first."""
        self.capacity[ends] -= amount
        taken = []
        ways = self.ways[ends]
        while amount:
            path, there = ways.pop()
            used = min(there, amount)
            taken.append((path, used))
            amount -= used
            if used < there:
                ways.append((path, there - used))
        if self.capacity[ends] == 0:
            del self.capacity[ends], self.ways[ends]
        return taken

    def copy(self) -> CapacityGraph:
        """The same wiring, to be changed on its own."""
        ways = {ends: list(listed) for ends, listed in self.ways.items()}
        return replace(self, trees=dict(self.trees), ways=ways, capacity=dict(self.capacity))

    @property
    def total(self) -> int:
        return sum(self.trees.values())

    def shortfall(self, changes: dict[tuple[int, int], int], sinks: tuple[int, ...]) -> Shortfall | None:
        """The first member that all trees together would not reach if capacities were changed like this."""
        changed = dict(self.capacity)
        for ends, change in changes.items():
            changed[ends] = changed.get(ends, 0) + change
        arcs = [(u, v, amount) for (u, v), amount in changed.items() if amount and u != v]
        arcs += [(self.vertices, root, trees) for root, trees in self.trees.items()]
        tail, head, capacity = zip(*arcs, strict=True)
        flows = FlowNetwork(self.vertices + 1, np.array(tail, np.int64), np.array(head, np.int64))
        small = sum(capacity) < 1 << 60
        amounts = np.array(capacity, np.int64) if small else list(capacity)
        return flows.first_shortfall(amounts, self.vertices, np.array(sinks, np.int64), self.total)


def without_detours(path: Path) -> Path:
    """A way without the parts that come back to where they started.

    >>> without_detours((0, 5, 6, 5, 1))
    (0, 5, 1)
    """
    short: list[int] = []
    for vertex in path:
        if vertex in short:
            del short[short.index(vertex) :]
        short.append(vertex)
    return tuple(short)


def wiring_of(network: Network, capacity: list[Fraction], rate: list[Fraction]) -> CapacityGraph:
    """Capacities and the rates of every member as root, in units of the network, as whole numbers."""
    unit = common_unit([*capacity, *rate])
    trees = {int(member): int(value / unit) for member, value in zip(network.members, rate, strict=True) if value > 0}
    wiring = CapacityGraph(network.vertices, trees, tuple(network.members.tolist()), network.bandwidth(unit))
    for tail, head, value in zip(network.tail.tolist(), network.head.tolist(), capacity, strict=True):
        wiring.add((tail, head), int(value / unit))
    return wiring
