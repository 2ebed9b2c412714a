"""Recursive halving and doubling (Rabenseifner): log2 N rounds of exchange with one partner each way.

Nearest first: in round t of the reduce-scatter a rank exchanges with rank xor 2^t, so the largest piece (half the
buffer, round 0) goes to the neighbour and the smallest one travels farthest; the all-gather runs in reverse. It is the
hierarchy whose peer sets are pairs.

For a number of ranks that is not a power of two, the extra ranks first hand their whole buffer to a neighbour (ranks
1, 3, 5, … to 0, 2, 4, …) and get the result back at the end: two more rounds of the whole buffer.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.hips import hierarchy
from ropewalk.collectives.lanes import Rounds, mirrored
from ropewalk.collectives.peers import mesh_inside
from ropewalk.collectives.program import Program, Round, arrows, everyone
from ropewalk.collectives.scatter_gather import ScatterGather, at_least_two
from ropewalk.errors import ProgramError


def halving_doubling_all_reduce(ranks: int) -> Program:
    """All-reduce of any number of ranks: 2 log2 N rounds for a power of two, two more otherwise.

    >>> len(halving_doubling_all_reduce(8).rounds), len(halving_doubling_all_reduce(9).rounds)
    (6, 8)
    """
    at_least_two(ranks, "halving-doubling")
    core = 1 << (ranks.bit_length() - 1)
    extra = ranks - core
    members = np.concatenate([np.arange(0, 2 * extra, 2), np.arange(2 * extra, ranks)])
    scatter, gather = _pairs(members)
    fold: Rounds = []
    if extra:
        odd = np.arange(1, 2 * extra, 2)
        fold = [Round(arrows(odd, odd - 1, core, reduces=True), partial(_whole_buffer, extra, core))]
    rounds = (*fold, *scatter, *gather, *mirrored(fold))
    return Program("halving-doubling all-reduce", ranks, core, rounds, everyone(ranks), everyone(ranks))


def halving_reduce_scatter(ranks: int) -> Program:
    """Reduce-scatter of a power of two of ranks, in log2 N rounds."""
    return halving_doubling(ranks).reduce_scatter("halving reduce-scatter")


def doubling_all_gather(ranks: int) -> Program:
    """All-gather of a power of two of ranks, in log2 N rounds."""
    return halving_doubling(ranks).all_gather("doubling all-gather")


def halving_doubling(ranks: int) -> ScatterGather:
    """The two halves for a power of two of ranks."""
    at_least_two(ranks, "halving-doubling")
    if ranks & (ranks - 1):
        near = 1 << (ranks.bit_length() - 1)
        raise ProgramError(
            f"halving and doubling pair ranks, but {ranks} is not a power of two: "
            f"give {near} or {2 * near} ranks, or use a ring"
        )
    return ScatterGather(ranks, ranks, *_pairs(np.arange(ranks)))


def _pairs(members: NDArray[np.int64]) -> tuple[Rounds, Rounds]:
    """Chunk j belongs to members[j]; bit t of the position in `members` is level t of the hierarchy."""
    bits = len(members).bit_length() - 1
    scatter, gather = hierarchy(np.arange(len(members)).reshape((2,) * bits).transpose(), mesh_inside)
    return _renamed(scatter, members), _renamed(gather, members)


def _renamed(rounds: Rounds, members: NDArray[np.int64]) -> Rounds:
    """The same rounds between members[i] and members[j] instead of i and j."""
    return [
        Round(
            arrows(
                members[step.pattern.src],
                members[step.pattern.dst],
                step.pattern.chunks,
                reduces=bool(step.pattern.reduces[0]),
            ),
            step.chunks,
        )
        for step in rounds
    ]


def _whole_buffer(sends: int, chunks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.arange(sends + 1) * chunks, np.tile(np.arange(chunks), sends)
