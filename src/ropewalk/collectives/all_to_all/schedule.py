"""All-to-all schedules at the optimum of a fabric."""

from __future__ import annotations

import numpy as np

from ropewalk.collectives.all_to_all.decompose import best_paths
from ropewalk.collectives.all_to_all.paths import PairPaths
from ropewalk.collectives.all_to_all.pieces import in_pieces
from ropewalk.collectives.all_to_all.relayed import relayed_all_to_all
from ropewalk.collectives.all_to_all.routing import routes_of_pairs
from ropewalk.collectives.exchange import direct_all_to_all
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.schedule import Schedule

MOST_PIECES = 64
"""Pieces that what a pair sends may be cut into, so that members can pass it on by several ways."""

MANY_CHUNKS = 1 << 20
"""Chunks of a program beyond which pairs are cut into fewer pieces, at the cost of a part of the rate."""


def all_to_all_schedule(
    network: Network, *, store_and_forward: bool = False, segments: int = 1, relays_as_ranks: bool = False
) -> Schedule:
    """The all-to-all that loads the fabric least.

    Without `store_and_forward` all pairs send at once and the network carries their bytes through hosts and switches
    alike, on ways with the shares of the optimum. With it, members on the way receive and send on, in `segments` that
    follow each other; the more of them, the nearer it comes to its promise. Hosts outside the group do so as well
    where `relays_as_ranks` gives them ranks after those of the members.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import Torus
    >>> schedule = all_to_all_schedule(network_of(Torus((3, 3), bandwidth=1e9).build()))
    >>> schedule.promise, schedule.routes.pairs
    (Fraction(3000000000, 1), 72)
    """
    paths = best_paths(network)
    return (
        relayed_schedule(paths, segments, relays_as_ranks=relays_as_ranks)
        if store_and_forward
        else direct_schedule(paths)
    )


def direct_schedule(paths: PairPaths) -> Schedule:
    """All pairs send at once, and the network takes their bytes these ways."""
    hosts = paths.network.members
    routes = routes_of_pairs(paths.of_all_members())
    program = direct_all_to_all(len(hosts))
    return Schedule("balanced all-to-all", program, hosts.astype(np.int32), routes, paths.algbw)


def relayed_schedule(paths: PairPaths, segments: int = 1, *, relays_as_ranks: bool = False) -> Schedule:
    """Members on these ways receive and send on; the promise is what is reached in whole pieces."""
    pairs = len(paths.network.members) ** 2
    chosen = in_pieces(paths, max(1, min(MOST_PIECES, MANY_CHUNKS // (pairs * max(1, segments)))))
    program, hosts, routes = relayed_all_to_all(chosen.of_all_members(), segments, relays_as_ranks=relays_as_ranks)
    return Schedule("relayed all-to-all", program, hosts.astype(np.int32), routes, chosen.algbw)
