"""All-to-all: every rank has another chunk for every other rank, as expert parallelism and transposes need it.

Chunk s*N + d belongs to source s and destination d; the buffer of a rank is its N chunks, one of which stays at home.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.every_pair import EveryPair
from ropewalk.collectives.lanes import Rounds
from ropewalk.collectives.program import Program, Round, arrows, owner, refuse_too_many_arrows
from ropewalk.collectives.scatter_gather import at_least_two
from ropewalk.errors import ProgramError


def shift_all_to_all(ranks: int) -> Program:
    """N-1 rounds; in round s everybody sends to the rank s places further on, so nobody receives twice at a time.

    >>> len(shift_all_to_all(6).rounds)
    5
    """
    refuse_too_many_arrows("a shifted all-to-all", ranks * ranks)
    rank = np.arange(ranks)
    rounds = [_direct(ranks, rank, (rank + shift) % ranks) for shift in range(1, ranks)]
    return _all_to_all("shifted all-to-all", ranks, rounds)


def xor_all_to_all(ranks: int) -> Program:
    """N-1 rounds; in round x ranks swap with the rank whose number differs by xor x. Needs a power of two."""
    if ranks & (ranks - 1):
        near = 1 << (ranks.bit_length() - 1)
        raise ProgramError(
            f"an xor all-to-all pairs ranks, but {ranks} is not a power of two: "
            f"give {near} or {2 * near} ranks, or use the shifted one"
        )
    refuse_too_many_arrows("an xor all-to-all", ranks * ranks)
    rank = np.arange(ranks)
    return _all_to_all("xor all-to-all", ranks, [_direct(ranks, rank, rank ^ x) for x in range(1, ranks)])


def direct_all_to_all(ranks: int) -> Program:
    """One round in which everybody sends everything at once and leaves the order to the network."""
    pattern = EveryPair(ranks, adds=False)
    return _all_to_all("direct all-to-all", ranks, [Round(pattern, pattern.chunk_of_pair)])


def hierarchical_all_to_all(groups: int, group_size: int) -> Program:
    """Two rounds over groups of consecutive ranks: to the member with the right number, then to the right group.

    A message between groups carries the chunks of a whole group, so there are fewer and larger ones: N messages per
    rank become (group_size - 1) + (groups - 1), for almost twice the bytes.
    """
    ranks = groups * group_size
    if min(groups, group_size) < 2:
        raise ProgramError(
            f"{groups} groups of {group_size}: a hierarchical all-to-all needs 2 or more of each; use the shifted one"
        )
    grid = np.arange(ranks).reshape(groups, group_size)
    near = _pairs_in_rows(grid)
    far = _pairs_in_rows(grid.T)
    within = Round(arrows(*near, groups, reduces=False), partial(_for_all_groups, *near, ranks, group_size))
    across = Round(arrows(*far, group_size, reduces=False), partial(_from_whole_group, *far, ranks, group_size))
    return _all_to_all("hierarchical all-to-all", ranks, [within, across])


def _all_to_all(name: str, ranks: int, rounds: Rounds) -> Program:
    at_least_two(ranks, "an all-to-all")
    return Program(
        name,
        ranks,
        ranks * ranks,
        tuple(rounds),
        pre=owner(ranks, lambda chunk: chunk // ranks),
        post=owner(ranks, lambda chunk: chunk % ranks),
        own_chunks=ranks,
    )


def _direct(ranks: int, src: NDArray[np.int64], dst: NDArray[np.int64]) -> Round:
    return Round(arrows(src, dst, 1, reduces=False), partial(_own_chunk, src, dst, ranks))


def _own_chunk(
    src: NDArray[np.int64], dst: NDArray[np.int64], ranks: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.arange(len(src) + 1), src * ranks + dst


def _pairs_in_rows(grid: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every ordered pair of different ranks in the same row."""
    here, there = np.nonzero(~np.eye(grid.shape[1], dtype=bool))
    return grid[:, here].ravel(), grid[:, there].ravel()


def _for_all_groups(
    src: NDArray[np.int64], dst: NDArray[np.int64], ranks: int, group_size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What the sender has for the members of all groups that have the receiver's number."""
    destination = np.arange(0, ranks, group_size) + (dst % group_size)[:, None]
    ids = src[:, None] * ranks + destination
    return np.arange(len(src) + 1) * ids.shape[1], ids.ravel()


def _from_whole_group(
    src: NDArray[np.int64], dst: NDArray[np.int64], ranks: int, group_size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What all members of the sender's group have for the receiver."""
    source = (src // group_size * group_size)[:, None] + np.arange(group_size)
    ids = source * ranks + dst[:, None]
    return np.arange(len(src) + 1) * group_size, ids.ravel()
