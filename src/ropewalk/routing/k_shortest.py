"""k-shortest paths on any fabric: bytes of a pair spread equally over its shortest loop-free paths."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import RouteError
from ropewalk.fabric import Fabric
from ropewalk.ragged import ranges, rows_of
from ropewalk.routing.routes import Router, Routes, starts, unique_pairs


def k_shortest(k: int, *, extra_hops: int | None = None) -> Router:
    """Use up to `k` loop-free paths of every pair, shortest first, ties by lowest link ids; equal shares (Yen, 1971).

    `extra_hops` bounds how much longer than the shortest a path may be: 0 spreads over equally short paths only and
    adds no relayed bytes, None takes whatever comes next. In a fabric with switches hosts forward for others only
    where a pair has no path through switches alone. The first paths to a destination form a tree.

    >>> from ropewalk.fabric import Ring
    >>> k_shortest(3)(Ring(5).build(), np.array([0]), np.array([2])).hops
    array([2, 3])
    """
    if k < 1 or (extra_hops is not None and extra_hops < 0):
        raise RouteError(f"{k} shortest paths with {extra_hops} extra hops: give at least 1 path and 0 extra hops")

    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        pair_src, pair_dst = unique_pairs(fabric, src, dst)
        blocks: list[_Block] = []
        without = np.arange(len(pair_src))
        for relay in (False, True) if fabric.switches else (True,):
            blocks.append(_paths(fabric, k, extra_hops, pair_src, pair_dst, without, relay))
            without = blocks[-1].row[blocks[-1].count == 0]
        if len(without):
            a, b = (fabric.node_names[int(end[without[0]])] for end in (pair_src, pair_dst))
            raise RouteError(f"{fabric.name} has no path from {a} to {b}: add links between them")
        return _assembled(fabric, pair_src, pair_dst, blocks)

    return route


class _Block:
    """Paths that one run of the kernel found: for each pair its row, how many, and then lengths and links of all."""

    def __init__(
        self, row: NDArray[np.int64], count: NDArray[np.int64], length: NDArray[np.int64], link: NDArray[np.int32]
    ) -> None:
        self.row, self.count, self.length, self.link = row, count, length, link


def _paths(
    fabric: Fabric,
    k: int,
    extra_hops: int | None,
    pair_src: NDArray[np.int32],
    pair_dst: NDArray[np.int32],
    row: NDArray[np.int64],
    relay: bool,
) -> _Block:
    # Imported here because loading Numba takes longer than most commands run.
    from ropewalk.routing._k_shortest import k_shortest_paths

    row = row[np.argsort(pair_dst[row], kind="stable")]
    destination, members = np.unique(pair_dst[row], return_counts=True)
    graph = (*fabric.incoming(), *fabric.outgoing(), fabric.link_src, fabric.link_dst, fabric.hosts)
    count = np.zeros(len(row), np.int64)
    bound = -1 if extra_hops is None else extra_hops
    length, link = k_shortest_paths(k, bound, destination, starts(members), pair_src[row], graph, relay, count)
    return _Block(row, count, length, link)


def _assembled(
    fabric: Fabric, pair_src: NDArray[np.int32], pair_dst: NDArray[np.int32], blocks: list[_Block]
) -> Routes:
    """Paths of all blocks in the order of their pairs."""
    row, count, length, link = (
        np.concatenate([getattr(block, column) for block in blocks]) for column in ("row", "count", "length", "link")
    )
    first_path, first_hop = starts(count), starts(length)
    order = np.argsort(row[count > 0], kind="stable")
    found = np.flatnonzero(count > 0)[order]
    path = ranges(first_path[found], count[found])
    share = np.repeat(1.0 / count[found], count[found])
    hops = length[path]
    links = rows_of(link, first_hop[path], hops)
    return Routes(fabric, pair_src, pair_dst, starts(count[found]), share, starts(hops), links)
