"""How bytes cross the fabric: a router turns pairs of hosts into `Routes`.

>>> import numpy as np
>>> from ropewalk.fabric import FatTree
>>> fabric = FatTree(4).build()
>>> routes = ROUTERS[default_router_name(fabric)](0)(fabric, np.array([0, 0]), np.array([1, 15]))
>>> routes.check()
>>> routes.hops
array([2, 6])
"""

from __future__ import annotations

from collections.abc import Callable

from ropewalk.routing.balance import balanced
from ropewalk.routing.coin_change import CoinChange, coin_change
from ropewalk.routing.coin_routes import circulant_jumps, coin_change_routes
from ropewalk.routing.dimension import dimension, dimension_rotated
from ropewalk.routing.ecmp import ecmp, murmur
from ropewalk.routing.fit import default_router_name, fitting_router_names
from ropewalk.routing.k_shortest import k_shortest
from ropewalk.routing.routes import Router, Routes, make_routes, single_paths, unique_pairs
from ropewalk.routing.servers import between_servers
from ropewalk.routing.shortest import shortest
from ropewalk.routing.source import source, source_routes
from ropewalk.routing.tree import dmodk, spray

ROUTERS: dict[str, Callable[[int], Router]] = {
    "shortest": lambda seed: between_servers(shortest),
    "ecmp": lambda seed: between_servers(ecmp(seed)),
    "ecmp-polarised": lambda seed: between_servers(ecmp(seed, polarised=True)),
    "murmur": lambda seed: between_servers(murmur(dport=100 + seed)),
    "dmodk": lambda seed: between_servers(dmodk),
    "spray": lambda seed: between_servers(spray),
    "dimension": lambda seed: between_servers(dimension()),
    "dimension-rotated": lambda seed: between_servers(dimension_rotated()),
}
"""Every router by the name people type: name -> (seed -> router). A router without randomness ignores the seed.
On a `Cluster` each of them routes the network between the servers."""

__all__ = [
    "ROUTERS",
    "CoinChange",
    "Router",
    "Routes",
    "balanced",
    "between_servers",
    "circulant_jumps",
    "coin_change",
    "coin_change_routes",
    "default_router_name",
    "dimension",
    "dimension_rotated",
    "dmodk",
    "ecmp",
    "fitting_router_names",
    "k_shortest",
    "make_routes",
    "murmur",
    "shortest",
    "single_paths",
    "source",
    "source_routes",
    "spray",
    "unique_pairs",
]
