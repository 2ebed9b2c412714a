"""Orders of the ranks that keep the busiest link as free as possible when all ranks pass data on around rings.

One ring or several at once, one way or both ways; hops through switches may share links, and every hop is counted on
all links it crosses. Up to ten ranks the best single ring is found by branch and bound; several rings, and longer ones,
by a seeded search that starts from what is known: the order of the ranks, Hamiltonian cycles of tori, BCubes and
circulants, and rings that snake through the servers, one for each GPU of a server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.blocks import blocks_of
from ropewalk.collectives.latency.cost import host_limits_of
from ropewalk.collectives.on_fabric import fabric_cycles
from ropewalk.collectives.optimum.modelling import network_of
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.spread_routes import spread_routes
from ropewalk.ragged import ranges
from ropewalk.routing import Routes

EXACT_UP_TO = 10
"""Ranks up to which the best single ring is found for certain."""
MOST_RINGS = 4
"""Rings that are searched for at once; those that are known may be more."""
MOST_SNAKES = 16
"""Rings that snake through the blocks."""
MOST_MOVES = 20_000
"""Moves of one search."""
MOST_HOPS = 1_000_000
"""Hops that these may count again: a move changes a ring, so long rings get fewer moves."""


MOST_KEPT = 256
_SEARCHED: dict[tuple[object, ...], Ints] = {}
"""The last searches with what they found: groups that sit alike in a network ask the same, and a planner asks often."""


@dataclass(frozen=True, eq=False)
class Rings:
    """Orders in which rings visit the ranks, each with an equal part of the buffer."""

    orders: Ints
    """[ring, place]."""
    both_ways: bool
    rate: float
    """Bytes/s that pass every rank, all rings together."""

    @property
    def lanes(self) -> int:
        return len(self.orders) * (1 + self.both_ways)


def best_rings_of(network: Network, seed: int = 0) -> Rings:
    """The rings with the highest rate; among equals the fewest."""
    hops = _hops(network)
    best: Rings | None = None
    enough = hops.most_rate
    for candidate in _candidates(network, hops, seed):
        if best is None or candidate.rate > best.rate * (1 + 1e-9):
            best = candidate
        if best.rate >= enough * (1 - 1e-9):
            break
    assert best is not None
    return best


@dataclass(frozen=True, eq=False)
class _Hops:
    """What a hop between any two ranks puts on links, as `_ring_search` reads it."""

    ranks: int
    links: int
    start: Ints
    link: Ints
    busy: NDArray[np.float64]
    """How long a link is busy with one byte, as a multiple of the fastest link's."""
    unit: float
    """Bytes/s of the fastest link."""
    most_rate: float
    """Bytes/s that no rings exceed: what the slowest member can send or receive."""
    most_lanes: int
    """Links of a rank, each as narrow as the narrowest."""

    @cached_property
    def digest(self) -> bytes:
        """Stands for all that a search looks at."""
        found = sha256(repr((self.ranks, self.links, self.unit, self.most_rate)).encode())
        for column in (self.start, self.link, self.busy):
            found.update(column.tobytes())
        return found.digest()

    def rated(self, orders: Ints, both_ways: bool) -> Rings:
        from ropewalk.collectives._ring_search import peak_of

        peak = peak_of(orders, self.links, both_ways, self.start, self.link, self.busy)
        return Rings(orders, both_ways, self.rate(len(orders), both_ways, peak))

    def rate(self, count: int, both_ways: bool, peak: float) -> float:
        return count * (1 + both_ways) * self.unit / float(peak)


def _hops(network: Network) -> _Hops:
    fabric, members = network.fabric, network.members
    ranks = len(members)
    a, b = np.nonzero(~np.eye(ranks, dtype=bool))
    routes = spread_routes(fabric, members[a].astype(np.int32), members[b].astype(np.int32))
    pair, link, share = _usage_by_rank(routes, members, a, b)
    unit = float(fabric.bandwidth.max())
    busy = share * unit / fabric.bandwidth[link]
    sending, receiving = host_limits_of(network)
    links = fabric.links
    if sending is not None and receiving is not None:
        # The limit of a host is one link more that everything it sends, or receives, crosses.
        out, into = fabric.link_src[link], fabric.link_dst[link]
        busy = np.concatenate([busy, share * unit / sending[out], share * unit / receiving[into]])
        pair = np.tile(pair, 3)
        link = np.concatenate([link, links + out, links + fabric.nodes + into])
        links += 2 * fabric.nodes
    order = np.argsort(pair, kind="stable")
    start = np.searchsorted(pair[order], np.arange(ranks * ranks + 1))
    speeds = [float(network.bandwidth(capacity)) for capacity in network.capacity]
    leaving = np.bincount(network.tail, weights=speeds, minlength=network.vertices)[members]
    entering = np.bincount(network.head, weights=speeds, minlength=network.vertices)[members]
    return _Hops(
        ranks,
        links,
        start.astype(np.int64),
        link[order].astype(np.int64),
        busy[order],
        unit,
        float(min(leaving.min(), entering.min())),
        int(leaving.max() / min(speeds)),
    )


