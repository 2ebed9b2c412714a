"""Hierarchies of peer sets (HiPS): reduce-scatter level by level, then all-gather in exactly the reverse order.

The ranks stand on a grid with one axis for each level; the peer set of a rank at a level are the ranks that differ
from it only on that axis. All peer sets of a level work at the same time, on different chunks. A hierarchy sends
2(N-1)/N of the buffer per rank like every bandwidth-optimal all-reduce: what it saves is rounds, and what it gains is
that a level can be one switch or one link of the fabric. Where hosts have k NICs, k processes with rotated order of
levels keep all of them busy.

"Impact of Synchronization Topology on DML Performance: Both Logical Topology and Physical Topology", IEEE/ACM
Transactions on Networking, 2021 (HiPS); "BML: A High-performance, Low-cost Gradient Synchronization Algorithm for DML
Training", NeurIPS 2018 (the rotated processes on BCube).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.collectives.lanes import Rounds
from ropewalk.collectives.peers import Inside, PeerSets, mesh_inside, reverse_ring_inside, ring_inside
from ropewalk.collectives.scatter_gather import ScatterGather, at_least_two, in_parallel
from ropewalk.errors import ProgramError
from ropewalk.fabric import BCube, FatTree, LeafSpine, Torus


class Process(NamedTuple):
    """One pass through all levels: the axes of the grid in the order of the reduce-scatter, and how peers exchange."""

    order: tuple[int, ...]
    inside: Inside


def hips(grid: ArrayLike, processes: Sequence[Process]) -> ScatterGather:
    """Processes over a grid of ranks (one axis a level), each in its own lane and on an equal part of the buffer.

    >>> two_levels = hips(np.arange(6).reshape(2, 3), [Process((1, 0), mesh_inside)])
    >>> len(two_levels.all_reduce("two levels").rounds)
    4
    """
    ranks_at = np.asarray(grid, np.int64)
    at_least_two(ranks_at.size, "a hierarchy")
    if not np.array_equal(np.sort(ranks_at, axis=None), np.arange(ranks_at.size)):
        raise ProgramError(f"a hierarchy of {ranks_at.size} ranks: put each of 0…{ranks_at.size - 1} on the grid once")
    for process in processes:
        if sorted(process.order) != list(range(ranks_at.ndim)):
            raise ProgramError(f"order {process.order} of {ranks_at.ndim} levels: name each level exactly once")
    lanes = [
        ScatterGather(ranks_at.size, ranks_at.size, *hierarchy(ranks_at.transpose(process.order), process.inside))
        for process in processes
    ]
    return in_parallel(lanes)


def hierarchy(grid: NDArray[np.int64], inside: Inside) -> tuple[Rounds, Rounds]:
    """Reduce-scatter along axis 0, then axis 1 …, and all-gather back; the rank at a grid point owns the chunk r."""
    slot = np.arange(grid.size).reshape(grid.shape)
    scatter: Rounds = []
    gather: Rounds = []
    for axis, size in enumerate(grid.shape):
        if size == 1:
            continue
        width = math.prod(grid.shape[axis + 1 :])
        peers = PeerSets(
            members=np.moveaxis(grid, axis, -1).reshape(-1, size),
            # Slots count the grid with axis 0 slowest, so the slots that agree on axes 0 … axis are one block.
            first=np.moveaxis(slot // width * width, axis, -1).reshape(-1, size),
            width=width,
            chunk_at=grid.ravel(),
        )
        down, up = inside(peers)
        scatter = scatter + down
        gather = up + gather
    return scatter, gather


def rotated(levels: int, insides: Sequence[Inside]) -> list[Process]:
    """Processes that start at level 0, 1, … and wrap around, one for each exchange."""
    orders = [tuple((first + level) % levels for level in range(levels)) for first in range(levels)]
    return [Process(order, inside) for order in orders for inside in insides]


def hips_fat_tree(tree: FatTree) -> ScatterGather:
    """Three levels: the hosts of an edge switch, the edge switches of a pod, the pods; a mesh in each."""
    grid = np.arange(tree.hosts).reshape(tree.pod_count, tree.half, tree.half)
    return hips(grid, [Process((2, 1, 0), mesh_inside)])


def hips_leaf_spine(fabric: LeafSpine) -> ScatterGather:
    """Two levels: the hosts of a leaf, then the leafs; a mesh in each."""
    grid = np.arange(fabric.hosts).reshape(fabric.leafs, fabric.hosts_per_leaf)
    return hips(grid, [Process((1, 0), mesh_inside)])


def hips_bcube(cube: BCube) -> ScatterGather:
    """k rotated processes with a mesh inside each switch, so that every round uses every NIC alike (BML)."""
    digits = np.arange(cube.hosts).reshape((cube.ports,) * cube.levels).transpose()
    return hips(digits, rotated(cube.levels, [mesh_inside]))


def hips_torus(torus: Torus) -> ScatterGather:
    """k rotated processes with a ring in each direction of each axis; axes of size 1 do not count.

    On a torus with equal sides every round loads every link alike. With unequal sides the rotated processes meet on
    the same axis in some rounds: still a correct all-reduce, no longer the fastest possible.
    """
    sides = tuple(side for side in torus.shape if side > 1)
    return hips(np.arange(torus.hosts).reshape(sides), rotated(len(sides), [ring_inside, reverse_ring_inside]))


def hips_two_levels(groups: int, group_size: int) -> ScatterGather:
    """Two levels over consecutive ranks: inside each group, then across the groups; a mesh in each."""
    at_least_two(groups * group_size, "a hierarchy")
    return hips(np.arange(groups * group_size).reshape(groups, group_size), [Process((1, 0), mesh_inside)])


def near_square(ranks: int) -> tuple[int, int]:
    """(groups, group size) as equal as the divisors of the number of ranks allow; the groups are the larger number.

    >>> near_square(64), near_square(24), near_square(7)
    ((8, 8), (6, 4), (7, 1))
    """
    size = next(size for size in range(math.isqrt(ranks), 0, -1) if ranks % size == 0)
    return ranks // size, size
