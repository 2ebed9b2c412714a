"""Forwarding tables of servers that relay for each other: by the port a transfer comes in and by where it goes.

A relaying server sees an incoming port and a destination, and a rule sends on by one port. Paths that meet on a link
and go to the same server must therefore stay together from there on. Only the sender is free: it may spread a
destination over several of its ports.

Coin-change routes keep this by their order of coins (`routing.coin_orders`). Other routes are brought to it by
`consistent`: paths are laid shortest first, and one that would disagree with what is laid joins it where they meet.
Laid paths lead to their destination, so the joined one does too; if it came back to a server that way, it is dropped
and the other paths of its pair take its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import RouteError
from ropewalk.fabric import Fabric
from ropewalk.ragged import rows_of
from ropewalk.routing.routes import Routes, starts


@dataclass(frozen=True, eq=False)
class Forwarding:
    """What every server does with transfers, as columns; links stand for the ports at their ends."""

    fabric: Fabric
    source: NDArray[np.int32]
    """Departures: server `source` sends `share` of what it has for `target` out by link `departs_by`."""
    target: NDArray[np.int32]
    departs_by: NDArray[np.int32]
    share: NDArray[np.float64]
    arrives_by: NDArray[np.int32]
    """Relays, sorted by incoming link and destination: what comes in by link `arrives_by` for server `destination` goes
    on by link `goes_on_by`."""
    destination: NDArray[np.int32]
    goes_on_by: NDArray[np.int32]

    @property
    def relay(self) -> NDArray[np.int32]:
        """The server that has each of the relay rules."""
        return self.fabric.link_dst[self.arrives_by]

    @cached_property
    def _rule(self) -> dict[tuple[int, int], int]:
        keys = zip(self.arrives_by.tolist(), self.destination.tolist(), strict=True)
        return dict(zip(keys, self.goes_on_by.tolist(), strict=True))

    def follow(self, first_link: int, target: int) -> list[int]:
        """The servers that a transfer visits which leaves by a link, as the rules have it."""
        link = first_link
        visited = [int(self.fabric.link_src[link]), int(self.fabric.link_dst[link])]
        while visited[-1] != target:
            if (link, target) not in self._rule or len(visited) > self.fabric.nodes:
                names = self.fabric.node_names
                raise RouteError(
                    f"no path from {names[visited[0]]} to {names[target]} by link {first_link}: at "
                    f"{names[visited[-1]]} "
                    "the rules end or loop; make tables of consistent routes"
                )
            link = self._rule[link, target]
            visited.append(int(self.fabric.link_dst[link]))
        return visited

    def rows(self) -> Iterator[tuple[str, str, str, str, float]]:
        """The tables as people read them: (server, comes from, goes to, next server, share), departures from `-`."""
        names = self.fabric.node_names
        src, dst = self.fabric.link_src, self.fabric.link_dst
        columns = (self.source, self.target, dst[self.departs_by])
        for a, b, near, share in zip(*(column.tolist() for column in columns), self.share.tolist(), strict=True):
            yield names[a], "-", names[b], names[near], share
        rules = (self.relay, src[self.arrives_by], self.destination, dst[self.goes_on_by])
        for at, came, to, near in zip(*(column.tolist() for column in rules), strict=True):
            yield names[at], names[came], names[to], names[near], 1.0


def forwarding_of(routes: Routes) -> Forwarding:
    """The tables that carry out these routes; routes that no tables can carry out are refused.

    >>> from ropewalk.fabric import Ring
    >>> from ropewalk.routing import shortest
    >>> tables = forwarding_of(shortest(Ring(4).build(), np.array([0]), np.array([2])))
    >>> list(tables.rows())
    [('h0', '-', 'h2', 'h1', 1.0), ('h1', 'h0', 'h2', 'h2', 1.0)]
    """
    clash = disagreements(routes)
    pair = routes.pair_of_path
    first = routes.link[routes.link_start[:-1]]
    begun = np.sort(pair * np.int64(routes.fabric.links) + first)
    if len(clash) or (begun[1:] == begun[:-1]).any():
        raise RouteError(
            f"routes on {routes.fabric.name} leave a server by different ports although they arrived on the same "
            "port for the same destination: make them consistent first"
        )
    arrives_by, goes_on_by, destination = _relays(routes)
    _, at = np.unique(arrives_by.astype(np.int64) * routes.fabric.nodes + destination, return_index=True)
    return Forwarding(
        routes.fabric,
        routes.pair_src[pair],
        routes.pair_dst[pair],
        first,
        routes.share,
        arrives_by[at],
        destination[at],
        goes_on_by[at],
    )


def disagreements(routes: Routes) -> NDArray[np.int64]:
    """Paths that relay otherwise than an earlier path with the same incoming link and destination."""
    arrives_by, goes_on_by, destination = _relays(routes)
    key = arrives_by.astype(np.int64) * routes.fabric.nodes + destination
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    other = goes_on_by != goes_on_by[first][group]
    path = routes.path_of_hop[_inner_hops(routes)]
    return np.unique(path[other])


def consistent(routes: Routes) -> Routes:
    """Routes that forwarding tables can carry out, equal to the given ones wherever those agree with each other."""
    # Imported here because loading Numba takes longer than most commands run.
    from ropewalk.codesign._forwarding_kernel import agree

    fabric, pair = routes.fabric, routes.pair_of_path
    rank = np.arange(routes.paths) - routes.path_start[:-1][pair]
    order = np.lexsort((np.arange(routes.paths), routes.hops, rank, routes.pair_dst[pair]))
    length = np.zeros(routes.paths, np.int64)
    ends = (fabric.link_src, fabric.link_dst, fabric.nodes)
    laid = agree(order, routes.pair_dst[pair], routes.link_start, routes.link, *ends, length)
    begin = np.empty(routes.paths, np.int64)
    begin[order] = starts(length[order])[:-1]

    # Paths of a pair that leave by the same link are one path now: the tables decide everything behind it.
    kept = np.flatnonzero(length > 0)
    key = pair[kept] * np.int64(fabric.links) + laid[begin[kept]]
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    share = np.bincount(group, weights=routes.share[kept])
    by_place = np.argsort(first, kind="stable")
    path, share = kept[first[by_place]], share[by_place]
    count = np.bincount(pair[path], minlength=routes.pairs)
    if (count == 0).any():
        lost = int(np.argmin(count))
        a, b = (fabric.node_names[int(end[lost])] for end in (routes.pair_src, routes.pair_dst))
        raise RouteError(
            f"no path from {a} to {b} agrees with the tables of the others: begin with routes of fewest hops"
        )
    total = np.bincount(pair[path], weights=share, minlength=routes.pairs)
    return Routes(
        fabric,
        routes.pair_src,
        routes.pair_dst,
        starts(count),
        share / total[pair[path]],
        starts(length[path]),
        rows_of(laid, begin[path], length[path]),
    )


def _inner_hops(routes: Routes) -> NDArray[np.int64]:
    """Hops that another hop of the same path follows."""
    inner = np.ones(len(routes.link), bool)
    inner[routes.link_start[1:] - 1] = False
    return np.flatnonzero(inner)


def _relays(routes: Routes) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """For every relaying on every path: the link in, the link out, and the destination."""
    hop = _inner_hops(routes)
    destination = routes.pair_dst[routes.pair_of_path[routes.path_of_hop[hop]]]
    return routes.link[hop], routes.link[hop + 1], destination
