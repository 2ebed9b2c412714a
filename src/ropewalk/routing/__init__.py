"""How bytes cross the fabric: a router turns pairs of hosts into `Routes`.

>>> import numpy as np
>>> from ropewalk.fabric import FatTree
>>> fabric = FatTree(4).build()
>>> routes = router_for(fabric).make(0)(fabric, np.array([0, 0]), np.array([1, 15]))
>>> routes.check()
>>> routes.hops
array([2, 6])
"""

from __future__ import annotations

from ropewalk.routing.balance import balanced
from ropewalk.routing.coin_change import CoinChange, coin_change
from ropewalk.routing.coin_routes import coin_change_routes, common_jumps
from ropewalk.routing.dimension import dimension, dimension_rotated
from ropewalk.routing.ecmp import ecmp, murmur
from ropewalk.routing.k_shortest import k_shortest
from ropewalk.routing.routes import Router, Routes, make_routes, single_paths, unique_pairs
from ropewalk.routing.servers import between_servers
from ropewalk.routing.shortest import shortest
from ropewalk.routing.source import source, source_routes
from ropewalk.routing.table import DEFAULT, ROUTERS, RouterChoice, default_router_name, router_for
from ropewalk.routing.tree import dmodk, spray

__all__ = [
    "DEFAULT",
    "ROUTERS",
    "CoinChange",
    "Router",
    "RouterChoice",
    "Routes",
    "balanced",
    "between_servers",
    "coin_change",
    "coin_change_routes",
    "common_jumps",
    "default_router_name",
    "dimension",
    "dimension_rotated",
    "dmodk",
    "ecmp",
    "k_shortest",
    "make_routes",
    "murmur",
    "router_for",
    "shortest",
    "single_paths",
    "source",
    "source_routes",
    "spray",
    "unique_pairs",
]
