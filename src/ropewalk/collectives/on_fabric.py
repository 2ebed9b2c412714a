"""The structure of a fabric that collectives can follow: its cycles, and its levels (axes, switches, pods, servers).

Rank i runs on host i.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.hamiltonian import hamiltonian_cycles
from ropewalk.collectives.hips import (
    Process,
    hips,
    hips_bcube,
    hips_fat_tree,
    hips_leaf_spine,
    hips_torus,
    hips_two_levels,
    near_square,
)
from ropewalk.collectives.peers import mesh_inside
from ropewalk.collectives.scatter_gather import ScatterGather, at_least_two
from ropewalk.fabric import BCube, Circulant, Dragonfly, Fabric, FatTree, Hypercube, LeafSpine, Ring, Torus


def fabric_cycles(fabric: Fabric) -> list[NDArray[np.int64]]:
    """Edge-disjoint Hamiltonian cycles that the fabric has by construction; none where nothing is known."""
    at_least_two(fabric.hosts, "a collective")
    known = _CYCLES.get(type(fabric.builder))
    return known(fabric.builder) if known else []


def best_hierarchy(fabric: Fabric) -> ScatterGather:
    """The hierarchy whose levels are those of the fabric: servers, switches, pods or axes; else a near-square one."""
    at_least_two(fabric.hosts, "a collective")
    known = _HIERARCHIES.get(type(fabric.builder))
    return known(fabric.builder) if known else hips_two_levels(*host_groups(fabric))


def host_groups(fabric: Fabric) -> tuple[int, int]:
    """(groups, hosts in each) of neighbouring hosts: on one server, edge switch or leaf; else near-square."""
    builder = fabric.builder
    if isinstance(builder, FatTree):
        return builder.pod_count * builder.half, builder.half
    if isinstance(builder, LeafSpine):
        return builder.leafs, builder.hosts_per_leaf
    if fabric.server is not None:
        server, sizes = np.unique(fabric.server, return_counts=True)
        if np.array_equal(fabric.server, np.repeat(server, sizes[0])):
            return len(server), int(sizes[0])
    return near_square(fabric.hosts)


def _coprime_strides(builder: Circulant) -> list[NDArray[np.int64]]:
    ways = [stride for stride in builder.strides if math.gcd(stride, builder.hosts) == 1]
    return [np.arange(builder.hosts) * stride % builder.hosts for stride in ways]


def _hips_dragonfly(builder: Dragonfly) -> ScatterGather:
    grid = np.arange(builder.hosts).reshape(builder.groups, builder.routers, builder.hosts_per_router)
    return hips(grid, [Process((2, 1, 0), mesh_inside)])


_CYCLES: dict[type, Callable[[Any], list[NDArray[np.int64]]]] = {
    Torus: lambda builder: hamiltonian_cycles(builder.shape),
    BCube: lambda builder: hamiltonian_cycles((builder.ports,) * builder.levels),
    Hypercube: lambda builder: hamiltonian_cycles((2,) * builder.dimensions),
    Ring: lambda builder: [np.arange(builder.hosts)],
    Circulant: _coprime_strides,
}

_HIERARCHIES: dict[type, Callable[[Any], ScatterGather]] = {
    FatTree: hips_fat_tree,
    LeafSpine: hips_leaf_spine,
    BCube: hips_bcube,
    Torus: hips_torus,
    Ring: lambda builder: hips_torus(Torus((builder.hosts,))),
    # A bit of a hypercube is a level-l switch of a BCube with two ports.
    Hypercube: lambda builder: hips_bcube(BCube(2, builder.dimensions)),
    Dragonfly: _hips_dragonfly,
}
