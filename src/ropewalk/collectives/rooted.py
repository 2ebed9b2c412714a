"""Broadcast and reduce: one root has, or gets, everything, along a binomial tree; `over_servers.py` has chains."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.lanes import Rounds, mirrored
from ropewalk.collectives.program import Program, Round, arrows, everyone, only
from ropewalk.collectives.scatter_gather import at_least_two
from ropewalk.errors import ProgramError


def binomial_reduce(ranks: int, root: int = 0) -> Program:
    """Reduce in ceil(log2 N) rounds: in round t, half of the ranks still in play send to the rank 2^t before them."""
    rounds = tuple(_binomial(ranks, root))
    return Program("binomial reduce", ranks, 1, rounds, everyone(ranks), only(ranks, root))


def binomial_broadcast(ranks: int, root: int = 0) -> Program:
    """Broadcast in ceil(log2 N) rounds, farthest first: the mirror image of the reduce.

    >>> binomial_broadcast(5).sent_chunks().tolist()
    [3, 0, 1, 0, 0]
    """
    rounds = tuple(mirrored(_binomial(ranks, root)))
    return Program("binomial broadcast", ranks, 1, rounds, only(ranks, root), everyone(ranks))


def _binomial(ranks: int, root: int) -> Rounds:
    """The reduce tree; ranks count from the root on."""
    check_root(ranks, root)
    rounds = []
    for bit in range((ranks - 1).bit_length()):
        sender = np.arange(1 << bit, ranks, 2 << bit)
        pattern = arrows((sender + root) % ranks, (sender - (1 << bit) + root) % ranks, 1, reduces=True)
        rounds.append(Round(pattern, partial(_the_buffer, len(sender))))
    return rounds


def check_root(ranks: int, root: int) -> None:
    """Refuse a root that is no rank."""
    at_least_two(ranks, "a broadcast or reduce")
    if not 0 <= root < ranks:
        raise ProgramError(f"root {root} is not one of {ranks} ranks: give 0…{ranks - 1}")


def _the_buffer(sends: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.arange(sends + 1), np.zeros(sends, np.int64)
