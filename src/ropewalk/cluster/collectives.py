"""The collectives of a job by name, as programs over its ranks: what is proved free of contention, and what runs.

`rounds.py` rolls the same programs up for replays, so that what slows jobs down is what was proved.

Ranks are in the order of the allocation, leaf by leaf. Sizes of the leafs matter to one of them alone: halving and
doubling of a number that is no power of two folds the extra ranks onto partners under the same leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.collective.exchange import direct_all_to_all, shift_all_to_all, xor_all_to_all
from ropewalk.collective.halving_doubling import halving_doubling, halving_doubling_all_reduce
from ropewalk.collective.hips import Process, hips
from ropewalk.collective.lanes import mirrored
from ropewalk.collective.peers import ring_inside
from ropewalk.collective.program import Program, Round, arrows, everyone, only, owner
from ropewalk.collective.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from ropewalk.errors import ClusterError, ProgramError


@dataclass(frozen=True)
class Group:
    """Who takes part: ranks on each leaf in order, and how many consecutive ranks share a server."""

    leaf_sizes: tuple[int, ...]
    ranks_per_server: int = 1

    @property
    def ranks(self) -> int:
        return sum(self.leaf_sizes)


def ring(group: Group) -> Program:
    """One ring through all ranks in order."""
    return ring_all_reduce([np.arange(group.ranks)])


def ring_both_ways(group: Group) -> Program:
    """Two opposite rings with half of the buffer each: every NIC sends and receives twice at a time."""
    return ring_all_reduce([np.arange(group.ranks)], both_ways=True)


def hierarchical_ring(group: Group) -> Program:
    """A ring inside each server, and between the servers one ring for each place in a server."""
    servers, left = divmod(group.ranks, group.ranks_per_server)
    if left:
        raise ProgramError(
            f"{group.ranks} ranks are not whole servers of {group.ranks_per_server}: use a flat ring for such a job"
        )
    grid = np.arange(group.ranks).reshape(servers, group.ranks_per_server)
    return hips(grid, [Process((1, 0), ring_inside)]).all_reduce("hierarchical ring all-reduce")


def folded_halving_doubling(group: Group) -> Program:
    """Halving and doubling; extra ranks beyond a power of two hand their buffer to a partner under the same leaf.

    The two rounds of folding stay off the spines. The rounds between cannot collide where every leaf keeps the same
    power of two of ranks. Where leafs hold too few ranks for pairs, extra ranks fold onto their neighbours.
    """
    if not foldable(group.leaf_sizes):
        return halving_doubling_all_reduce(group.ranks)
    folded, partner = folding(group.leaf_sizes)
    core = np.setdiff1d(np.arange(group.ranks), folded)
    inner = halving_doubling(len(core)).all_reduce("halving-doubling all-reduce")
    fold = []
    if len(folded):
        chunks = inner.chunks
        whole = (np.arange(len(folded) + 1) * chunks, np.tile(np.arange(chunks), len(folded)))
        fold = [Round(arrows(folded, partner, chunks, reduces=True), lambda: whole)]
    return Program(
        "halving-doubling all-reduce, folded under the leafs",
        group.ranks,
        inner.chunks,
        (*fold, *_among(inner, core), *mirrored(fold)),
        everyone(group.ranks),
        everyone(group.ranks),
    )


def _among(inner: Program, members: NDArray[np.int64]) -> list[Round]:
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
                f"leafs with {', '.join(map(str, leaf_sizes))} ranks cannot fold down to a power of two in pairs: "
                "use a ring for such a job"
            )
        extra[leaf] += 1
    first = np.cumsum(size) - size
    here = np.repeat(np.arange(len(size)), extra)
    place = np.arange(len(here)) - (np.cumsum(extra) - extra)[here]
    return first[here] + size[here] - extra[here] + place, first[here] + place


def pipeline_sends(stage: int, *, both_ways: bool = False) -> Callable[[Group], Program]:
    """Every rank sends to the rank one stage further on, and with `both_ways` also to the one before, at once."""

    def program(group: Group) -> Program:
        ranks = group.ranks
        if not 0 < stage < ranks:
            raise ProgramError(f"a stage of {stage} of {ranks} ranks sends nowhere: give 1 to {ranks - 1} ranks")
        near = np.arange(ranks - stage)
        src = np.concatenate([near, near + stage]) if both_ways else near
        dst = np.concatenate([near + stage, near]) if both_ways else near + stage
        chunk = np.arange(len(src))
        return Program(
            f"pipeline sends over stages of {stage}",
            ranks,
            len(src),
            (Round(arrows(src, dst, 1, reduces=False), lambda: (np.arange(len(src) + 1), chunk)),),
            pre=owner(ranks, lambda ids: src[ids]),
            post=owner(ranks, lambda ids: dst[ids]),
            own_chunks=1,
        )

    return program


def ends(group: Group) -> Program:
    """All-reduce between the first and the last rank alone: pipeline stages that hold the same embedding."""
    both = np.array([0, group.ranks - 1])
    inner = ring_all_reduce([[0, 1]])
    held = only(group.ranks, both)
    return Program("all-reduce between the ends", group.ranks, inner.chunks, tuple(_among(inner, both)), held, held)


def swapping_all_to_all(group: Group) -> Program:
    """Partners swap, in the order of xor; numbers that are no power of two cannot be paired so, and shift."""
    return (xor_all_to_all if is_power_of_two(group.ranks) else shift_all_to_all)(group.ranks)


def is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


COLLECTIVES: dict[str, Callable[[Group], Program]] = {
    "ring": ring,
    "hierarchical-ring": hierarchical_ring,
    "halving-doubling": folded_halving_doubling,
    "ring-both-ways": ring_both_ways,
    "reduce-scatter": lambda group: ring_reduce_scatter([np.arange(group.ranks)]),
    "all-gather": lambda group: ring_all_gather([np.arange(group.ranks)]),
    "all-to-all": lambda group: shift_all_to_all(group.ranks),
    "all-to-all-xor": swapping_all_to_all,
    "all-to-all-at-once": lambda group: direct_all_to_all(group.ranks),
    "pipeline": pipeline_sends(1, both_ways=True),
    "ends": ends,
}
"""By the name people type. A pipeline here has one rank in each stage; `pipeline_sends` takes larger ones."""


def collective_named(name: str) -> Callable[[Group], Program]:
    if name not in COLLECTIVES:
        raise ClusterError(f"there is no collective {name!r}: choose one of {', '.join(COLLECTIVES)}")
    return COLLECTIVES[name]
