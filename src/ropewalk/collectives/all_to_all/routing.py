"""Ways over arcs as routes over links, for whole pairs and for the legs between members that stand on the way.

Links between the same two nodes are one arc; a way that crosses it is split over them in proportion to their
bandwidths. Cutting points of one arc are laid over those of the next, so that a way over k arcs of two links each
becomes k + 1 routes at most, not 2^k.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from ropewalk.collectives.all_to_all.paths import PairPaths
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.rational import meant
from ropewalk.ragged import ranges
from ropewalk.routing.routes import Routes, make_routes

Legs = dict[tuple[int, int], dict[tuple[int, ...], int]]
"""For every pair of members how much takes which arcs."""


def routes_of_pairs(paths: PairPaths) -> Routes:
    """What every pair of members sends, on its ways from end to end."""
    if max(map(len, paths.network.links)) == 1:
        return _single_links(paths)
    legs: Legs = defaultdict(lambda: defaultdict(int))
    for source, destination, amount, arcs in each_path(paths):
        legs[source, destination][arcs] += amount
    return routes_of_legs(paths.network, legs)


def _single_links(paths: PairPaths) -> Routes:
    """The same by array operations where no two links join the same nodes: millions of ways in seconds."""
    fabric = paths.network.fabric
    key = paths.source * fabric.nodes + paths.destination
    order = np.argsort(key, kind="stable")
    pairs, pair_of_path = np.unique(key[order], return_inverse=True)
    arc = paths.arc[ranges(paths.arc_start[:-1][order], paths.hops[order])]
    link_of_arc = np.array([links[0] if links else -1 for links in paths.network.links], np.int32)
    link, path_of_hop = link_of_arc[arc], np.repeat(np.arange(paths.paths), paths.hops[order])
    crossed = link >= 0  # limits of hosts are arcs without links
    share = np.array([amount / paths.whole for amount in paths.amount])[order]
    source, destination = (pairs // fabric.nodes).astype(np.int32), (pairs % fabric.nodes).astype(np.int32)
    return make_routes(fabric, source, destination, pair_of_path, share, path_of_hop[crossed], link[crossed])


def each_path(paths: PairPaths) -> Iterable[tuple[int, int, int, tuple[int, ...]]]:
    """Source, destination, amount and arcs of every way."""
    arc, start = paths.arc.tolist(), paths.arc_start.tolist()
    columns = zip(paths.source.tolist(), paths.destination.tolist(), paths.amount, strict=True)
    for number, (source, destination, amount) in enumerate(columns):
        yield source, destination, amount, tuple(arc[start[number] : start[number + 1]])


def routes_of_legs(network: Network, legs: Legs) -> Routes:
    """Routes of all pairs in `legs`, shared out as the legs are."""
    spread = _Spread(network)
    pairs = sorted(legs)
    pair_of_path, shares, hops, link = [], [], [], []
    for number, pair in enumerate(pairs):
        total = sum(legs[pair].values())
        for arcs, amount in legs[pair].items():
            for share, way in spread.ways(arcs):
                pair_of_path.append(number)
                shares.append(float(share * Fraction(amount, total)))
                hops.append(len(way))
                link += way
    ends = np.array(pairs, np.int32)
    return make_routes(
        network.fabric,
        ends[:, 0].copy(),
        ends[:, 1].copy(),
        np.array(pair_of_path, np.int64),
        np.array(shares),
        np.repeat(np.arange(len(hops)), hops),
        np.array(link, np.int32),
    )


class _Spread:
    """How a way over arcs is spread over the links that the arcs are made of."""

    def __init__(self, network: Network) -> None:
        self._links = network.links
        # Where the part of every link but the last one of an arc ends, as parts of what crosses the arc.
        self._cuts = [_cutting_points(network, links) for links in network.links]

    def ways(self, arcs: tuple[int, ...]) -> list[tuple[Fraction, list[int]]]:
        """Parts of the way, each with its links; limits of hosts are arcs without links."""
        real = [arc for arc in arcs if self._links[arc]]
        points = sorted({cut for arc in real for cut in self._cuts[arc]})
        found = []
        begin = Fraction(0)
        for end in [*points, Fraction(1)]:
            way = [self._links[arc][sum(cut <= begin for cut in self._cuts[arc])] for arc in real]
            found.append((end - begin, way))
            begin = end
        return found


def _cutting_points(network: Network, links: tuple[int, ...]) -> list[Fraction]:
    if len(links) < 2:
        return []
    speeds = [meant(float(network.fabric.bandwidth[link])) for link in links]
    total = sum(speeds, Fraction(0))
    return [sum(speeds[: number + 1], Fraction(0)) / total for number in range(len(links) - 1)]
