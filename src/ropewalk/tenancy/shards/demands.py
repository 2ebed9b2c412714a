"""What a job asks of the cables between its servers, exchange by exchange: sums over groups, and bytes of pairs.

GPUs of a server act as one towards the others: what they add up, they add up inside before it leaves, as TopoOpt's
servers do. Sums may take any ring; what has one receiver may not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.codesign.demands import Demands, GroupSum
from ropewalk.codesign.step_demands import ALONG_RINGS
from ropewalk.collectives.act import Act
from ropewalk.tenancy.collectives import collective_named
from ropewalk.tenancy.rounds import members_of, patterns_of
from ropewalk.tenancy.work import JobExchange


def demands_of(exchange: JobExchange, server_of_rank: Ints) -> Demands:
    """The demands of one exchange of a job whose rank r is in server `server_of_rank[r]` of its shard.

    >>> ranks = np.arange(8) // 4
    >>> demands_of(JobExchange("hierarchical-ring", 1e9), ranks).sums
    (GroupSum(servers=(0, 1), size_bytes=1000000000.0),)
    >>> demands_of(JobExchange("all-to-all", 8.0), ranks).pairs.tolist()
    [[0.0, 16.0], [16.0, 0.0]]
    """
    servers = int(server_of_rank.max()) + 1
    named = collective_named(exchange.collective)
    if named is None:
        return Demands(servers, (), _of_patterns(exchange, server_of_rank, servers))
    members = server_of_rank[members_of(exchange, len(server_of_rank))]
    if named[0] is Act.ALL_TO_ALL:
        return Demands(servers, (), _everybody(exchange.size_bytes, members, servers))
    return Demands(servers, _summed(exchange.size_bytes * ALONG_RINGS[named[0]] / 2, members), _none(servers))


def together(demands: list[Demands]) -> Demands:
    """All exchanges of an iteration: what cables are laid for."""
    sums: dict[tuple[int, ...], float] = {}
    for one in demands:
        for group in one.sums:
            sums[group.servers] = sums.get(group.servers, 0.0) + group.size_bytes
    pairs = np.sum([one.pairs for one in demands], axis=0)
    return Demands(demands[0].servers, tuple(GroupSum(servers, size) for servers, size in sums.items()), pairs)


def _none(servers: int) -> NDArray[np.float64]:
    return np.zeros((servers, servers))


def _summed(size_bytes: float, members: Ints) -> tuple[GroupSum, ...]:
    """Groups of ranks by the servers they are in; those that stay inside one ask nothing of cables."""
    sums: dict[tuple[int, ...], float] = {}
    for group in members.tolist():
        servers = tuple(dict.fromkeys(group))
        if len(servers) > 1:
            sums[servers] = sums.get(servers, 0.0) + size_bytes
    return tuple(GroupSum(servers, size) for servers, size in sums.items() if size)


def _everybody(size_bytes: float, members: Ints, servers: int) -> NDArray[np.float64]:
    """Every rank of a group sends as much to each: what one rank sends in all, its own part included, is the size."""
    pairs = _none(servers)
    for group in members:
        count = np.bincount(group, minlength=servers).astype(np.float64)
        pairs += np.outer(count, count) * (size_bytes / members.shape[1])
    np.fill_diagonal(pairs, 0.0)
    return pairs


def _of_patterns(exchange: JobExchange, server_of_rank: Ints, servers: int) -> NDArray[np.float64]:
    """Bytes between servers of everything that is sent in rounds."""
    pairs = _none(servers)
    for src, dst, pattern in patterns_of(exchange, len(server_of_rank), np.zeros_like(server_of_rank), server_of_rank):
        sent = exchange.size_bytes * pattern.share * pattern.repeat * pattern.weights(len(src))
        np.add.at(pairs, (server_of_rank[src], server_of_rank[dst]), sent)
    np.fill_diagonal(pairs, 0.0)
    return pairs
