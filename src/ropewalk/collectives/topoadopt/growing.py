"""From parents and arcs to the trees of a forest."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.forest.forest import Branch, Tree
from ropewalk.collectives.optimum.network import Network


def grown_tree(network: Network, parent: Ints, root: int, rate: Fraction, ways: Sequence[Sequence[int]]) -> Tree:
    """A tree with one way to a branch, in the order of depth; `ways` are the arcs to each child from its parent."""
    depth = depths_from(parent)
    branches = []
    for child in np.argsort(depth, kind="stable").tolist():
        if child == root:
            continue
        arcs = ways[child]
        path = (int(network.tail[arcs[0]]), *(int(network.head[arc]) for arc in arcs))
        branches.append(Branch(path[0], path[-1], ((path, rate),)))
    return Tree(int(network.members[root]), rate, tuple(branches), int(depth.max()))


def arcs_from_parent(ways: NDArray[np.int32], child: int) -> list[int]:
    """The arcs of the way to a child; kernels write them down from the child back."""
    arcs: list[int] = ways[child][ways[child] >= 0].tolist()
    return arcs[::-1]


def depths_from(parent: Ints) -> Ints:
    """How many branches every vertex is away from the root, whose parent is -1; of many trees at once, one a row.

    >>> depths_from(np.array([1, -1, 0]))
    array([1, 0, 2])
    """
    depth = np.where(parent < 0, 0, -1)
    above = np.maximum(parent, 0)
    while (depth < 0).any():
        of_parent = np.take_along_axis(depth, above, axis=-1)
        depth = np.where((depth < 0) & (of_parent >= 0), of_parent + 1, depth)
    return depth


def rerooted(parent: Ints, root: int) -> Ints:
    """The same tree hanging from another vertex.

    >>> rerooted(np.array([-1, 0, 1]), 1)
    array([ 1, -1,  1])
    """
    moved = parent.copy()
    vertex, above = root, -1
    while vertex >= 0:
        moved[vertex], vertex, above = above, int(parent[vertex]), vertex
    return moved


def centre(parent: Ints) -> int:
    """The vertex from which the farthest one is nearest; the lowest of two.

    >>> centre(np.array([-1, 0, 1, 2, 3]))
    2
    """
    degree = np.bincount(parent[parent >= 0], minlength=len(parent)) + (parent >= 0)
    neighbours: list[list[int]] = [[] for _ in parent]
    for child, above in enumerate(parent.tolist()):
        if above >= 0:
            neighbours[child].append(above)
            neighbours[above].append(child)
    left = len(parent)
    leaves = np.flatnonzero(degree <= 1).tolist()
    while left > 2:
        left -= len(leaves)
        after = []
        for leaf in leaves:
            for near in neighbours[leaf]:
                degree[near] -= 1
                if degree[near] == 1:
                    after.append(near)
        leaves = after
    return int(min(leaves))
