"""Shortest paths on any fabric: one path for each pair, ties by lowest link id.

Hosts forward for others only where no path through switches alone exists, as on a torus, on BCube or between rails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import RouteError
from ropewalk.fabric import Fabric
from ropewalk.routing.routes import Routes, single_paths, starts, unique_pairs


@dataclass(frozen=True, eq=False)
class HopChoice:
    """How a node picks among next hops that are equally near: in which order it lists them and which it takes."""

    out_start: NDArray[np.int64]
    out_link: NDArray[np.int32]
    words: NDArray[np.uint32]
    """What a flow is hashed by, a row for each pair; no rows: always take the first next hop."""
    node_seed: NDArray[np.uint32]


def shortest(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
    """Send every pair over its shortest path; among equals, over the link with the lowest id at every hop.

    >>> from ropewalk.fabric import Ring
    >>> shortest(Ring(5).build(), np.array([0]), np.array([2])).hops
    array([2])
    """
    pair_src, pair_dst = unique_pairs(fabric, src, dst)
    out_start, out_link = fabric.outgoing()
    first = HopChoice(out_start, out_link, np.zeros((0, 3), np.uint32), np.zeros(fabric.nodes, np.uint32))
    return walk_shortest(fabric, pair_src, pair_dst, first)


def walk_shortest(
    fabric: Fabric, pair_src: NDArray[np.int32], pair_dst: NDArray[np.int32], choice: HopChoice
) -> Routes:
    """One shortest path for each of the unique pairs, picked hop by hop."""
    # Imported here because loading Numba takes longer than most commands run.
    from ropewalk.routing._walk import measure, walk

    in_start, in_link = fabric.incoming()
    # A host that is reached from one switch only is reached through it: one search serves the whole rack.
    last_link = _only_way_in(fabric)[pair_dst]
    racked = last_link >= 0
    root = np.where(racked, fabric.link_src[last_link], pair_dst).astype(np.int32)

    length = np.full(len(pair_src), -1, np.int32)
    relayed = np.zeros(len(pair_src), bool)
    for relay in (False, True):
        rows, roots, group_start = _by_root(root, np.flatnonzero(length < 0))
        found = np.empty(len(rows), np.int32)
        measure(roots, group_start, pair_src[rows], in_start, in_link, fabric.link_src, fabric.hosts, relay, found)
        length[rows], relayed[rows] = found, relay
    if (length < 0).any():
        _refuse(fabric, pair_src[length < 0], pair_dst[length < 0])

    link_start = starts(length + racked)
    link = np.empty(link_start[-1], np.int32)
    link[link_start[1:][racked] - 1] = last_link[racked]
    for relay in (False, True):
        rows, roots, group_start = _by_root(root, np.flatnonzero(relayed == relay))
        walk(
            *(roots, group_start, pair_src[rows], in_start, in_link, choice.out_start, choice.out_link),
            *(fabric.link_src, fabric.link_dst, fabric.hosts, relay),
            *(choice.words[rows] if len(choice.words) else choice.words, choice.node_seed, link_start[rows], link),
        )
    return single_paths(fabric, pair_src, pair_dst, link_start, link)


def _only_way_in(fabric: Fabric) -> NDArray[np.int64]:
    """For every host the link by which it is reached, where there is only one and it comes from a switch; else -1."""
    in_start, in_link = fabric.incoming()
    single = np.flatnonzero(np.diff(in_start)[: fabric.hosts] == 1)
    link = in_link[in_start[single]]
    way_in = np.full(fabric.hosts, -1, np.int64)
    way_in[single] = np.where(fabric.link_src[link] >= fabric.hosts, link, -1)
    return way_in


def _by_root(
    root: NDArray[np.int32], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Rows grouped by their root: (rows in that order, roots, where the group of each root begins)."""
    rows = rows[np.argsort(root[rows], kind="stable")]
    roots, count = np.unique(root[rows], return_counts=True)
    return rows, roots, starts(count)


def _refuse(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> None:
    more = f" (and for {len(src) - 1} more pairs)" if len(src) > 1 else ""
    names = fabric.node_names
    raise RouteError(
        f"{fabric.name} has no path from {names[int(src[0])]} to {names[int(dst[0])]}{more}: add links between them"
    )