def _usage_by_rank(routes: Routes, members: Ints, a: Ints, b: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """(row of the pair of ranks, link, share) of all pairs."""
    start, link, share = routes.usage()
    row = routes.find(members[a], members[b])
    count = np.diff(start)[row]
    at = ranges(start[row], count)
    return np.repeat(a * len(members) + b, count), link[at].astype(np.int64), share[at]


def _candidates(network: Network, hops: _Hops, seed: int) -> Iterator[Rings]:
    natural = np.arange(hops.ranks)[None, :]
    yield hops.rated(natural, False)
    ways = (False, True) if network.mirror is not None and hops.ranks > 2 else (False,)
    seeds = [natural, *_known_cycles(network), *_snakes(network, seed)]
    for orders in seeds:
        for both in ways:
            yield hops.rated(orders, both)
    if hops.ranks <= 3:
        if hops.ranks == 3:
            yield hops.rated(np.array([[0, 2, 1]]), False)
        return
    for both in ways[::-1]:
        single = _best_single(hops, both, natural, seed)
        yield single
        # Both ways a ring takes two links of a rank, one way one; more rings than links only get into each other's way.
        for count in range(2, min(MOST_RINGS, hops.most_lanes // (1 + both)) + 1):
            yield _searched(hops, both, _started(single.orders, count, seed), seed)
    for orders in seeds[1:]:
        yield _searched(hops, ways[-1], orders, seed)


def _known_cycles(network: Network) -> Iterator[Ints]:
    if np.array_equal(network.members, np.arange(network.fabric.hosts)):
        cycles = fabric_cycles(network.fabric)
        if cycles:
            yield np.array(cycles, np.int64)


def _snakes(network: Network, seed: int) -> Iterator[Ints]:
    """Rings that visit one block after the other, on the rings that suit a block.

    They enter the first block at one place and leave it at the place before, enter the next one there and traverse it
    the other way: blocks change between members of the same place, on a rail where there are rails. There is a ring for
    every place to start from, as far as `MOST_SNAKES` allow, and one alone.
    """
    blocks = blocks_of(network)
    if blocks is None:
        return
    size = blocks.shape[1]
    one_block = network_of(network.fabric, group=network.members[blocks[0]].tolist())
    for inner in (np.arange(size)[None, :], best_rings_of(one_block, seed).orders):
        every = -(-len(inner) * size // MOST_SNAKES)
        orders = []
        for round_block in inner:
            for place in range(0, size, every):
                down = np.roll(round_block, -place)
                rows = (row[down if at % 2 == 0 else down[::-1]] for at, row in enumerate(blocks))
                orders.append(np.concatenate(list(rows)))
        yield np.array(orders, np.int64)
        yield np.array(orders[:1], np.int64)


def _best_single(hops: _Hops, both: bool, natural: Ints, seed: int) -> Rings:
    # Imported here because loading Numba takes longer than most commands run.
    from ropewalk.collectives._ring_search import exact_ring

    if hops.ranks > EXACT_UP_TO:
        return _searched(hops, both, natural, seed)
    order = natural[0].copy()
    start = hops.rated(natural, both)
    peak = start.lanes * hops.unit / start.rate
    exact_ring(hops.ranks, hops.links, both, hops.start, hops.link, hops.busy, order, peak)
    return hops.rated(order[None, :], both)


def _searched(hops: _Hops, both: bool, orders: Ints, seed: int) -> Rings:
    from ropewalk.collectives._ring_search import improve

    enough = len(orders) * (1 + both) * hops.unit / hops.most_rate
    moves = min(MOST_MOVES, MOST_HOPS // hops.ranks)
    asked = (hops.digest, both, orders.shape, orders.tobytes(), moves, seed, enough)
    found = _SEARCHED.pop(asked, None)
    if found is None:
        found = orders.copy()
        improve(found, hops.links, both, hops.start, hops.link, hops.busy, moves, seed + 1, enough)
    _SEARCHED[asked] = found
    if len(_SEARCHED) > MOST_KEPT:
        del _SEARCHED[next(iter(_SEARCHED))]
    return hops.rated(found.copy(), both)


def _started(first: Ints, count: int, seed: int) -> Ints:
    """The best single ring and shuffled ones to start from."""
    shuffle = np.random.default_rng(seed)
    ranks = first.shape[1]
    return np.array([first[0], *(shuffle.permutation(ranks) for _ in range(count - 1))], np.int64)
