"""Collectives as the network sees them: which ranks send to which in every round, and how much.

Rounds with the same senders and receivers are one `Pattern` that repeats. A long all-to-all is represented by some of
its rounds, evenly spread, each standing for its neighbours: 31 of 32 rounds look like the one before them to everybody
else on the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError

Ranks = NDArray[np.int64]
MOST_PATTERNS = 32
"""Rounds of an all-to-all that are looked at; up to this many all of them are."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Rounds in which the members `src` of a group send to the members `dst`, all the same number of bytes."""

    src: Ranks
    dst: Ranks
    share: float
    """Bytes of one flow in one round, as a part of the size of the exchange."""
    repeat: float
    """Rounds like this."""


Rounds = Callable[[int, int], Iterator[Pattern]]
"""(members of a group, members in each server or 1 where servers differ) -> patterns in the order of their rounds."""


def _ring(size: int, inside: int, rounds: int) -> Iterator[Pattern]:
    rank = np.arange(size)
    yield Pattern(rank, (rank + 1) % size, 1 / size, rounds)


def ring(size: int, inside: int) -> Iterator[Pattern]:
    """All-reduce along one ring of all members, in their order."""
    yield from _ring(size, inside, 2 * (size - 1))


def half_ring(size: int, inside: int) -> Iterator[Pattern]:
    """Reduce-scatter or all-gather along one ring."""
    yield from _ring(size, inside, size - 1)


def ring_both_ways(size: int, inside: int) -> Iterator[Pattern]:
    """All-reduce with one half of the vector each way round: a NIC sends two flows at a time."""
    rank = np.arange(size)
    both = np.concatenate([rank, rank])
    yield Pattern(both, np.concatenate([(rank + 1) % size, (rank - 1) % size]), 1 / (2 * size), 2 * (size - 1))


def hierarchical_ring(size: int, inside: int) -> Iterator[Pattern]:
    """Rings inside servers, then for every place in a server a ring from server to server, then inside again.

    Where servers hold different numbers of members there is no ring for every place, and one ring takes all.
    """
    servers = size // inside
    if inside == 1 or servers == 1:
        yield from ring(size, inside)
        return
    rank = np.arange(size)
    near = rank // inside * inside + (rank + 1) % inside
    yield Pattern(rank, near, 1 / inside, 2 * (inside - 1))
    yield Pattern(rank, (rank + inside) % size, 1 / size, 2 * (servers - 1))


def halving_doubling(size: int, inside: int) -> Iterator[Pattern]:
    """All-reduce by recursive halving and doubling, nearest partners first, where most bytes move.

    Beyond the largest power of two, members fold onto their neighbours before and unfold after.
    """
    power = 1 << (size.bit_length() - 1)
    extra = size - power
    if extra:
        folded = 2 * np.arange(extra) + 1
        yield Pattern(folded, folded - 1, 1.0, 1)
    active = np.concatenate([2 * np.arange(extra), np.arange(2 * extra, size)])
    place = np.arange(power)
    for bit in range(power.bit_length() - 1):
        yield Pattern(active, active[place ^ (1 << bit)], 0.5 ** (bit + 1), 2)
    if extra:
        yield Pattern(folded - 1, folded, 1.0, 1)


def _kept(rounds: int) -> tuple[list[int], float]:
    """Some of the rounds 1 … n, evenly spread, and how many each stands for."""
    kept = min(rounds, MOST_PATTERNS)
    return [1 + (2 * number + 1) * rounds // (2 * kept) for number in range(kept)], rounds / max(kept, 1)


def shift_all_to_all(size: int, inside: int) -> Iterator[Pattern]:
    """All-to-all in which everybody sends to the rank k further on, for k = 1 … n - 1."""
    rank = np.arange(size)
    shifts, each = _kept(size - 1)
    for shift in shifts:
        yield Pattern(rank, (rank + shift) % size, 1 / size, each)


def xor_all_to_all(size: int, inside: int) -> Iterator[Pattern]:
    """All-to-all in which partners swap, for powers of two; other sizes shift."""
    if size & (size - 1):
        yield from shift_all_to_all(size, inside)
        return
    rank = np.arange(size)
    masks, each = _kept(size - 1)
    for mask in masks:
        yield Pattern(rank, rank ^ mask, 1 / size, each)


def pipeline(size: int, inside: int) -> Iterator[Pattern]:
    """Activations to the next stage while gradients go to the one before: a group holds one rank of every stage."""
    stage = np.arange(size - 1)
    yield Pattern(np.concatenate([stage, stage + 1]), np.concatenate([stage + 1, stage]), 1.0, 1)


def ends(size: int, inside: int) -> Iterator[Pattern]:
    """All-reduce between the first and the last member of a group: stages that hold the same embedding."""
    yield Pattern(np.array([0, size - 1]), np.array([size - 1, 0]), 0.5, 2)


COLLECTIVES: dict[str, Rounds] = {
    "ring": ring,
    "hierarchical-ring": hierarchical_ring,
    "halving-doubling": halving_doubling,
    "ring-both-ways": ring_both_ways,
    "reduce-scatter": half_ring,
    "all-gather": half_ring,
    "all-to-all": shift_all_to_all,
    "all-to-all-xor": xor_all_to_all,
    "pipeline": pipeline,
    "ends": ends,
}
"""By the name people type."""


def groups_of(gpus: int, group: int, stride: int) -> NDArray[np.int64]:
    """Ranks of every group, a row each: members are `stride` apart.

    >>> groups_of(8, 2, 4).tolist()
    [[0, 4], [1, 5], [2, 6], [3, 7]]
    """
    size = group or gpus // stride
    if size < 1 or gpus % (size * stride):
        raise ClusterError(
            f"groups of {size} ranks at a stride of {stride} do not fill {gpus} GPUs: give a size that is a multiple "
            f"of {size * stride}"
        )
    ranks = np.arange(gpus).reshape(-1, size, stride)
    return np.ascontiguousarray(ranks.transpose(0, 2, 1).reshape(-1, size))


def patterns_of(
    collective: str, gpus: int, group: int, stride: int, servers: NDArray[np.int64]
) -> Iterator[tuple[Ranks, Ranks, Pattern]]:
    """For every pattern the senders and receivers of all groups, as ranks of the job; `servers` is where ranks are."""
    if collective not in COLLECTIVES:
        raise ClusterError(f"there is no collective {collective!r}: choose one of {', '.join(COLLECTIVES)}")
    members = groups_of(gpus, group, stride)
    size = members.shape[1]
    if size < 2:
        return
    for pattern in COLLECTIVES[collective](size, _members_in_each_server(servers[members])):
        yield members[:, pattern.src].ravel(), members[:, pattern.dst].ravel(), pattern


def _members_in_each_server(servers: NDArray[np.int64]) -> int:
    """How many consecutive members of every group share a server, where that is the same everywhere; otherwise 1."""
    size = servers.shape[1]
    change = np.flatnonzero((np.diff(servers, axis=1) != 0).any(axis=0))
    inside = int(change[0]) + 1 if len(change) else size
    if size % inside:
        return 1
    blocks = servers.reshape(len(servers), -1, inside)
    same_inside = (blocks == blocks[:, :, :1]).all()
    apart = (np.diff(blocks[:, :, 0], axis=1) != 0).all()
    return inside if same_inside and apart else 1
