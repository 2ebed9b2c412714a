"""Routes on circulants by coin change: shortest ways that load links equally and fit forwarding tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.errors import RouteError
from ropewalk.fabric import Fabric
from ropewalk.ragged import ranges
from ropewalk.routing.coin_change import coin_change
from ropewalk.routing.coin_orders import balanced_shares, coin_orders
from ropewalk.routing.routes import Routes, starts, unique_pairs

BLOCK_PATHS = 1 << 17
"""Paths whose hops are written at once: those of a million pairs together would take gigabytes on the way."""
LEAST_SHARE = 1e-9
"""A way with less than this is left out and its share given to the others."""


def coin_change_routes(
    fabric: Fabric,
    jumps: Sequence[int],
    sources: ArrayLike,
    destinations: ArrayLike,
    *,
    weight: NDArray[np.float64] | None = None,
    shared: bool = True,
) -> Routes:
    """Route by coin change over the links with these jumps, and their opposites where the fabric has them.

    All paths have the fewest hops. `weight[m]` is the demand at distance m that link loads are balanced for (None: all
    distances alike). `shared` spreads a pair over several paths with different first links; otherwise it has one.

    >>> from ropewalk.fabric import Circulant
    >>> routes = coin_change_routes(Circulant(12, (1, 5)).build(), (1, 5), [0], [6])
    >>> routes.share, routes.hops
    (array([0.25, 0.25, 0.25, 0.25]), array([2, 2, 2, 2]))
    """
    pair_src, pair_dst = unique_pairs(fabric, sources, destinations)
    coins, link_of = coins_on(fabric, jumps)
    demand = np.ones(fabric.hosts) if weight is None else np.asarray(weight, np.float64)
    if demand.shape != (fabric.hosts,) or not np.isfinite(demand).all() or (demand < 0).any():
        raise RouteError(f"the demand by distance is unusable: give {fabric.hosts} numbers, none negative or infinite")
    orders = coin_orders(coin_change(fabric.hosts, coins))
    # Only ratios of speeds and of demands matter; large numbers would square to infinity.
    speed = fabric.bandwidth[link_of].mean(axis=0)
    share = balanced_shares(orders, demand / max(demand.max(), 1e-300), speed / speed.max(), shared)

    kept = share > LEAST_SHARE
    residue, share, coin = orders.residue[kept], share[kept], orders.coin[kept]
    share = share / np.bincount(residue, share, fabric.hosts)[residue]
    first_way = np.searchsorted(residue, np.arange(fabric.hosts + 1))

    apart = (pair_dst.astype(np.int64) - pair_src) % fabric.hosts
    paths = np.diff(first_way)[apart]
    way = ranges(first_way[apart], paths)
    length = (coin >= 0).sum(axis=1)
    # A hop is a cell of the table of ways; where it begins depends on the source alone.
    jump = np.where(coin >= 0, np.array(coins, np.int64)[coin], 0)
    offset = np.cumsum(jump, axis=1) - jump
    source = np.repeat(pair_src, paths)
    link_start = starts(length[way])
    link = np.empty(link_start[-1], np.int32)
    for first in range(0, len(way), BLOCK_PATHS):
        some = slice(first, first + BLOCK_PATHS)
        hops = length[way[some]]
        cell = ranges(way[some] * coin.shape[1], hops)
        at = (np.repeat(source[some], hops) + offset.ravel()[cell]) % fabric.hosts
        link[link_start[first] : link_start[first] + len(cell)] = link_of[at, coin.ravel()[cell]]
    return Routes(fabric, pair_src, pair_dst, starts(paths), share[way], link_start, link)


def common_jumps(fabric: Fabric) -> tuple[int, ...]:
    """Jumps that every host has exactly one link for, of opposites the shorter one: all of them on a circulant.

    Links between single pairs of hosts, such as cables of a matching beside rings, are left out.

    >>> from ropewalk.fabric import Circulant, Torus
    >>> common_jumps(Circulant(12, (1, 5)).build())
    (1, 5)
    >>> common_jumps(Torus((3, 4)).build())
    (4,)
    """
    if fabric.switches or fabric.links == 0:
        return ()
    jump = (fabric.link_dst.astype(np.int64) - fabric.link_src) % fabric.hosts
    found, count = np.unique(np.column_stack([jump, fabric.link_src]), axis=0, return_counts=True)
    once = np.bincount(found[count == 1, 0], minlength=fabric.hosts)
    known = np.flatnonzero(once == fabric.hosts).tolist()
    return tuple(jump for jump in known if 2 * jump <= fabric.hosts or fabric.hosts - jump not in known)


def coins_on(fabric: Fabric, jumps: Sequence[int]) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """The coins, and the link by which each host pays each of them; opposites that not all hosts have are left out.

    Jumps come first and then their opposites, so that the circle of coins is its own mirror image half a turn on.
    """
    hosts = fabric.hosts
    if fabric.switches:
        raise RouteError(f"{fabric.name} has switches: coin-change routing needs directly connected hosts")
    apart = (fabric.link_dst.astype(np.int64) - fabric.link_src) % hosts
    coins, columns = [], []
    wanted = list(dict.fromkeys(int(jump) % hosts for jump in jumps))
    for number, coin in enumerate(dict.fromkeys([*wanted, *(-coin % hosts for coin in wanted)])):
        links = np.flatnonzero(apart == coin)
        if coin == 0 or not np.array_equal(np.sort(fabric.link_src[links]), np.arange(hosts)):
            if number >= len(wanted):
                continue
            raise RouteError(
                f"{fabric.name} does not have one link from every host to the one {coin} ahead: name strides that all "
                "hosts have, and merge parallel links"
            )
        column = np.empty(hosts, np.int64)
        column[fabric.link_src[links]] = links
        coins.append(coin)
        columns.append(column)
    if not coins:
        raise RouteError(f"coin-change routing on {fabric.name} without strides: name at least one")
    return tuple(coins), np.column_stack(columns)
