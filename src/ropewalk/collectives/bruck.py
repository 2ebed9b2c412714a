"""Bruck's all-gather and its mirror image: ⌈log2 N⌉ rounds for any number of ranks, each block sent once.

In round t everybody sends all it has, at most 2^t blocks, to the rank 2^t places before it; the last round sends only
what is still missing. Turned round, the same arrows add up: a reduce-scatter in as many rounds. (Bruck, Ho, Kipnis,
Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing systems", 1997.)
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.lanes import Rounds
from ropewalk.collectives.program import Program, Round, arrows
from ropewalk.collectives.scatter_gather import ScatterGather, at_least_two


def bruck_all_gather(ranks: int) -> Program:
    """All-gather in ⌈log2 N⌉ rounds.

    >>> program = bruck_all_gather(6)
    >>> len(program.rounds), program.sent_chunks().tolist()
    (3, [5, 5, 5, 5, 5, 5])
    """
    return bruck(ranks).all_gather("Bruck all-gather")


def bruck_reduce_scatter(ranks: int) -> Program:
    """Reduce-scatter in ⌈log2 N⌉ rounds."""
    return bruck(ranks).reduce_scatter("Bruck reduce-scatter")


def bruck_all_reduce(ranks: int) -> Program:
    """All-reduce in 2⌈log2 N⌉ rounds, with 2(N-1)/N of the buffer from every rank, for any number of ranks."""
    return bruck(ranks).all_reduce("Bruck all-reduce")


def bruck(ranks: int) -> ScatterGather:
    """The two halves; rank r owns chunk r."""
    at_least_two(ranks, "Bruck's all-gather")
    rank = np.arange(ranks)
    scatter: Rounds = []
    gather: Rounds = []
    for bit in range((ranks - 1).bit_length()):
        reach = 1 << bit
        # Before this round everybody has the blocks of the `reach` ranks from itself on; N of them are enough.
        blocks = min(reach, ranks - reach)
        before = (rank - reach) % ranks
        carried = partial(_from_here_on, ranks, blocks)
        gather.append(Round(arrows(rank, before, blocks, reduces=False), carried))
        scatter.insert(0, Round(arrows(before, rank, blocks, reduces=True), carried))
    return ScatterGather(ranks, ranks, scatter, gather)


def _from_here_on(ranks: int, blocks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For every rank the blocks of that many ranks from itself on."""
    ids = (np.arange(ranks)[:, None] + np.arange(blocks)) % ranks
    return np.arange(ranks + 1) * blocks, ids.ravel()
