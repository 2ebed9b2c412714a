"""Routes for collectives that were not made for the fabric: as good as a network gives without knowing them.

On trees packets are sprayed over all shortest ways; on grids dimension order rotates; everywhere else bytes spread over
the shortest ways, in proportion to what the narrowest link of each can carry.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.routing import ROUTERS, Routes, between_servers, k_shortest, router_for
from ropewalk.routing.balance import with_shares

MOST_WAYS = 32
"""Shortest ways that bytes of a pair spread over, where the fabric is not one whose ways are known by arithmetic."""


def spread_routes(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
    """Routes of all pairs of hosts among src -> dst.

    >>> from ropewalk.fabric import LeafSpine
    >>> spread_routes(LeafSpine(2, 4, 2).build(), np.array([0]), np.array([3])).share.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    names = ROUTERS.names_for(fabric)
    if "spray" in names:
        return ROUTERS["spray"].make(0)(fabric, src, dst)
    if "dimension" in names:
        return router_for(fabric).make(0)(fabric, src, dst)
    return _in_proportion(between_servers(k_shortest(MOST_WAYS, extra_hops=0))(fabric, src, dst))


def _in_proportion(routes: Routes) -> Routes:
    if routes.paths == routes.pairs:
        return routes
    narrowest = np.minimum.reduceat(routes.fabric.bandwidth[routes.link], routes.link_start[:-1])
    return with_shares(routes, narrowest / narrowest.max())
