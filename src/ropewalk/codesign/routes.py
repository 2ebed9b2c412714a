"""Routes of a design: coin change where the wiring is a circulant, k shortest paths on the whole graph elsewhere.

Both keep to what forwarding tables of servers can do, and both share the bytes of a pair among its paths so that
links have equally much to do. Rings reserve nothing: relayed bytes share their cables, so their bytes are part of the
balance. Neighbours use the cable between them and nothing else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.demands import Demands
from ropewalk.codesign.forwarding import consistent
from ropewalk.codesign.traffic import traffic_of
from ropewalk.fabric import Fabric
from ropewalk.fabric.wiring import Wiring
from ropewalk.routing.balance import balanced, with_shares
from ropewalk.routing.coin_routes import circulant_jumps, coin_change_routes
from ropewalk.routing.k_shortest import k_shortest
from ropewalk.routing.routes import Router, Routes, pair_key

PATHS = 8
"""Paths that a pair is spread over at most, beyond circulants."""

EXTRA_HOPS = 1
"""Hops that such a path may have beyond the fewest; balancing uses it only where it relieves a fuller link."""


def routes_of(
    wiring: Wiring, demands: Demands, *, fabric: Fabric | None = None, paths: int = PATHS, extra_hops: int = EXTRA_HOPS
) -> Routes:
    """Routes for everything that the design sends in a step, on `wiring.fabric()` or on the fabric made of it before.

    >>> from ropewalk.fabric.wiring import GroupRings
    >>> ring = Wiring(4, 2, True, 1.0, 0.0, (GroupRings(4, (1,)),), ((0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 3, 1)), 2, 0)
    >>> routes = routes_of(ring, Demands(4, (), np.ones((4, 4)) - np.eye(4)))
    >>> routes.pairs, routes.paths
    (12, 16)
    """
    traffic = traffic_of(wiring, demands)
    fabric = wiring.fabric() if fabric is None else fabric
    router = router_of(wiring, demands, paths=paths, extra_hops=extra_hops)
    return router(fabric, traffic.source, traffic.destination)


def router_of(
    wiring: Wiring, demands: Demands | None = None, *, paths: int = PATHS, extra_hops: int = EXTRA_HOPS
) -> Router:
    """A router for the fabric of a wiring, with shares for these demands (None: every pair sends alike)."""

    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        traffic = None if demands is None else traffic_of(wiring, demands)
        jumps = circulant_jumps(fabric)
        if jumps is not None:
            weight = None if traffic is None else traffic.by_distance
            routes = coin_change_routes(fabric, jumps, src, dst, weight=weight)
        else:
            routes = consistent(_direct_where_joined(k_shortest(paths, extra_hops=extra_hops)(fabric, src, dst)))
        if traffic is None:
            # Coin change has balanced all pairs of a circulant already.
            alike = np.ones(routes.pairs)
            return routes if jumps is not None else balanced(routes, np.arange(routes.pairs), alike)
        asked = np.isin(pair_key(fabric, traffic.source, traffic.destination), _keys(routes))
        rows = routes.find(traffic.source[asked], traffic.destination[asked])
        return balanced(routes, rows, traffic.size_bytes[asked])

    return route


def _direct_where_joined(routes: Routes) -> Routes:
    """Keep only the cables between neighbours for what neighbours send each other."""
    hops, pair = routes.hops, routes.pair_of_path
    joined = np.zeros(routes.pairs, bool)
    joined[pair[hops == 1]] = True
    return with_shares(routes, np.where(joined[pair] & (hops > 1), 0.0, routes.share))


def _keys(routes: Routes) -> NDArray[np.int64]:
    return pair_key(routes.fabric, routes.pair_src, routes.pair_dst)
