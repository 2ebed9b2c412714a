"""The contract of routes, checked by array operations: one test for every promise, whoever made the routes.

A finding names the first pair that breaks the promise and says how many do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ropewalk.routing.routes import Routes

SHARE_TOLERANCE = 1e-9
"""How far the shares of a pair may be from 1: far above rounding, far below any share a person would forget."""


def find_breaches(routes: Routes) -> Iterator[str]:
    """Every promise that these routes break; none for routes that keep the contract.

    Later promises are only looked at when the arrays they index are sound.
    """
    shapes = list(_shape_breaches(routes))
    yield from shapes
    if shapes:
        return
    yield from _pair_breaches(routes)
    yield from _share_breaches(routes)
    yield from _chain_breaches(routes)


def _shape_breaches(routes: Routes) -> Iterator[str]:
    fabric = routes.fabric
    ends = (routes.pair_src, routes.pair_dst)
    if len(routes.pair_src) != len(routes.pair_dst):
        yield "pair_src and pair_dst differ in length: give every pair a source and a destination"
        return
    if any(len(end) and (end.min() < 0 or end.max() >= fabric.hosts) for end in ends):
        yield f"a pair names a node that is not one of the {fabric.hosts} hosts: route between hosts"
        return
    covered = (
        ("path_start", routes.path_start, routes.pairs, routes.paths),
        ("link_start", routes.link_start, routes.paths, len(routes.link)),
    )
    for name, start, rows, entries in covered:
        if len(start) != rows + 1 or start[0] != 0 or start[-1] != entries:
            yield f"{name} does not cover {rows} rows of {entries} entries: build routes with make_routes"
            return
    if len(routes.link) and (routes.link.min() < 0 or routes.link.max() >= fabric.links):
        yield f"a path uses a link id outside the fabric's {fabric.links} links: build routes on the same fabric"
    empty_pair, empty_path = np.diff(routes.path_start) < 1, np.diff(routes.link_start) < 1
    if empty_pair.any():
        yield f"{_pairs(routes, empty_pair)} no path: the hosts are not connected"
    elif empty_path.any():
        yield f"{_pairs_of_paths(routes, empty_path)} a path without links: list the links of every path"


def _pair_breaches(routes: Routes) -> Iterator[str]:
    key = routes.pair_src.astype(np.int64) * routes.fabric.nodes + routes.pair_dst
    if (np.diff(key[: len(key) - routes.appended]) <= 0).any():
        yield "pairs are not unique and sorted: build them with unique_pairs"
    same = routes.pair_src == routes.pair_dst
    if same.any():
        yield f"{_pairs(routes, same)} the same host at both ends: drop such transfers"


def _share_breaches(routes: Routes) -> Iterator[str]:
    if routes.pairs == 0:
        return
    # Written as "not good" so that a share that is not a number is bad.
    bad = ~(routes.share > 0)
    if bad.any():
        yield f"{_pairs_of_paths(routes, bad)} a share that is not positive: drop paths that carry nothing"
    total = np.add.reduceat(routes.share, routes.path_start[:-1])
    off = ~(np.abs(total - 1.0) <= SHARE_TOLERANCE)
    if off.any():
        yield (
            f"{_pairs(routes, off)} shares that sum to {float(total[off][0]):g}: "
            "the shares of a pair must sum to 1, divide them by their sum"
        )


def _chain_breaches(routes: Routes) -> Iterator[str]:
    fabric, link = routes.fabric, routes.link
    if routes.paths == 0:
        return
    pair_of_path, path_of_hop = routes.pair_of_path, routes.path_of_hop
    first, last = link[routes.link_start[:-1]], link[routes.link_start[1:] - 1]
    astray = fabric.link_src[first] != routes.pair_src[pair_of_path]
    if astray.any():
        yield (
            f"{_pairs_of_paths(routes, astray)} a path that does not begin at its source host: "
            "start it with a link of that host"
        )
    astray = fabric.link_dst[last] != routes.pair_dst[pair_of_path]
    if astray.any():
        yield (
            f"{_pairs_of_paths(routes, astray)} a path that does not end at its destination host: add the missing links"
        )
    follows = np.ones(len(link), bool)
    follows[routes.link_start[:-1]] = False
    hop = np.flatnonzero(follows)
    jump = fabric.link_src[link[hop]] != fabric.link_dst[link[hop - 1]]
    if jump.any():
        jumping = np.bincount(path_of_hop[hop[jump]], minlength=routes.paths) > 0
        yield (f"{_pairs_of_paths(routes, jumping)} a path with a gap between links: list its links in order")
    reached = fabric.link_dst[link]
    visits = np.sort(path_of_hop * np.int64(fabric.nodes) + reached)
    twice = visits[1:][visits[1:] == visits[:-1]] // fabric.nodes
    returned = path_of_hop[reached == routes.pair_src[pair_of_path][path_of_hop]]
    looping = np.bincount(np.concatenate([twice, returned]), minlength=routes.paths) > 0
    if looping.any():
        yield f"{_pairs_of_paths(routes, looping)} a path that visits a node twice: remove the loop"


def _pairs(routes: Routes, which: NDArray[Any]) -> str:
    """`pair h0->h1 has`, or `pair h0->h1 and 12 more have`."""
    rows = np.flatnonzero(which)
    names = routes.fabric.node_names
    pair = f"{names[int(routes.pair_src[rows[0]])]}->{names[int(routes.pair_dst[rows[0]])]}"
    return f"pair {pair} has" if len(rows) == 1 else f"pair {pair} and {len(rows) - 1} more have"


def _pairs_of_paths(routes: Routes, which: NDArray[Any]) -> str:
    return _pairs(routes, np.bincount(routes.pair_of_path[which], minlength=routes.pairs) > 0)
