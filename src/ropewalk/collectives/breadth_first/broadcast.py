"""Breadth-first broadcast: every shard reaches every rank by a shortest way, in as many rounds as the farthest need.

In round t a rank receives the shards that start t hops away, each in pieces from those neighbours that had it a round
before. How a shard is cut is chosen for each rank and round alone, so that the busiest link into the rank is busy for
as short as possible ("Efficient Direct-Connect Topologies for Collective Communications", NSDI 2025). On direct links
that is all there is to choose. Through switches, neighbours that enter a rank by the same link share what comes that
way evenly; what they leave by is not weighed against each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.collectives.breadth_first.neighbours import Neighbours, Way
from ropewalk.collectives.breadth_first.split import Parcels, divide, least_time
from ropewalk.collectives.optimum.rational import meant

MOST_PIECES = 120
"""Pieces of a shard; more than that only where nothing else is exact would make programs long for little."""
MOST_MOVES = 1 << 24
"""Pieces that all ranks together receive."""


@dataclass(frozen=True, eq=False)
class BroadcastRound:
    """The moves of one round: pieces first … first+count-1 of a shard, from rank to neighbouring rank."""

    src: Ints
    dst: Ints
    shard: Ints
    first: Ints
    count: Ints


@dataclass(frozen=True, eq=False)
class BroadcastRounds:
    """Rounds in which the shards of some ranks reach all others."""

    pieces: int
    """Pieces of a shard of weight 1."""
    steps: tuple[BroadcastRound, ...]


@dataclass(frozen=True)
class _Arrival:
    """What one rank receives in one round: shards of the same choice of doors are one parcel."""

    rank: int
    parcels: Parcels
    shards: tuple[tuple[int, ...], ...]
    """For each parcel the shards in it."""


def broadcast(graph: Neighbours, weight: Sequence[int]) -> BroadcastRounds:
    """Spread the shards of all ranks with a weight; ranks of weight 0 only receive."""
    doors = [_Doors(graph, rank, before) for rank, before in enumerate(graph.into())]
    sources = [rank for rank, size in enumerate(weight) if size]
    rounds = int(graph.hops[sources].max())
    arrivals = [[door.arrival(t, sources, weight) for door in doors] for t in range(1, rounds + 1)]
    known: dict[Parcels, Fraction] = {}
    times = [max(_least_time(known, arrival.parcels) for arrival in of_round) for of_round in arrivals]
    pieces = _pieces(arrivals, times, graph.ranks * sum(weight))
    steps = []
    for t, (of_round, time) in enumerate(zip(arrivals, times, strict=True), 1):
        steps.append(_step(graph, doors, weight, pieces, t, of_round, time))
    return BroadcastRounds(pieces, tuple(steps))


class _Doors:
    """The links by which data enters a rank from its neighbours, each with the neighbours behind it."""

    def __init__(self, graph: Neighbours, rank: int, before: list[int]) -> None:
        self.graph, self.rank = graph, rank
        behind: dict[tuple[tuple[int, Fraction], ...], list[int]] = {}
        for sender in before:
            behind.setdefault(_last_links(graph.ways[sender, rank], graph.network.backwards), []).append(sender)
        self.behind = list(behind.values())
        speed = graph.network.fabric.bandwidth
        unit = graph.network.unit
        self.width = tuple(
            min(meant(float(speed[link])) / unit / share for link, share in entrance) for entrance in behind
        )

    def arrival(self, t: int, sources: Sequence[int], weight: Sequence[int]) -> _Arrival:
        """The shards that arrive in round t and the doors that have them a round before."""
        hops = self.graph.hops
        held = [(hops[:, senders] == t - 1) for senders in self.behind]
        fits: dict[tuple[int, ...], list[int]] = {}
        for shard in sources:
            if hops[shard, self.rank] == t:
                fits.setdefault(tuple(door for door, has in enumerate(held) if has[shard].any()), []).append(shard)
        ordered = sorted(fits.items())
        size = tuple(sum(weight[shard] for shard in shards) for _, shards in ordered)
        parcels = Parcels(tuple(doors for doors, _ in ordered), size, self.width)
        return _Arrival(self.rank, parcels, tuple(tuple(shards) for _, shards in ordered))

    def senders(self, door: int, shard: int, t: int) -> list[int]:
        return [sender for sender in self.behind[door] if self.graph.hops[shard, sender] == t - 1]


def _last_links(ways: tuple[Way, ...], backwards: bool) -> tuple[tuple[int, Fraction], ...]:
    """The links by which ways enter their receiver, with the share of the bytes on each."""
    shares: dict[int, Fraction] = {}
    for links, share in ways:
        last = links[0] if backwards else links[-1]
        shares[last] = shares.get(last, Fraction(0)) + share
    return tuple(sorted(shares.items()))


def _least_time(known: dict[Parcels, Fraction], parcels: Parcels) -> Fraction:
    if not parcels.fits:
        return Fraction(0)
    if parcels not in known:
        known[parcels] = least_time(parcels)
    return known[parcels]


def _pieces(arrivals: list[list[_Arrival]], times: list[Fraction], received: int) -> int:
    """Pieces of a shard with which every door that matters has room for a whole number, unless that takes too many."""
    most = max(1, min(MOST_PIECES, MOST_MOVES // received))
    pieces = 1
    for of_round, time in zip(arrivals, times, strict=True):
        widths = {width for arrival in of_round if len(arrival.parcels.width) > 1 for width in arrival.parcels.width}
        for width in widths:
            pieces = math.lcm(pieces, (time * width).denominator)
            if pieces > most:
                return most
    return pieces


def _step(
    graph: Neighbours,
    doors: list[_Doors],
    weight: Sequence[int],
    pieces: int,
    t: int,
    arrivals: Iterable[_Arrival],
    time: Fraction,
) -> BroadcastRound:
    """Cut the shards of one round into whole pieces; where they do not fit in `time`, the time grows until they do."""
    moves: list[tuple[int, int, int, int, int]] = []
    sent = [0] * graph.ranks
    known: dict[Parcels, tuple[dict[int, int], ...]] = {}
    for arrival in arrivals:
        if not arrival.parcels.fits:
            continue
        if arrival.parcels not in known:
            amount, time = _whole_pieces(arrival.parcels, pieces, time)
            known[arrival.parcels] = amount
        for shards, amounts in zip(arrival.shards, known[arrival.parcels], strict=True):
            left = dict(sorted(amounts.items()))
            for shard in shards:
                first, rest = 0, weight[shard] * pieces
                while rest:
                    door, there = next(iter(left.items()))
                    taken = min(there, rest)
                    left[door] -= taken
                    if left[door] == 0:
                        del left[door]
                    senders = doors[arrival.rank].senders(door, shard, t)
                    for sender, count in _shared_out(senders, taken, sent, arrival.rank):
                        moves.append((sender, arrival.rank, shard, first, count))
                        first += count
                    rest -= taken
    return BroadcastRound(*np.array(moves, np.int64).reshape(-1, 5).T)


def _whole_pieces(parcels: Parcels, pieces: int, time: Fraction) -> tuple[tuple[dict[int, int], ...], Fraction]:
    while True:
        rooms = [time * width * pieces for width in parcels.width]
        division = divide(parcels, [math.floor(room) for room in rooms], pieces)
        if not division.stuck:
            return division.amount, time
        # The next moment at which one of the full doors has room for a piece more.
        full = {door for parcel in division.stuck for door in parcels.fits[parcel]}
        time = min((math.floor(rooms[door]) + 1) / (parcels.width[door] * pieces) for door in full)


def _shared_out(senders: list[int], count: int, sent: list[int], receiver: int) -> list[tuple[int, int]]:
    """Divide pieces among senders evenly; those that have sent less in this round get what is left over."""
    ranks = len(sent)
    each, over = divmod(count, len(senders))
    eager = sorted(senders, key=lambda sender: (sent[sender], (sender - receiver) % ranks))
    parts = [(sender, each + (place < over)) for place, sender in enumerate(eager)]
    for sender, part in parts:
        sent[sender] += part
    return [(sender, part) for sender, part in parts if part]
