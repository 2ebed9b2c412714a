"""The double binary tree: two trees over the same ranks, each with half of the buffer, leaves of one inside the other.

In one binary tree the leaves only send and the inner ranks do all the work. Here every rank is an inner node of at most
one tree and a leaf of the other, so the load evens out at twice the buffer per rank while the number of rounds stays
logarithmic (Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009;
their colouring of the edges, which spares a rank two arrivals in one round, is deliberately absent).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.lanes import Rounds, side_by_side
from ropewalk.collectives.program import Program, everyone
from ropewalk.collectives.scatter_gather import at_least_two
from ropewalk.collectives.segments import pipelined

DEFAULT_SEGMENTS = 16
"""Segments of each tree: a tree of depth D takes 2D + S - 1 rounds, S of which it would take with no depth at all."""


def double_tree_all_reduce(ranks: int, segments: int = DEFAULT_SEGMENTS) -> Program:
    """All-reduce in both trees at once, each pipelined in `segments` segments up to its root and down again.

    >>> len(double_tree_all_reduce(16, segments=1).rounds)
    8
    """
    at_least_two(ranks, "a double tree")
    # Shifted by one rank, the even (inner) places of the first tree fall on the odd places (leaves) of the second.
    parent = in_order_tree(ranks)
    shifted = np.roll(np.where(parent < 0, -1, (parent + 1) % ranks), 1)
    lanes = [up_and_down(parent, segments), up_and_down(shifted, segments)]
    rounds = tuple(side_by_side(lanes, segments))
    name = f"double-tree all-reduce in {segments} segments"
    return Program(name, ranks, 2 * segments, rounds, everyone(ranks), everyone(ranks))


def in_order_tree(ranks: int) -> NDArray[np.int64]:
    """Parent of each rank (-1 for the root) in the binary tree that lists the ranks from left to right.

    Counted from 1, the parent of a place clears its lowest set bit and sets the next one; odd places are leaves. A
    parent that would lie beyond the last place is skipped for the one above it.

    >>> in_order_tree(7).tolist()
    [1, 3, 1, -1, 5, 3, 5]
    """
    place = np.arange(1, ranks + 1)
    parent = _above(place)
    parent[(1 << (ranks.bit_length() - 1)) - 1] = 0
    while (beyond := parent > ranks).any():
        parent[beyond] = _above(parent[beyond])
    return parent - 1


def _above(place: NDArray[np.int64]) -> NDArray[np.int64]:
    lowest = place & -place
    return (place ^ lowest) | (lowest << 1)


def up_and_down(parent: NDArray[np.int64], segments: int) -> Rounds:
    """An all-reduce in one tree, pipelined: sums climb to the root, which sends the result down again."""
    depth = _depth(parent)
    deepest = int(depth.max())
    child = np.flatnonzero(parent >= 0)
    above = parent[child]
    # A rank sends a segment up one round after its children did; the root turns it round, and so on down the levels.
    up, down = deepest - depth[child], deepest + depth[above]
    adds = np.repeat([True, False], len(child))
    return pipelined(
        np.concatenate([child, above]), np.concatenate([above, child]), np.concatenate([up, down]), adds, segments
    )


def _depth(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    depth = np.zeros(len(parent), np.int64)
    at = parent
    while (climbing := at >= 0).any():
        depth += climbing
        at = np.where(climbing, parent[at], -1)
    return depth
