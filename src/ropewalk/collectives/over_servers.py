"""Collectives of GPUs that sit in servers: rings that leave every server through every one of its NICs.

The ranks stand server by server: `servers` says how many of them sit in each, so (8, 8) are ranks 0 … 7 in one server
and 8 … 15 in the next. One ring would cross from server to server at one GPU and leave the other NICs idle. As NCCL
does, there are therefore as many rings as a server has ranks, each crossing at another GPU and carrying an equal part
of the buffer; where a fabric has a rail for every GPU of a server, a ring crosses between GPUs of the same rail.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.collectives.lanes import Rounds, side_by_side
from ropewalk.collectives.program import Program, everyone, only
from ropewalk.collectives.ring import rings
from ropewalk.collectives.rooted import check_root
from ropewalk.collectives.scatter_gather import ScatterGather
from ropewalk.collectives.segments import pipelined
from ropewalk.errors import ProgramError

Servers = tuple[int, ...]
"""How many ranks sit in each server; ranks count through the servers."""

SEGMENTS = 16
"""Pieces in which a buffer follows itself along a chain: fine enough to keep every link of the chain busy."""


def server_rings(servers: Servers, along: Sequence[ArrayLike] | None = None) -> ScatterGather:
    """The two halves of a ring all-reduce over the rings of the servers."""
    return rings(ring_orders(servers, along))


def chain_broadcast(servers: Servers, segments: int = SEGMENTS, root: int = 0) -> Program:
    """Broadcast along the rings, each cut open at the root and carrying an equal part of the buffer.

    A chain of N ranks passes S segments on in N - 2 + S rounds.

    >>> chain_broadcast((2, 2)).lanes, len(chain_broadcast((4,), segments=8).rounds)
    (2, 10)
    """
    ranks, lines = sum(servers), [_from(root, order) for order in ring_orders(servers)]
    lanes = [_chain(line, segments, adds=False) for line in lines]
    rounds = tuple(side_by_side(lanes, segments))
    return Program(
        "chain broadcast over servers", ranks, segments * len(lanes), rounds, only(ranks, root), everyone(ranks)
    )


def chain_reduce(servers: Servers, segments: int = SEGMENTS, root: int = 0) -> Program:
    """Reduce along the rings: every chain ends at the root, where the broadcast begins."""
    ranks, lines = sum(servers), [_from(root, order)[::-1] for order in ring_orders(servers)]
    lanes = [_chain(line, segments, adds=True) for line in lines]
    rounds = tuple(side_by_side(lanes, segments))
    return Program(
        "chain reduce over servers", ranks, segments * len(lanes), rounds, everyone(ranks), only(ranks, root)
    )


def ring_orders(servers: Servers, along: Sequence[ArrayLike] | None = None) -> list[NDArray[np.int64]]:
    """The order in which each ring visits the ranks: the ranks of a server one after the other, server after server.

    Inside one server, and with one rank a server, that is one ring in the order of the ranks. With k ranks in each
    server there are k rings, and ring c leaves server i at rank c + turn(i) of that server, entering the next server
    at the rank of the same number. Turns of neighbouring servers differ, because a ring that enters a server at one
    rank leaves it at another.

    On a network whose cables make the rings, `along` gives the orders in which rings visit the servers, one ring each.

    >>> [order.tolist() for order in ring_orders((2, 2))]
    [[1, 0, 2, 3], [0, 1, 3, 2]]
    >>> [order.tolist() for order in ring_orders((2, 2, 2, 2), along=[(0, 3, 2, 1)])]
    [[1, 0, 6, 7, 5, 4, 2, 3]]
    """
    if min(servers, default=0) < 1:
        raise ProgramError(f"servers with {_listed(servers)} ranks: list only servers that hold a rank")
    first = np.cumsum(servers) - servers
    if len(servers) == 1 or (max(servers) == 1 and along is None):
        return [np.arange(sum(servers))]
    lines = [np.arange(len(servers))] * min(servers) if along is None else [np.asarray(line) for line in along]
    turns = _turns(len(servers))
    return [
        np.concatenate(
            [
                first[server] + _inside(servers[server], ring + turns[place - 1], ring + turns[place])
                for place, server in enumerate(line.tolist())
            ]
        )
        for ring, line in enumerate(lines)
    ]


def _turns(servers: int) -> list[int]:
    """0, 1, 0, 1, … and a 2 at the end of an odd number, so that neighbours around the ring differ."""
    turns = [server % 2 for server in range(servers)]
    if servers % 2:
        turns[-1] = 2
    return turns


@lru_cache(maxsize=1024)
def _inside(ranks: int, enters: int, leaves: int) -> NDArray[np.int64]:
    """All ranks of a server, from the one where the ring enters to the one where it leaves, counted around."""
    if ranks == 1:
        return np.zeros(1, np.int64)
    enters, leaves = enters % ranks, leaves % ranks
    if enters == leaves:
        # Two ranks a server and an odd number of servers, or servers of unequal size: one crossing changes rails.
        enters = (leaves + 1) % ranks
    around = (enters + np.arange(ranks)) % ranks
    return np.append(around[around != leaves], leaves)


def _from(root: int, order: NDArray[np.int64]) -> NDArray[np.int64]:
    check_root(len(order), root)
    return np.roll(order, -int(np.flatnonzero(order == root)[0]))


def _chain(line: NDArray[np.int64], segments: int, *, adds: bool) -> Rounds:
    hops = len(line) - 1
    return pipelined(line[:-1], line[1:], np.arange(hops), np.full(hops, adds), segments)


def _listed(servers: Sequence[int]) -> str:
    shown = ", ".join(map(str, servers[:8]))
    return shown + (", …" if len(servers) > 8 else "")
