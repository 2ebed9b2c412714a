"""Routes for collectives that were not made for the fabric: as good as a network gives without knowing them.

On trees packets are sprayed over all shortest ways; on grids dimension order rotates; everywhere else bytes spread over
the shortest ways, in proportion to what the narrowest link of each can carry.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.routing import ROUTERS, Routes, between_servers, default_router_name, fitting_router_names, k_shortest
from ropewalk.routing.balance import with_shares

MOST_WAYS = 32
"""Shortest ways that bytes of a pair spread over, where the fabric is not one whose ways are known by arithmetic."""


def spread_routes(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
    """Routes of all pairs of hosts among src -> dst.

    >>> from ropewalk.fabric import LeafSpine
    >>> spread_routes(LeafSpine(2, 4, 2).build(), np.array([0]), np.array([3])).share.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    names = fitting_router_names(fabric)
    if "spray" in names:
        return ROUTERS["spray"](0)(fabric, src, dst)
    if "dimension" in names:
        return ROUTERS[default_router_name(fabric)](0)(fabric, src, dst)
    return _in_proportion(between_servers(k_shortest(MOST_WAYS, extra_hops=0))(fabric, src, dst))


def _in_proportion(routes: Routes) -> Routes:
    if routes.paths == routes.pairs:
        return routes
    narrowest = np.minimum.reduceat(routes.fabric.bandwidth[routes.link], routes.link_start[:-1])
    return with_shares(routes, narrowest / narrowest.max())
