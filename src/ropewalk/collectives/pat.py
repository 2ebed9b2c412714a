"""PAT, parallel aggregated trees: ⌈log2 N⌉ rounds as in Bruck's all-gather, but the farthest ranks come first.

Every block travels down a binomial tree from its rank, and all N trees run side by side: in a round everybody sends
what it has of all trees to the rank half as far on as in the round before. So one block goes the farthest and half of
all blocks go to the neighbour, where Bruck sends half of all blocks the farthest. Turned round, the trees add up: a
reduce-scatter. (Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", 2025; NCCL runs
it since 2.23. Where its buffers are too small for a round, NCCL sends the round in pieces: deliberately absent here.)
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.lanes import mirrored
from ropewalk.collectives.program import Program, Round, arrows
from ropewalk.collectives.scatter_gather import ScatterGather, at_least_two


def pat_all_gather(ranks: int) -> Program:
    """All-gather in ⌈log2 N⌉ rounds.

    >>> program = pat_all_gather(6)
    >>> [step.pattern.chunks[0].item() for step in program.rounds], program.sent_chunks().tolist()
    ([1, 1, 3], [5, 5, 5, 5, 5, 5])
    """
    return pat(ranks).all_gather("PAT all-gather")


def pat_reduce_scatter(ranks: int) -> Program:
    """Reduce-scatter in ⌈log2 N⌉ rounds."""
    return pat(ranks).reduce_scatter("PAT reduce-scatter")


def pat(ranks: int) -> ScatterGather:
    """The two halves; rank r owns chunk r."""
    at_least_two(ranks, "PAT")
    rank = np.arange(ranks)
    scatter = []
    for bit in range((ranks - 1).bit_length()):
        reach = 1 << bit
        # Trees whose root is an even number of reaches behind have come as far as here; some would pass their root.
        behind = np.arange(0, ranks - reach, 2 * reach)
        carried = partial(_from_behind, ranks, behind)
        scatter.append(Round(arrows((rank + reach) % ranks, rank, len(behind), reduces=True), carried))
    return ScatterGather(ranks, ranks, scatter, mirrored(scatter))


def _from_behind(ranks: int, behind: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For every rank the blocks of the ranks that are so far behind it."""
    ids = (np.arange(ranks)[:, None] - behind) % ranks
    return np.arange(ranks + 1) * len(behind), ids.ravel()
