"""Collectives as the network sees them: which ranks send to which in every round, and how much.

They are the programs of `collectives.py`, rolled up: rounds with the same senders and receivers are one
`RoundPattern` that repeats. A long all-to-all is represented by some of its rounds, evenly spread, each standing for
its neighbours: 31 of 32 rounds look like the one before them to everybody else on the network, and all of them would
fill gigabytes. What was made for a network (trees, searched rings) flows in all its lanes at once: it is one pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.group import Group
from ropewalk.collectives.program import Program
from ropewalk.errors import ClusterError
from ropewalk.tenancy.collectives import (
    collective_named,
    fitting,
    is_synthesised,
    job_group,
    program_of,
    synthesised_program,
)
from ropewalk.tenancy.work import JobExchange

MOST_PATTERNS = 32
"""Rounds of an all-to-all that are looked at; up to this many all of them are."""


@dataclass(frozen=True, eq=False)
class RoundPattern:
    """Rounds in which the members `src` of a group send to the members `dst`, all as much unless `weight` is given."""

    src: Ints
    dst: Ints
    share: float
    """Bytes of the largest flow in one round, as a part of the size of the exchange."""
    repeat: float
    """Rounds like this."""
    weight: NDArray[np.float64] | None = None
    """What each flow sends, as a part of the largest."""

    def weights(self, flows: int) -> NDArray[np.float64]:
        """The weight of every flow of so many, those of one group after the other."""
        return np.ones(flows) if self.weight is None else np.tile(self.weight, flows // len(self.weight))


def _shifted(rank: Ints, number: int) -> Ints:
    return (rank + number) % len(rank)


def _swapped(rank: Ints, number: int) -> Ints:
    return rank ^ number


RECEIVERS: dict[str, Callable[[Ints, int], Ints]] = {"shift": _shifted, "xor": _swapped}
"""To whom ranks send in round 1, 2, … of collectives with a pattern for every round."""


@lru_cache(maxsize=512)
def patterns(collective: str, group: Group) -> tuple[RoundPattern, ...]:
    """The rounds of a collective of one group, in the order in which they first appear.

    >>> [(one.share, one.repeat) for one in patterns("ring", job_group((8,)))]
    [(0.125, 14)]
    """
    if is_synthesised(collective):
        return (_flowing(synthesised_program(collective, group)),)
    named = fitting(collective, group)
    if named is not None and is_thinned_out(collective, group.ranks):
        return tuple(_some_rounds(group.ranks, RECEIVERS[named[1]]))
    return tuple(_rolled_up(program_of(collective, group)))


def is_thinned_out(collective: str, ranks: int) -> bool:
    """Do some rounds of the collective stand for all of them?"""
    named = collective_named(collective)
    return named is not None and named[1] in RECEIVERS and ranks - 1 > MOST_PATTERNS


def _rolled_up(program: Program) -> Iterator[RoundPattern]:
    """Sums and copies along the same arrows look the same to the network."""
    repeats = np.bincount(program.pattern_of_round, minlength=len(program.patterns)).tolist()
    found: dict[tuple[bytes, bytes, bytes], RoundPattern] = {}
    for one, repeat in zip(program.patterns, repeats, strict=True):
        order = np.lexsort((one.dst, one.src))
        src, dst, chunks = one.src[order].astype(np.int64), one.dst[order].astype(np.int64), one.chunks[order]
        same = src.tobytes(), dst.tobytes(), chunks.tobytes()
        before = found[same].repeat if same in found else 0
        most = int(chunks.max())
        weight = None if (chunks == most).all() else chunks / most
        found[same] = RoundPattern(src, dst, most / program.buffer_chunks, before + repeat, weight)
    yield from found.values()


def _flowing(program: Program) -> RoundPattern:
    """All rounds at once: what every rank sends to every other."""
    repeats = np.bincount(program.pattern_of_round, minlength=len(program.patterns))
    sent = np.zeros((program.ranks, program.ranks))
    for one, repeat in zip(program.patterns, repeats.tolist(), strict=True):
        np.add.at(sent, (one.src, one.dst), one.chunks * (repeat / program.buffer_chunks))
    src, dst = (ends.astype(np.int64) for ends in np.nonzero(sent))
    most = float(sent.max())
    return RoundPattern(src, dst, most, 1, sent[src, dst] / most)


def _some_rounds(size: int, receivers: Callable[[Ints, int], Ints]) -> Iterator[RoundPattern]:
    """Some of the rounds 1 … n - 1, evenly spread, each for its part of them."""
    rank, rounds = np.arange(size), size - 1
    for place in range(MOST_PATTERNS):
        number = 1 + (2 * place + 1) * rounds // (2 * MOST_PATTERNS)
        yield RoundPattern(rank, receivers(rank, number), 1 / size, rounds / MOST_PATTERNS)


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
    exchange: JobExchange, gpus: int, leafs: NDArray[np.int64], servers: NDArray[np.int64]
) -> Iterator[tuple[Ints, Ints, RoundPattern]]:
    """For every pattern the senders and receivers of all groups, as ranks of the job.

    `leafs` and `servers` are where the ranks are.
    """
    collective, members = exchange.collective, members_of(exchange, gpus)
    size = members.shape[1]
    if size < 2:
        collective_named(collective)
        return
    inside = _members_in_each_server(servers[members])
    # Where ranks are pairs all the way down, nothing depends on leafs, and one program serves every placement.
    sizes = (size,) if size & (size - 1) == 0 else _members_on_each_leaf(leafs[members])
    for pattern in patterns(collective, job_group(sizes, inside)):
        yield members[:, pattern.src].ravel(), members[:, pattern.dst].ravel(), pattern


def members_of(exchange: JobExchange, gpus: int) -> NDArray[np.int64]:
    """Ranks of every group of an exchange, a row each."""
    if not exchange.groups:
        return groups_of(gpus, exchange.group, exchange.stride)
    listed = np.array(exchange.groups, np.int64)
    if listed.min() < 0 or listed.max() >= gpus or len(np.unique(listed, axis=0)) != len(listed):
        raise ClusterError(f"groups of {exchange.collective} do not name ranks 0 to {gpus - 1}, each group once")
    return listed


def _members_on_each_leaf(leafs: NDArray[np.int64]) -> tuple[int, ...]:
    """How many consecutive members of every group share a leaf, where that is the same for all groups."""
    found = {tuple(len(list(run)) for _, run in groupby(row)) for row in leafs.tolist()}
    return found.pop() if len(found) == 1 else (leafs.shape[1],)


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
