"""An all-to-all that members pass on: each chunk goes from member to member along its way, a leg in every round.

Where GPUs forward and not switches (a torus of hosts, NVLink between GPUs), a chunk that crosses a member is received
there and sent on. Segments follow each other one round apart, so that a long buffer keeps all legs busy at once.

Chunk ((u*N + v)*pieces + piece)*segments + segment belongs to source u and destination v, so that the chunks of a rank
before are those for rank 0, rank 1, …, and after are those from rank 0, rank 1, …, each in order. N counts members;
hosts outside the group that pass chunks on may be ranks too, which then follow the members and keep nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.all_to_all.paths import PairPaths
from ropewalk.collectives.all_to_all.routing import Legs, each_path, routes_of_legs
from ropewalk.collectives.program import Pattern, Program, Round, arrows, owner
from ropewalk.errors import ProgramError
from ropewalk.routing.routes import Routes

MOST_CHUNKS = 1 << 24
"""Chunks of one program; beyond, every round that is looked at takes seconds."""


@dataclass(frozen=True, eq=False)
class _Moves:
    """Piece `piece[i]`, counted through all pairs, goes from rank `src[i]` to rank `dst[i]` as its leg `leg[i]`."""

    leg: Ints
    src: Ints
    dst: Ints
    piece: Ints

    def between(self, low: int, high: int) -> _Moves:
        """The moves of legs low … high, those with the same ends together."""
        chosen = np.flatnonzero((self.leg >= low) & (self.leg <= high))
        chosen = chosen[np.lexsort((self.piece[chosen], self.leg[chosen], self.dst[chosen], self.src[chosen]))]
        return _Moves(self.leg[chosen], self.src[chosen], self.dst[chosen], self.piece[chosen])


def relayed_all_to_all(
    paths: PairPaths, segments: int, *, relays_as_ranks: bool = False
) -> tuple[Program, Ints, Routes]:
    """The program over paths of all members with amounts in pieces, the hosts of its ranks, the routes of its legs."""
    members, pieces = len(paths.network.members), paths.whole
    of_pair = pieces * segments
    if segments < 1:
        raise ProgramError(f"a pipeline of {segments} segments carries nothing: give at least 1")
    if members * members * of_pair > MOST_CHUNKS:
        raise ProgramError(
            f"a relayed all-to-all of {members} ranks in {pieces} pieces and {segments} segments has "
            f"{members * members * of_pair:.3g} chunks, more than {MOST_CHUNKS}: use fewer segments or ranks"
        )
    hosts = np.concatenate([paths.network.members, _relays(paths) if relays_as_ranks else np.zeros(0, np.int64)])
    moves, legs = _moves(paths, hosts)
    depth = 1 + int(moves.leg.max())
    together = all(len(arcs) == 1 for ways in legs.values() for arcs in ways)
    busy: dict[tuple[int, int], tuple[_Moves, Pattern, Ints]] = {}
    rounds = []
    for t in range(depth + segments - 1):
        span = (max(0, t - segments + 1), min(t, depth - 1))
        if span not in busy:
            active = moves.between(*span)
            busy[span] = (active, *_sends(active, together))
        active, pattern, start = busy[span]
        rounds.append(Round(pattern, partial(_chunks, start, active, segments, t)))
    ranks = len(hosts)
    program = Program(
        "relayed all-to-all",
        ranks,
        members * members * of_pair,
        tuple(rounds),
        pre=owner(ranks, lambda chunk: chunk // (members * of_pair)),
        post=owner(ranks, lambda chunk: chunk // of_pair % members),
        own_chunks=members * of_pair,
    )
    return program, hosts, routes_of_legs(paths.network, legs)


def _relays(paths: PairPaths) -> Ints:
    """Hosts outside the group that ways lead through."""
    network = paths.network
    crossed = np.unique(network.head[paths.arc])
    return crossed[(crossed < network.fabric.hosts) & ~network.is_member[crossed]]


def _moves(paths: PairPaths, hosts: Ints) -> tuple[_Moves, Legs]:
    network, pieces = paths.network, paths.whole
    members = len(network.members)
    rank = {host: number for number, host in enumerate(hosts.tolist())}
    legs: Legs = defaultdict(lambda: defaultdict(int))
    given: dict[tuple[int, int], int] = defaultdict(int)
    head = network.head.tolist()
    columns: list[tuple[int, int, int, int, int]] = []
    for source, destination, amount, arcs in each_path(paths):
        first = (rank[source] * members + rank[destination]) * pieces + given[source, destination]
        given[source, destination] += amount
        here, begin = source, 0
        stops = [at + 1 for at, arc in enumerate(arcs) if head[arc] in rank]
        for number, end in enumerate(stops):
            there = head[arcs[end - 1]]
            legs[here, there][arcs[begin:end]] += amount
            columns.append((number, rank[here], rank[there], first, amount))
            here, begin = there, end
    table = np.array(columns, np.int64)
    repeated = np.repeat(table, table[:, 4], axis=0)
    offset = np.arange(len(repeated)) - np.repeat(np.cumsum(table[:, 4]) - table[:, 4], table[:, 4])
    return _Moves(repeated[:, 0], repeated[:, 1], repeated[:, 2], repeated[:, 3] + offset), legs


def _sends(active: _Moves, together: bool) -> tuple[Pattern, Ints]:
    """One send for all chunks with the same ends, or one for each chunk.

    Over dedicated links, sends may have any size. Where they share links behind a switch, a network that serves
    all sends alike gives every one what the optimum asks for only if all have the same size.
    """
    changes = (np.diff(active.src) != 0) | (np.diff(active.dst) != 0) | (not together)
    first = np.concatenate([[0], 1 + np.flatnonzero(changes)])
    start = np.append(first, len(active.src)).astype(np.int64)
    return arrows(active.src[first], active.dst[first], np.diff(start), reduces=False), start


def _chunks(start: Ints, active: _Moves, segments: int, t: int) -> tuple[Ints, NDArray[np.int64]]:
    return start, active.piece * segments + (t - active.leg)
