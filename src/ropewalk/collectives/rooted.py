"""Broadcast and reduce: one root has, or gets, everything; along a binomial tree or a pipelined chain."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.lanes import Rounds, mirrored
from ropewalk.collectives.program import Program, Round, arrows, everyone, only
from ropewalk.collectives.scatter_gather import at_least_two
from ropewalk.collectives.segments import pipelined
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


def chain_reduce(ranks: int, segments: int, root: int = 0) -> Program:
    """Reduce along a chain that ends at the root, in N - 2 + S rounds of 1/S of the buffer."""
    line = _chain(ranks, root)[::-1]
    rounds = pipelined(line[:-1], line[1:], np.arange(ranks - 1), np.ones(ranks - 1, bool), segments)
    return Program("chain reduce", ranks, segments, tuple(rounds), everyone(ranks), only(ranks, root))


def chain_broadcast(ranks: int, segments: int, root: int = 0) -> Program:
    """Broadcast along a chain from the root, in N - 2 + S rounds of 1/S of the buffer.

    >>> len(chain_broadcast(4, segments=8).rounds)
    10
    """
    line = _chain(ranks, root)
    rounds = pipelined(line[:-1], line[1:], np.arange(ranks - 1), np.zeros(ranks - 1, bool), segments)
    return Program("chain broadcast", ranks, segments, tuple(rounds), only(ranks, root), everyone(ranks))


def _binomial(ranks: int, root: int) -> Rounds:
    """The reduce tree; ranks count from the root on."""
    _check_root(ranks, root)
    rounds = []
    for bit in range((ranks - 1).bit_length()):
        sender = np.arange(1 << bit, ranks, 2 << bit)
        pattern = arrows((sender + root) % ranks, (sender - (1 << bit) + root) % ranks, 1, reduces=True)
        rounds.append(Round(pattern, partial(_the_buffer, len(sender))))
    return rounds


def _chain(ranks: int, root: int) -> NDArray[np.int64]:
    _check_root(ranks, root)
    return (np.arange(ranks) + root) % ranks


def _check_root(ranks: int, root: int) -> None:
    at_least_two(ranks, "a broadcast or reduce")
    if not 0 <= root < ranks:
        raise ProgramError(f"root {root} is not one of {ranks} ranks: give 0…{ranks - 1}")


def _the_buffer(sends: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.arange(sends + 1), np.zeros(sends, np.int64)
