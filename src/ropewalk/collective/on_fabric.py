"""Which collective suits which fabric: tables from the name of a collective to a function of the fabric.

Rank i runs on host i. Every all-reduce works on every fabric with at least two hosts; where a fabric has a structure
that a collective can follow (the axes of a torus, the switches of a BCube, the pods of a fat-tree), it does. Of the
others, some need a power of two of hosts or groups of hosts, and say so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.collective.double_tree import double_tree_all_reduce
from ropewalk.collective.exchange import (
    direct_all_to_all,
    hierarchical_all_to_all,
    shift_all_to_all,
    xor_all_to_all,
)
from ropewalk.collective.halving_doubling import (
    doubling_all_gather,
    halving_doubling_all_reduce,
    halving_reduce_scatter,
)
from ropewalk.collective.hamiltonian import hamiltonian_cycles
from ropewalk.collective.hips import (
    Process,
    hips,
    hips_bcube,
    hips_fat_tree,
    hips_leaf_spine,
    hips_torus,
    hips_two_levels,
    near_square,
)
from ropewalk.collective.mesh import mesh_all_gather, mesh_all_reduce, mesh_reduce_scatter
from ropewalk.collective.parameter_server import dedicated_servers, shared_servers
from ropewalk.collective.peers import mesh_inside
from ropewalk.collective.program import Program
from ropewalk.collective.ring import rings
from ropewalk.collective.scatter_gather import ScatterGather, at_least_two
from ropewalk.fabric import BCube, Circulant, Dragonfly, Fabric, FatTree, Hypercube, LeafSpine, Ring, Torus

OnFabric = Callable[[Fabric], Program]


def fabric_cycles(fabric: Fabric) -> list[NDArray[np.int64]]:
    """Edge-disjoint Hamiltonian cycles that the fabric has by construction; none where nothing is known."""
    at_least_two(fabric.hosts, "a collective")
    known = _CYCLES.get(type(fabric.builder))
    return known(fabric.builder) if known else []


def best_rings(fabric: Fabric) -> ScatterGather:
    """Rings both ways over all edge-disjoint cycles of the fabric; else one ring one way in the order of the hosts.

    On a switched fabric with one NIC a host, one ring one way keeps every NIC busy in both directions.
    """
    cycles = fabric_cycles(fabric)
    return rings(cycles, both_ways=True) if cycles else rings([np.arange(fabric.hosts)])


def first_ring(fabric: Fabric, both_ways: bool) -> ScatterGather:
    """A ring over the first cycle of the fabric, or over its hosts in order."""
    cycles = fabric_cycles(fabric) or [np.arange(fabric.hosts)]
    return rings(cycles[:1], both_ways)


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

ALL_REDUCES: dict[str, OnFabric] = {
    "ring": lambda fabric: best_rings(fabric).all_reduce("ring"),
    "ring-one-way": lambda fabric: first_ring(fabric, both_ways=False).all_reduce("ring-one-way"),
    "ring-both-ways": lambda fabric: first_ring(fabric, both_ways=True).all_reduce("ring-both-ways"),
    "mesh": lambda fabric: mesh_all_reduce(fabric.hosts),
    "ps": lambda fabric: shared_servers(fabric.hosts),
    # The last host only serves; the others train.
    "ps-dedicated": lambda fabric: dedicated_servers(fabric.hosts - 1),
    "ps-sharded": lambda fabric: shared_servers(fabric.hosts, fabric.hosts),
    "halving-doubling": lambda fabric: halving_doubling_all_reduce(fabric.hosts),
    "double-tree": lambda fabric: double_tree_all_reduce(fabric.hosts),
    "hips": lambda fabric: best_hierarchy(fabric).all_reduce("hips"),
}
"""All-reduces by the name they have on the command line."""

REDUCE_SCATTERS: dict[str, OnFabric] = {
    "ring": lambda fabric: best_rings(fabric).reduce_scatter("ring reduce-scatter"),
    "mesh": lambda fabric: mesh_reduce_scatter(fabric.hosts),
    "halving": lambda fabric: halving_reduce_scatter(fabric.hosts),
    "hips": lambda fabric: best_hierarchy(fabric).reduce_scatter("hips reduce-scatter"),
}

ALL_GATHERS: dict[str, OnFabric] = {
    "ring": lambda fabric: best_rings(fabric).all_gather("ring all-gather"),
    "mesh": lambda fabric: mesh_all_gather(fabric.hosts),
    "doubling": lambda fabric: doubling_all_gather(fabric.hosts),
    "hips": lambda fabric: best_hierarchy(fabric).all_gather("hips all-gather"),
}

ALL_TO_ALLS: dict[str, OnFabric] = {
    "shift": lambda fabric: shift_all_to_all(fabric.hosts),
    "xor": lambda fabric: xor_all_to_all(fabric.hosts),
    "direct": lambda fabric: direct_all_to_all(fabric.hosts),
    "hierarchical": lambda fabric: hierarchical_all_to_all(*host_groups(fabric)),
}
