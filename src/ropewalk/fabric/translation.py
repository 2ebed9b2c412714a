"""Translations of a fabric: shifts of its hosts that carry every link onto a link just like it.

Hosts have digits (the coordinates of a torus, the digits of a BCube, pod, edge and place in a fat-tree), and a
translation adds to them. Every link stands *at* a host and is of one *kind* (up from the host, down from a spine …),
so a translation moves the link by moving that host. Where the links of a kind are alike and stay joined to the same
things, no host can tell its place in the fabric, and what holds for one of them holds for all.

The digits and kinds are declared for each family below, and checked against the fabric before anything relies on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.arrays import Ints
from ropewalk.fabric.bcube import BCube
from ropewalk.fabric.circulant import Circulant
from ropewalk.fabric.dgx import Dgx
from ropewalk.fabric.fabric import Fabric
from ropewalk.fabric.fat_tree import FatTree
from ropewalk.fabric.hypercube import Hypercube
from ropewalk.fabric.leaf_spine import LeafSpine
from ropewalk.fabric.switch import IdealSwitch
from ropewalk.fabric.torus import Ring, Torus


@dataclass(frozen=True, eq=False)
class Translations:
    """All translations of a fabric: host h has the digits of h in the mixed base `sides`, most significant first.

    The links of kind k stand at `link_at[k, host]`. A link may stand at several hosts, which then move together.

    >>> ring = translations(Ring(5).build())
    >>> ring.sides, ring.kinds, ring.moved(np.array([0, 4]), 3).tolist()
    ((5,), 2, [3, 2])
    """

    fabric: Fabric
    sides: tuple[int, ...]
    link_at: Ints

    @property
    def kinds(self) -> int:
        return len(self.link_at)

    @property
    def generators(self) -> Ints:
        """The hosts to which host 0 goes by one step along each digit; these steps make up all translations."""
        return np.array([weight for weight, side in zip(self._weights, self.sides, strict=True) if side > 1], np.int64)

    @cached_property
    def kind(self) -> Ints:
        """The kind of every link."""
        kind = np.full(self.fabric.links, -1, np.int64)
        kind[self.link_at] = np.arange(self.kinds)[:, None]
        return kind

    @cached_property
    def home(self) -> Ints:
        """A host at which every link stands."""
        home = np.full(self.fabric.links, -1, np.int64)
        home[self.link_at] = np.arange(self.fabric.hosts)
        return home

    def moved(self, host: ArrayLike, by: ArrayLike) -> Ints:
        """Hosts, each moved by the translation that takes host 0 to `by`."""
        return self._digits(host, by, 1)

    def moved_back(self, host: ArrayLike, by: ArrayLike) -> Ints:
        """Hosts, each moved by the translation that takes `by` to host 0."""
        return self._digits(host, by, -1)

    def link_moved_back(self, link: NDArray[np.int32], by: ArrayLike) -> Ints:
        """Links, each moved by the translation that takes `by` to host 0."""
        return np.asarray(self.link_at[self.kind[link], self.moved_back(self.home[link], by)], np.int64)

    @property
    def _weights(self) -> list[int]:
        return [prod(self.sides[digit + 1 :]) for digit in range(len(self.sides))]

    def _digits(self, host: ArrayLike, by: ArrayLike, sign: int) -> Ints:
        start, step = np.asarray(host, np.int64), np.asarray(by, np.int64)
        result = np.zeros(np.broadcast_shapes(start.shape, step.shape), np.int64)
        for weight, side in zip(self._weights, self.sides, strict=True):
            result += (start // weight + sign * (step // weight)) % side * weight
        return result


def translations(fabric: Fabric) -> Translations | None:
    """The translations of a fabric, proved to be symmetries of it; None where none are known or one is no symmetry.

    A fabric from a file has none, and neither has a torus one of whose links is slower than the others.
    """
    declare = _FAMILIES.get(type(fabric.builder))
    if declare is None or fabric.builder is None or fabric.builder.hosts != fabric.hosts:
        return None
    sides, kinds = declare(fabric.builder)
    declared = Translations(fabric, sides, np.stack([np.broadcast_to(kind, fabric.hosts) for kind in kinds]))
    return declared if _are_symmetries(declared) else None


def _are_symmetries(declared: Translations) -> bool:
    """Every link has one kind, and one step along every digit keeps speeds, latencies and what connects to what."""
    fabric, link_at, kind = declared.fabric, declared.link_at, declared.kind
    if (kind < 0).any() or (kind[link_at] != np.arange(declared.kinds)[:, None]).any():
        return False
    for generator in declared.generators:
        step = declared.moved(np.arange(fabric.hosts), generator)
        image = np.empty(fabric.links, np.int64)
        image[link_at] = link_at[:, step]
        # A link that stands at several hosts must be carried to the same place by all of them.
        if (image[link_at] != link_at[:, step]).any():
            return False
        if any((column[image] != column).any() for column in (fabric.bandwidth, fabric.latency, fabric.cables)):
            return False
        node = np.concatenate([step, np.zeros(fabric.switches, np.int64)])
        for end in (fabric.link_src, fabric.link_dst):
            at_switch = end >= fabric.hosts
            node[end[at_switch]] = end[image[at_switch]]
        if any((node[end] != end[image]).any() for end in (fabric.link_src, fabric.link_dst)):
            return False
    return True


Declared = tuple[tuple[int, ...], list[Ints]]
"""The digits of a host, and for each kind of link the one that stands at each host."""


def _of_switch(switch: IdealSwitch) -> Declared:
    up = switch.host_up(np.arange(switch.hosts))
    return (switch.hosts,), [up, up + 1]


def _of_torus(torus: Torus) -> Declared:
    host = np.arange(torus.hosts)
    # An axis of two hosts has one way out, longer axes have two; an axis of one host has none.
    ways = [(axis, way) for axis, side in enumerate(torus.shape) if side > 1 for way in ((1, -1) if side > 2 else (1,))]
    return torus.shape, [torus.link(host, axis, way) for axis, way in ways]


def _of_hypercube(cube: Hypercube) -> Declared:
    bits = range(cube.dimensions)
    return (2,) * cube.dimensions, [cube.link(np.arange(cube.hosts), bit) for bit in bits]


def _of_bcube(cube: BCube) -> Declared:
    ups = [cube.up(np.arange(cube.hosts), level) for level in range(cube.levels)]
    return (cube.ports,) * cube.levels, [link for up in ups for link in (up, up + 1)]


def _of_fat_tree(tree: FatTree) -> Declared:
    """Host (p, e, h) owns the cable from its edge switch to aggregation h mod a, and from there to core e."""
    m, host = tree.half, np.arange(tree.hosts)
    pod, edge, above = host // m**2, host // m % m, host % m % tree.uplinks
    ups = [tree.host_up(host), tree.edge_up(pod, edge, above), tree.core_up(pod, above, edge)]
    return (tree.pod_count, m, m), [link for up in ups for link in (up, up + 1)]


def _of_leaf_spine(tree: LeafSpine) -> Declared:
    """Host number n of a leaf owns uplink n mod K of its leaf; with more uplinks than hosts, each owns several."""
    below, uplinks, host = tree.hosts_per_leaf, tree.spines * tree.cables, np.arange(tree.hosts)
    ups = [tree.host_up(host)]
    for turn in range(-(-uplinks // below)):
        uplink = (host + turn * below) % uplinks
        ups.append(tree.leaf_up(host // below, uplink % tree.spines, uplink // tree.spines))
    return (tree.leafs, below), [link for up in ups for link in (up, up + 1)]


def _of_dgx(cluster: Dgx) -> Declared:
    """A GPU owns its NVLink and its NIC, and all GPUs of a rail together own that rail's cable to each spine.

    Spines stay where they are: a step along the GPUs of a server takes every rail to the next one, on the same spine.
    """
    gpu = np.arange(cluster.hosts)
    rail = gpu % cluster.gpus % cluster.rail_count
    ups = [2 * gpu, 2 * (cluster.hosts + gpu)]
    ups += [2 * (2 * cluster.hosts + rail * cluster.spines + spine) for spine in range(cluster.spines)]
    return (cluster.servers, cluster.gpus), [link for up in ups for link in (up, up + 1)]


def _of_circulant(circulant: Circulant) -> Declared:
    """A host owns the links by which it leaves, one forwards and one back for every stride."""
    hosts, host = circulant.hosts, np.arange(circulant.hosts)
    kinds = []
    first_cable = 0
    for stride in circulant.strides:
        if 2 * stride == hosts:  # the cables of this stride join halves: the way forwards is the way back
            kinds.append(2 * (first_cable + host % stride) + host // stride)
            first_cable += stride
        else:
            kinds += [2 * (first_cable + host), 2 * (first_cable + (host - stride) % hosts) + 1]
            first_cable += hosts
    return (hosts,), kinds


_FAMILIES: Mapping[type, Callable[[Any], Declared]] = {
    IdealSwitch: _of_switch,
    Torus: _of_torus,
    Ring: lambda ring: _of_torus(Torus((ring.hosts,))),
    Hypercube: _of_hypercube,
    BCube: _of_bcube,
    FatTree: _of_fat_tree,
    LeafSpine: _of_leaf_spine,
    Dgx: _of_dgx,
    Circulant: _of_circulant,
}
