"""Circuits set up for the demand of the moment: greedy, with diminishing returns, repaired where relays are allowed.

The largest remaining demand gets a cable and counts half from then on, until nobody has ports left. Servers that
forward for others need one connected graph: ports left over are joined, then parts are merged by exchanging the far
ends of two cables, which keeps everybody's number of ports.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints


def greedy_circuits(demand: NDArray[np.float64], degree: int, *, connect: bool) -> Ints:
    """Cables for a matrix of bytes from server to server, at most `degree` at each server.

    Of the answer, cables[a, b] = cables[b, a] join servers a and b.

    >>> demand = np.array([[0, 8, 1, 0], [0, 0, 0, 0], [0, 0, 0, 3], [0, 0, 0, 0]], float)
    >>> greedy_circuits(demand, 1, connect=False).tolist()
    [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    """
    servers = len(demand)
    both = np.triu(demand + demand.T, 1)
    low, high = np.nonzero(both)
    heap = [(-float(both[a, b]), a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    heapq.heapify(heap)
    free = [degree] * servers
    cables = np.zeros((servers, servers), np.int64)
    while heap:
        weight, a, b = heapq.heappop(heap)
        if not free[a] or not free[b]:
            continue
        cables[a, b] += 1
        cables[b, a] += 1
        free[a] -= 1
        free[b] -= 1
        heapq.heappush(heap, (weight / 2, a, b))
    if connect:
        _join_left_over(cables, free)
        if degree > 1:
            _take_in_lone_servers(cables)
        _merge_parts(cables)
    return cables


def _join_left_over(cables: Ints, free: list[int]) -> None:
    """Give the ports that demand left over to pairs without a cable, servers with most ports first."""
    while True:
        open_ends = sorted((server for server, ports in enumerate(free) if ports), key=lambda one: (-free[one], one))
        pair = next(
            ((a, b) for at, a in enumerate(open_ends) for b in open_ends[at + 1 :] if not cables[a, b]),
            None,
        )
        if pair is None:
            return
        a, b = pair
        cables[a, b] += 1
        cables[b, a] += 1
        free[a] -= 1
        free[b] -= 1


def _take_in_lone_servers(cables: Ints) -> None:
    """Put a server that has no cable into the middle of the first one: two ports of its own, and none of others."""
    for lone in np.flatnonzero(~cables.any(axis=1)).tolist():
        low, high = np.nonzero(np.triu(cables, 1))
        if not len(low):
            return
        a, b = int(low[0]), int(high[0])
        for x, y, change in ((a, b, -1), (a, lone, 1), (lone, b, 1)):
            cables[x, y] += change
            cables[y, x] += change


def _parts(cables: Ints) -> tuple[int, NDArray[np.int32]]:
    """How many parts the graph falls into, and the part of every server."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count, part_of = connected_components(coo_array(cables), directed=False)
    return int(count), part_of


def _merge_parts(cables: Ints) -> None:
    """Exchange far ends between a cable of the first part and one of another until the graph is whole or cannot be."""
    while True:
        parts, part_of = _parts(cables)
        if parts == 1 or not _merged_with_another(cables, part_of, int(parts)):
            return


def _merged_with_another(cables: Ints, part_of: NDArray[np.int32], parts: int) -> bool:
    first = _spare_cable(cables, part_of, 0)
    for part in range(1, parts):
        other = _spare_cable(cables, part_of, part)
        # One of the two must not be a bridge of its part: otherwise the exchange only makes other parts.
        mine, theirs = first or _any_cable(cables, part_of, 0), other or _any_cable(cables, part_of, part)
        if not (first or other) or mine is None or theirs is None:
            continue
        (a, b), (c, d) = mine, theirs
        for x, y, change in ((a, b, -1), (c, d, -1), (a, c, 1), (b, d, 1)):
            cables[x, y] += change
            cables[y, x] += change
        return True
    return False


def _any_cable(cables: Ints, part_of: NDArray[np.int32], part: int) -> tuple[int, int] | None:
    low, high = np.nonzero(np.triu(cables, 1) * (part_of == part)[:, None])
    return (int(low[0]), int(high[0])) if len(low) else None


def _spare_cable(cables: Ints, part_of: NDArray[np.int32], part: int) -> tuple[int, int] | None:
    """A cable that its part stays connected without: a parallel one, or one on a cycle."""
    low, high = np.nonzero(np.triu(cables, 1) * (part_of == part)[:, None])
    for a, b in zip(low.tolist(), high.tolist(), strict=True):
        if cables[a, b] > 1:
            return a, b
    members = int((part_of == part).sum())
    if len(low) < members:
        return None  # a tree: every cable is a bridge
    for a, b in zip(low.tolist(), high.tolist(), strict=True):
        cables[a, b] = cables[b, a] = 0
        _, now = _parts(cables)
        cables[a, b] = cables[b, a] = 1
        if now[a] == now[b]:
            return a, b
    return None
