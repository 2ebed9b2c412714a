"""Grids of hosts without switches: torus, mesh and ring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.errors import FabricError, Findings
from ropewalk.fabric.fabric import DEFAULT_BANDWIDTH, Fabric, FabricDraft
from ropewalk.fabric.parameters import at_least, findings_of, numbered, speeds, whole


@dataclass(frozen=True)
class Torus:
    """Hosts on a grid that wraps around in every dimension, each with two neighbours per axis.

    A host is `np.ravel_multi_index` of its coordinates (first axis most significant). An axis of size 2 has one duplex
    link between its two hosts, an axis of size 1 has none. Cables are numbered axis by axis, in order of the host
    they leave in the positive direction; cable i has links 2i (positive) and 2i + 1 (negative). `link` finds them.

    >>> Torus((4, 4)).build().links
    64
    """

    shape: tuple[int, ...]
    bandwidth: float = DEFAULT_BANDWIDTH
    latency: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", whole(self.shape, "torus", "shape"))
        _check_grid("torus", self.shape, self.bandwidth, self.latency).raise_if_any()

    @property
    def hosts(self) -> int:
        return math.prod(self.shape)

    @property
    def expression(self) -> str:
        return f"torus:{_times(self.shape)}"

    def bisection(self) -> float | None:
        """Bytes/s between halves, as for a mesh with two links instead of one across every cut (see `Mesh`).

        None where the longest axis is odd and another has size 2, which has one link instead of two.
        """
        sides = _sides(self.shape)
        if sides[0] == 2:
            return self.hosts // 2 * self.bandwidth
        if sides[0] % 2 and 2 in sides:
            return None
        return 2 * _grid_cut(sides) * self.bandwidth

    def link(self, host: ArrayLike, axis: int, direction: ArrayLike) -> NDArray[np.int64]:
        """Link by which a host sends along an axis, direction +1 or -1 (on an axis of size 2 both are the same)."""
        return _grid_link(self.shape, self._cables(), host, axis, direction)

    def _cables(self) -> tuple[int, ...]:
        return tuple(side if side > 2 else side - 1 for side in self.shape)

    def build(self) -> Fabric:
        return _build_grid(self, self.shape, self._cables(), self.bandwidth, self.latency)


@dataclass(frozen=True)
class Mesh:
    """Hosts on a grid that does not wrap around; numbered as a torus, with links between neighbours only.

    >>> Mesh((4, 4)).build().links
    48
    """

    shape: tuple[int, ...]
    bandwidth: float = DEFAULT_BANDWIDTH
    latency: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", whole(self.shape, "mesh", "shape"))
        _check_grid("mesh", self.shape, self.bandwidth, self.latency).raise_if_any()

    @property
    def hosts(self) -> int:
        return math.prod(self.shape)

    @property
    def expression(self) -> str:
        return f"mesh:{_times(self.shape)}"

    def bisection(self) -> float:
        """Bytes/s between halves: across the longest axis; an odd axis leaves a middle layer to be cut in turn.

        Arjona Aroca and Fernández Anta, "Bisection (Band)Width of Product Networks", 2014.
        """
        return _grid_cut(_sides(self.shape)) * self.bandwidth

    def link(self, host: ArrayLike, axis: int, direction: ArrayLike) -> NDArray[np.int64]:
        """Link by which a host sends along an axis, direction +1 or -1; an error at the rim, which has no such link."""
        coordinate = np.unravel_index(np.asarray(host), self.shape)[axis]
        beyond = np.where(np.asarray(direction) > 0, coordinate == self.shape[axis] - 1, coordinate == 0)
        if beyond.any():
            raise FabricError(
                f"{self.expression}: a host at the edge has no link further along axis {axis}: turn before it"
            )
        return _grid_link(self.shape, self._cables(), host, axis, direction)

    def _cables(self) -> tuple[int, ...]:
        return tuple(side - 1 for side in self.shape)

    def build(self) -> Fabric:
        return _build_grid(self, self.shape, self._cables(), self.bandwidth, self.latency)


@dataclass(frozen=True)
class Ring:
    """Hosts in a circle: cable i joins host i and the next one, links 2i (clockwise) and 2i + 1 (back).

    >>> Ring(8).build().links
    16
    """

    hosts: int
    bandwidth: float = DEFAULT_BANDWIDTH
    latency: float = 0.0

    def __post_init__(self) -> None:
        findings = findings_of("ring")
        at_least(findings, 2, hosts=self.hosts)
        speeds(findings, self.latency, bandwidth=self.bandwidth)
        findings.raise_if_any()

    @property
    def expression(self) -> str:
        return f"ring:{self.hosts}"

    def bisection(self) -> float:
        """Bytes/s between halves: two links, or the one that two hosts have."""
        return min(2, self.hosts - 1) * self.bandwidth

    def link(self, host: ArrayLike, direction: ArrayLike) -> NDArray[np.int64]:
        """Link by which a host sends clockwise (+1) or back (-1)."""
        return Torus((self.hosts,)).link(host, 0, direction)

    def build(self) -> Fabric:
        grid = Torus((self.hosts,))
        return _build_grid(self, grid.shape, grid._cables(), self.bandwidth, self.latency)


def _check_grid(family: str, shape: tuple[int, ...], bandwidth: float, latency: float) -> Findings:
    findings = findings_of(family)
    if not shape:
        findings.add("the shape is empty: give at least one axis, such as (8, 8)")
    at_least(findings, 1, **{f"axis {axis}": side for axis, side in enumerate(shape)})
    if not findings and math.prod(shape) < 2:
        findings.add("there is one host: make an axis longer")
    speeds(findings, latency, bandwidth=bandwidth)
    return findings


def _times(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _sides(shape: Sequence[int]) -> list[int]:
    return sorted((side for side in shape if side > 1), reverse=True)


def _grid_cut(sides: list[int]) -> int:
    """Links across the narrowest balanced cut of a mesh with these sides, longest first."""
    cut = 0
    for axis, side in enumerate(sides):
        cut += math.prod(sides[axis + 1 :])
        if side % 2 == 0:
            break
    return cut


def _grid_link(
    shape: tuple[int, ...], cables: tuple[int, ...], host: ArrayLike, axis: int, direction: ArrayLike
) -> NDArray[np.int64]:
    """Link ids, where `cables[axis]` hosts in a row of an axis have a cable in the positive direction."""
    side = shape[axis]
    if side == 1:
        raise FabricError(f"a grid of shape {_times(shape)} has no links along axis {axis}: its size is 1")
    coordinates = [np.asarray(part, np.int64) for part in np.unravel_index(np.asarray(host, np.int64), shape)]
    at = coordinates[axis]
    # With one cable in a row of two hosts, both directions lead over the same cable: out at 0, back at 1.
    backward = (at == 1) if side == 2 else np.asarray(direction) < 0
    coordinates[axis] = np.where(backward, (at - 1) % side, at)
    rows = (*shape[:axis], cables[axis], *shape[axis + 1 :])
    first = sum(math.prod(shape) // shape[before] * cables[before] for before in range(axis))
    index = np.ravel_multi_index(np.broadcast_arrays(*coordinates), rows)
    return np.asarray(2 * (first + index) + backward, np.int64)


def _build_grid(
    builder: Torus | Mesh | Ring, shape: tuple[int, ...], cables: tuple[int, ...], bandwidth: float, latency: float
) -> Fabric:
    draft = FabricDraft(builder.expression)
    hosts = draft.add_hosts(numbered("h", math.prod(shape))).reshape(shape)
    for axis, count in enumerate(cables):
        leaving = hosts.take(range(count), axis=axis)
        arriving = np.roll(hosts, -1, axis=axis).take(range(count), axis=axis)
        draft.add_links(leaving.ravel(), arriving.ravel(), bandwidth, latency)
    return draft.freeze(builder)
