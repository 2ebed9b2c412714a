"""A reduce-scatter and the all-gather that undoes it: the two halves of every bandwidth-optimal all-reduce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ropewalk.collectives.lanes import Rounds, side_by_side
from ropewalk.collectives.program import Condition, Program, everyone, owner
from ropewalk.errors import ProgramError


@dataclass(frozen=True, eq=False)
class ScatterGather:
    """The rounds of a reduce-scatter after which rank c mod N owns chunk c, and those of its all-gather."""

    ranks: int
    chunks: int
    scatter: Rounds
    gather: Rounds

    def reduce_scatter(self, name: str) -> Program:
        """Every rank ends with the sum of its own chunks."""
        return Program(name, self.ranks, self.chunks, tuple(self.scatter), everyone(self.ranks), self._owner())

    def all_gather(self, name: str) -> Program:
        """Every rank begins with its own chunks and ends with all of them."""
        return Program(name, self.ranks, self.chunks, tuple(self.gather), self._owner(), everyone(self.ranks))

    def all_reduce(self, name: str) -> Program:
        """Every rank ends with the sum of all chunks."""
        all_ranks = everyone(self.ranks)
        return Program(name, self.ranks, self.chunks, (*self.scatter, *self.gather), all_ranks, all_ranks)

    def _owner(self) -> Condition:
        return owner(self.ranks, lambda chunk: chunk % self.ranks)


def in_parallel(parts: Sequence[ScatterGather]) -> ScatterGather:
    """Run several at the same time, each in its own lane and on an equal part of the buffer."""
    ranks, chunks = parts[0].ranks, parts[0].chunks
    return ScatterGather(
        ranks,
        chunks * len(parts),
        side_by_side([part.scatter for part in parts], chunks),
        side_by_side([part.gather for part in parts], chunks),
    )


def at_least_two(ranks: int, what: str) -> None:
    """Refuse a collective of one rank, which has nobody to talk to."""
    if ranks < 2:
        raise ProgramError(f"{what} over {ranks} rank{'s' * (ranks != 1)} moves nothing: give at least 2 ranks")
