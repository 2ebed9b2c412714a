"""Halving and doubling for any number of ranks under leaf switches: extra ranks fold onto partners under their leaf."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.halving_doubling import halving_doubling, halving_doubling_all_reduce
from ropewalk.collectives.lanes import mirrored
from ropewalk.collectives.program import Program, Round, arrows, everyone
from ropewalk.errors import ProgramError


def folded_halving_doubling(leafs: Sequence[int]) -> Program:
    """Halving and doubling; extra ranks beyond a power of two hand their buffer to a partner under the same leaf.

    The two rounds of folding stay off the spines. The rounds between cannot collide where every leaf keeps the same
    power of two of ranks. Where leafs hold too few ranks for pairs, extra ranks fold onto their neighbours.
    """
    ranks = sum(leafs)
    if not foldable(leafs):
        return halving_doubling_all_reduce(ranks)
    folded, partner = folding(leafs)
    core = np.setdiff1d(np.arange(ranks), folded)
    inner = halving_doubling(len(core)).all_reduce("halving-doubling all-reduce")
    fold = []
    if len(folded):
        chunks = inner.chunks
        whole = (np.arange(len(folded) + 1) * chunks, np.tile(np.arange(chunks), len(folded)))
        fold = [Round(arrows(folded, partner, chunks, reduces=True), lambda: whole)]
    return Program(
        "halving-doubling all-reduce, folded under the leafs",
        ranks,
        inner.chunks,
        (*fold, *among(inner, core), *mirrored(fold)),
        everyone(ranks),
        everyone(ranks),
    )


def among(inner: Program, members: NDArray[np.int64]) -> list[Round]:
    """The rounds of a program between members[i] and members[j] instead of i and j."""
    renamed = {
        one: arrows(members[one.src], members[one.dst], one.chunks, reduces=bool(one.reduces[0]))
        for one in inner.patterns
    }
    return [Round(renamed[step.pattern], step.chunks) for step in inner.rounds]


def foldable(leaf_sizes: Sequence[int]) -> bool:
    """Are there enough pairs under the leafs to fold down to a power of two?

    >>> foldable([6, 6]), foldable([1, 1, 1])
    (True, False)
    """
    ranks = sum(leaf_sizes)
    return ranks - (1 << (ranks.bit_length() - 1)) <= sum(size // 2 for size in leaf_sizes)


def folding(leaf_sizes: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(extra ranks, partner of each) so that a power of two is left, spread over the leafs as evenly as possible.

    >>> folding([6, 6])
    (array([ 4,  5, 10, 11]), array([0, 1, 6, 7]))
    """
    ranks = sum(leaf_sizes)
    if ranks < 2:
        raise ProgramError(f"halving and doubling of {ranks} ranks exchanges nothing: give 2 ranks or more")
    extra = np.zeros(len(leaf_sizes), np.int64)
    size = np.array(leaf_sizes, np.int64)
    for _ in range(ranks - (1 << (ranks.bit_length() - 1))):
        kept = np.where(extra < size // 2, size - extra, -1)
        leaf = int(np.argmax(kept))
        if kept[leaf] < 0:
            raise ProgramError(
                f"leafs with {', '.join(map(str, leaf_sizes))} ranks cannot fold to a power of two in pairs: use "
                "a ring for this job"
            )
        extra[leaf] += 1
    first = np.cumsum(size) - size
    here = np.repeat(np.arange(len(size)), extra)
    place = np.arange(len(here)) - (np.cumsum(extra) - extra)[here]
    return first[here] + size[here] - extra[here] + place, first[here] + place
