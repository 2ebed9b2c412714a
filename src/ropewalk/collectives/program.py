"""A collective as a program: who sends which chunks to whom, round by round, with a proof of what it computes.

A *round* is a set of sends that all read the state before the round. A round is a `Pattern` (who sends how much to
whom: all that time depends on) plus the chunks each send carries (all that correctness depends on). Rounds that move
different chunks along the same arrows share one `Pattern` object, so the 2(N-1) rounds of a ring cost two patterns.

Sends belong to *lanes*. Lanes are independent of each other (a chunk stays in one lane); within its lane a rank takes
part in rounds in order: it sends in a round when everything that it sent and received in its earlier rounds of that
lane is done, and what arrives early waits until its receiver has reached the round. A rank therefore goes through the
same states however fast the others run, which is why a replay round by round proves every execution. A program does
not know time.

A fused program moves several tensors and says when each is complete on each rank (`Fused`).

The contract of every collective is one sentence: every rank that `post` names for a chunk ends with the sum of the
inputs of exactly the ranks that `pre` names for it, each once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.collectives.proof import prove
from ropewalk.errors import ProgramError

Chunks = Callable[[], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Which chunks each send of a round carries, as CSR (start, chunk ids); computed only when asked."""

Condition = Callable[[NDArray[np.int64]], NDArray[np.bool_]]
"""Which ranks hold (pre) or must hold (post) the given chunks: chunk ids -> bool[ranks, chunks]."""


MOST_ARROWS = 1 << 26
"""Sends of one round that may be written out as arrows; beyond it lie gigabytes."""


CLOSED_FORM = "the closed form alone (--level closed)"


def refuse_too_many_arrows(name: str, arrows: int, remedy: str = f"use fewer ranks, or {CLOSED_FORM}") -> None:
    """Programs in which everybody sends to everybody grow with the square of the ranks: say so before memory does."""
    if arrows > MOST_ARROWS:
        raise ProgramError(f"{name} has {arrows:.3g} sends at once, more than the {MOST_ARROWS} that fit: {remedy}")


@dataclass(frozen=True, eq=False)
class Pattern:
    """The arrows of a round: send i goes from rank `src[i]` to `dst[i]` and carries `chunks[i]` chunks."""

    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    chunks: NDArray[np.int64]
    reduces: NDArray[np.bool_]
    """True: the receiver adds what arrives to its own; False: it overwrites."""
    lane: NDArray[np.int32]

    @property
    def sends(self) -> int:
        return len(self.src)

    @property
    def lanes(self) -> int:
        """Lanes that the sends need."""
        return 1 + int(self.lane.max(initial=0))


@dataclass(frozen=True, eq=False)
class Round:
    pattern: Pattern
    chunks: Chunks


@dataclass(frozen=True, eq=False)
class Fused:
    """Which tensor every chunk of a fused buffer belongs to, and when each tensor is complete on each rank."""

    tensor: NDArray[np.int64]
    """By chunk."""
    complete_after: NDArray[np.int64]
    """Tensors x ranks: rounds of the rank after which nothing more is written into the tensor there."""


@dataclass(frozen=True, eq=False)
class Program:
    """A collective over `ranks` ranks whose data is cut into `chunks` equal chunks."""

    name: str
    ranks: int
    chunks: int
    rounds: tuple[Round, ...]
    pre: Condition
    post: Condition
    own_chunks: int = 0
    """Chunks in the buffer of one rank, where that is not all of them: N of the N² chunks of an all-to-all."""
    fused: Fused | None = None
    """The tensors that it moves, where it says when each of them is complete."""

    @property
    def buffer_chunks(self) -> int:
        """Chunks in the buffer of one rank: a collective of P bytes moves chunks of P / `buffer_chunks` bytes."""
        return self.own_chunks or self.chunks

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """The distinct patterns, in order of first use."""
        return tuple(dict.fromkeys(step.pattern for step in self.rounds))

    @cached_property
    def pattern_of_round(self) -> NDArray[np.int64]:
        number = {pattern: index for index, pattern in enumerate(self.patterns)}
        return np.array([number[step.pattern] for step in self.rounds], np.int64)

    @cached_property
    def lanes(self) -> int:
        return max((pattern.lanes for pattern in self.patterns), default=1)

    @cached_property
    def sends(self) -> int:
        return sum(step.pattern.sends for step in self.rounds)

    def sent_chunks(self) -> NDArray[np.int64]:
        """Chunks that each rank sends over the whole program."""
        return self._moved_chunks(lambda pattern: pattern.src)

    def received_chunks(self) -> NDArray[np.int64]:
        """Chunks that each rank receives over the whole program."""
        return self._moved_chunks(lambda pattern: pattern.dst)

    def added_chunks(self) -> NDArray[np.int64]:
        """Chunks that each rank adds to its own over the whole program."""
        return self._moved_chunks(lambda pattern: pattern.dst, adds=True)

    def _moved_chunks(self, end: Callable[[Pattern], NDArray[np.int32]], *, adds: bool = False) -> NDArray[np.int64]:
        repeats = np.bincount(self.pattern_of_round, minlength=len(self.patterns))
        total = np.zeros(self.ranks, np.int64)
        for pattern, repeat in zip(self.patterns, repeats, strict=True):
            np.add.at(total, end(pattern), pattern.chunks * repeat * (pattern.reduces if adds else 1))
        return total

    def check(self) -> None:
        """Replay the program and prove the contract, exactly; raises `ProofError` with the first counterexample.

        A program that says when its tensors are complete is held to it: not earlier and not later on any rank.
        """
        for pattern in self.patterns:
            refuse_too_many_arrows(f"to be proved, {self.name}", pattern.sends, "prove it for fewer ranks")
        prove(self)


def arrows(src: ArrayLike, dst: ArrayLike, chunks: ArrayLike, *, reduces: bool, lane: ArrayLike = 0) -> Pattern:
    """The pattern of sends src -> dst that all add (or all overwrite); `chunks` and `lane` broadcast."""
    ends = np.asarray(src, np.int32).ravel()
    count = len(ends)
    return Pattern(
        src=ends,
        dst=np.asarray(dst, np.int32).ravel(),
        chunks=np.array(np.broadcast_to(np.asarray(chunks, np.int64), count)),
        reduces=np.full(count, reduces, np.bool_),
        lane=np.array(np.broadcast_to(np.asarray(lane, np.int32), count)),
    )


def everyone(ranks: int) -> Condition:
    """Every rank, for every chunk."""
    return lambda chunk: np.ones((ranks, len(chunk)), bool)


def only(ranks: int, members: ArrayLike) -> Condition:
    """The given ranks, for every chunk."""
    mask = np.zeros(ranks, bool)
    mask[np.asarray(members)] = True
    return lambda chunk: np.repeat(mask[:, None], len(chunk), axis=1)


def owner(ranks: int, owner_of_chunk: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> Condition:
    """One rank for each chunk."""
    return lambda chunk: np.arange(ranks)[:, None] == owner_of_chunk(chunk)[None, :]
