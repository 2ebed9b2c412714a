"""Routes of a design: coin change over its rings where that is as short as any path, k shortest paths elsewhere.

Rings together are a circulant. Cables laid beside them, for pairs or for short paths, bring some servers nearer to each
other: those pairs take the k shortest paths of the whole graph, all others keep to the rings. Both keep to what
forwarding tables of servers can do, and both share the bytes of a pair among its paths so that links have equally much
to do. Rings reserve nothing: relayed bytes share their cables, so their bytes are part of the balance. Neighbours use
the cable between them and nothing else.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.demands import Demands
from ropewalk.codesign.forwarding import consistent
from ropewalk.codesign.traffic import traffic_of
from ropewalk.fabric import Fabric
from ropewalk.fabric.wiring import Wiring
from ropewalk.ragged import ranges, rows_of
from ropewalk.routing.balance import balanced, with_shares
from ropewalk.routing.coin_change import coin_change
from ropewalk.routing.coin_routes import coin_change_routes, coins_on, common_jumps
from ropewalk.routing.k_shortest import k_shortest
from ropewalk.routing.routes import Router, Routes, pair_key, starts, unique_pairs

PATHS = 8
"""Paths that a pair is spread over at most, beyond circulants."""

MOST_PATHS = 4_000_000
"""Paths of all pairs together beyond circulants; where more pairs are routed at once, each has fewer."""

EXTRA_HOPS = 1
"""Hops that such a path may have beyond the fewest; balancing uses it only where it relieves a fuller link."""


def router_of(
    wiring: Wiring, demands: Demands | None = None, *, paths: int = PATHS, extra_hops: int = EXTRA_HOPS
) -> Router:
    """A router for the fabric of a wiring, with shares for these demands (None: every pair sends alike)."""

    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        traffic = None if demands is None else traffic_of(wiring, demands)
        weight = None if traffic is None else traffic.by_distance
        ends = unique_pairs(fabric, src, dst)
        jumps = common_jumps(fabric)
        on_rings = _as_short_on_rings(fabric, jumps, *ends)
        parts = []
        if on_rings.any():
            parts.append(coin_change_routes(fabric, jumps, *(end[on_rings] for end in ends), weight=weight))
        only_coins = len(parts) == 1 and bool(on_rings.all())
        if not only_coins:
            most = max(1, min(paths, MOST_PATHS // max(1, len(ends[0]))))
            shortest = k_shortest(most, extra_hops=extra_hops)(fabric, *(end[~on_rings] for end in ends))
            parts.append(_direct_where_joined(shortest))
        # Coins alone agree at every relay already, and where every pair sends alike they are balanced.
        routes = parts[0] if only_coins else consistent(_side_by_side(parts))
        if traffic is None:
            return routes if only_coins else balanced(routes, np.arange(routes.pairs), np.ones(routes.pairs))
        asked = np.isin(pair_key(fabric, traffic.source, traffic.destination), _keys(routes))
        rows = routes.find(traffic.source[asked], traffic.destination[asked])
        return balanced(routes, rows, traffic.size_bytes[asked])

    return route


def _as_short_on_rings(
    fabric: Fabric, jumps: tuple[int, ...], src: NDArray[np.int32], dst: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Which pairs have no path with fewer hops than those over jumps that all servers have."""
    if not jumps or math.gcd(fabric.hosts, *jumps) != 1:
        return np.zeros(len(src), bool)
    coins, _ = coins_on(fabric, jumps)
    if fabric.links == len(coins) * fabric.hosts:
        return np.ones(len(src), bool)
    on_rings = coin_change(fabric.hosts, coins).hops[(dst.astype(np.int64) - src) % fabric.hosts]
    # Imported here because loading Numba takes longer than most commands run.
    from ropewalk.codesign._hops_kernel import fewest_hops

    start, link = fabric.outgoing()
    return np.asarray(on_rings <= fewest_hops(start, fabric.link_dst[link])[src, dst])


def _side_by_side(parts: list[Routes]) -> Routes:
    """Routes of different pairs as one, pairs in order."""
    columns = [(one.pair_src, one.pair_dst, np.diff(one.path_start), one.share, one.hops, one.link) for one in parts]
    src, dst, paths, share, hops, link = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = np.argsort(pair_key(parts[0].fabric, src, dst), kind="stable")
    path = ranges(starts(paths)[:-1][order], paths[order])
    links = rows_of(link, starts(hops)[:-1][path], hops[path])
    return Routes(
        parts[0].fabric, src[order], dst[order], starts(paths[order]), share[path], starts(hops[path]), links
    )  # fmt: skip


def _direct_where_joined(routes: Routes) -> Routes:
    """Keep only the cables between neighbours for what neighbours send each other."""
    hops, pair = routes.hops, routes.pair_of_path
    joined = np.zeros(routes.pairs, bool)
    joined[pair[hops == 1]] = True
    return with_shares(routes, np.where(joined[pair] & (hops > 1), 0.0, routes.share))


def _keys(routes: Routes) -> NDArray[np.int64]:
    return pair_key(routes.fabric, routes.pair_src, routes.pair_dst)
