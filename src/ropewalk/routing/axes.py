"""Fabrics whose hosts have coordinates: how far apart two hosts are on each axis, and which links lead there.

A *leg* is the part of a path that corrects one coordinate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.fabric import BCube, Builder, Hypercube, Mesh, Ring, Torus
from ropewalk.routing.routes import starts


class Axes(Protocol):
    """Coordinates of hosts: coordinate a of host h is h // weights[a] % sides[a]."""

    @property
    def sides(self) -> NDArray[np.int64]: ...

    @property
    def weights(self) -> NDArray[np.int64]: ...

    def displacement(
        self, src: NDArray[np.int32], dst: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Signed steps on each axis by the shorter way, and whether the opposite way is another one just as short."""
        ...

    def hops(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Links of a leg of so many steps."""
        ...

    def links(self, axis: Ints, corner: Ints, steps: Ints) -> NDArray[np.int32]:
        """Links of all legs, one behind the other; a leg begins at host `corner` and takes `steps` along `axis`."""
        ...


def axes_of(builder: Builder | None) -> Axes | None:
    """The axes of a fabric that has some."""
    match builder:
        case Torus() | Mesh():
            return _grid(builder, wraps=isinstance(builder, Torus))
        case Ring(hosts=hosts):
            return _grid(Torus((hosts,)), wraps=True)
        case Hypercube():
            return _cube(builder)
        case BCube():
            return Digits(builder)
    return None


@dataclass(frozen=True, eq=False)
class Grid:
    """Hosts with neighbours along every axis."""

    sides: NDArray[np.int64]
    weights: NDArray[np.int64]
    wraps: bool
    link: NDArray[np.int32]
    """By axis, direction (0 clockwise, 1 back) and host: the link to the neighbour, -1 at the rim of a mesh."""

    def displacement(
        self, src: NDArray[np.int32], dst: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        apart = coordinates(self, dst) - coordinates(self, src)
        if not self.wraps:
            return apart, np.zeros(apart.shape, bool)
        apart %= self.sides
        # On an axis of size 2 there is one cable: both directions are the same way.
        tied = (2 * apart == self.sides) & (self.sides > 2)
        return np.where(2 * apart > self.sides, apart - self.sides, apart), tied

    def hops(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.abs(steps)

    def links(self, axis: Ints, corner: Ints, steps: Ints) -> NDArray[np.int32]:
        length = np.abs(steps)
        done = np.arange(length.sum()) - np.repeat(starts(length)[:-1], length)
        axis, corner, sign = (np.repeat(column, length) for column in (axis, corner, np.sign(steps)))
        side, weight = self.sides[axis], self.weights[axis]
        at = corner // weight % side
        here = corner + ((at + sign * done) % side - at) * weight
        return np.asarray(self.link[axis, (sign < 0).astype(np.int64), here], np.int32)


@dataclass(frozen=True, eq=False)
class Digits:
    """Hosts of a BCube: one step changes a digit to any other, up to the switch of that level and down again."""

    cube: BCube

    @property
    def sides(self) -> NDArray[np.int64]:
        return np.full(self.cube.levels, self.cube.ports, np.int64)

    @property
    def weights(self) -> NDArray[np.int64]:
        return self.cube.ports ** np.arange(self.cube.levels, dtype=np.int64)

    def displacement(
        self, src: NDArray[np.int32], dst: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        apart = (coordinates(self, dst) - coordinates(self, src)) % self.cube.ports
        return apart, np.zeros(apart.shape, bool)

    def hops(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(steps != 0, np.int64(2), np.int64(0))

    def links(self, axis: Ints, corner: Ints, steps: Ints) -> NDArray[np.int32]:
        weight = self.weights[axis]
        digit = corner // weight % self.cube.ports
        behind = corner + ((digit + steps) % self.cube.ports - digit) * weight
        up, down = self.cube.up(corner, axis), self.cube.up(behind, axis) + 1
        return np.column_stack([up, down]).ravel().astype(np.int32)


def coordinates(axes: Axes, host: NDArray[np.int32]) -> NDArray[np.int64]:
    """Coordinates of hosts, a row for each."""
    return host[:, None].astype(np.int64) // axes.weights % axes.sides


def _grid(builder: Torus | Mesh, wraps: bool) -> Grid:
    sides = np.array(builder.shape, np.int64)
    weights = np.array([math.prod(builder.shape[axis + 1 :]) for axis in range(len(sides))], np.int64)
    host = np.arange(builder.hosts)
    link = np.full((len(sides), 2, builder.hosts), -1, np.int32)
    for axis, side in enumerate(builder.shape):
        at = host // weights[axis] % side
        for back, rim in ((0, side - 1), (1, 0)):
            inside = host[(at != rim) | (wraps and side > 1)]
            link[axis, back, inside] = builder.link(inside, axis, -1 if back else 1) if len(inside) else -1
    return Grid(sides, weights, wraps, link)


def _cube(builder: Hypercube) -> Grid:
    bits = np.arange(builder.dimensions, dtype=np.int64)
    link = builder.link(np.arange(builder.hosts), bits[:, None]).astype(np.int32)
    return Grid(np.full(len(bits), 2, np.int64), 1 << bits, wraps=True, link=np.stack([link, link], axis=1))
