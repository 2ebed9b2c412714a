"""The part of one rank in a program: what it sends and receives, step by step, without tensors or a network.

A rank goes through its steps in the order of (round, lane). Before it posts a step it waits for its previous step of
the same lane, and for nothing else, so as many lanes are under way as the program has. No rank can wait for ever: take
the first step in that order that some rank never posts. What the rank waits for stands earlier in the order, so all
its partners have posted it, and it completes.

Chunks are numbered by *place*: by the first rank that brings them, then by the first rank that is to have them, then
by their number in the program. In this order the chunks of a rank are its tensor as PyTorch lays it out: the shards of
an all-gather by rank, the blocks of an all-to-all by receiver before and by sender after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ropewalk.arrays import Flags, Ints
from ropewalk.errors import ProgramError

if TYPE_CHECKING:
    from ropewalk.collectives.program import Condition, Program, Round
    from ropewalk.collectives.schedule import Schedule


_BLOCK = 1 << 25
"""Entries of ranks × chunks that are looked at together."""


@dataclass(frozen=True, eq=False)
class Message:
    """Chunks that travel together between this rank and a peer; both list them by rising place."""

    peer: int
    adds: bool
    """Whether the receiver adds what arrives to its own; otherwise it overwrites."""
    places: Ints


@dataclass(frozen=True, eq=False)
class RankRound:
    """What a rank does in one round of one lane."""

    lane: int
    after: int
    """The rank's previous step of this lane, which must be complete; -1 for the first."""
    sends: tuple[Message, ...]
    receives: tuple[Message, ...]


@dataclass(frozen=True, eq=False)
class RankPlan:
    """The steps of one rank, and which chunks it begins and ends with."""

    name: str
    rank: int
    ranks: int
    chunks: int
    takes: Ints
    """Places of the chunks that the rank's input consists of, rising."""
    gives: Ints
    """Places of the chunks that its result consists of."""
    held: Ints
    """Places of all chunks that it touches."""
    zeroed: Ints
    """Places of chunks it has no input for and adds to: they begin as zero."""
    taken: tuple[int, ...]
    """How many chunks each rank brings."""
    given: tuple[int, ...]
    """How many chunks each rank ends with."""
    contributors: int
    """Ranks whose inputs are summed up in a chunk; 0 where chunks differ in that."""
    steps: tuple[RankRound, ...]

    @property
    def members(self) -> tuple[int, ...]:
        """Ranks that bring or get something; the others only forward."""
        both = zip(self.taken, self.given, strict=True)
        return tuple(rank for rank, (brings, gets) in enumerate(both) if brings or gets)

    @property
    def share(self) -> int:
        """Chunks that the tensor of this rank stands for: its input, else its result, else what the first taker brings.

        A rank that only forwards has no data, but has to know how much there is: it passes a tensor as others do.
        """
        return len(self.takes) or len(self.gives) or next(count for count in self.taken if count)

    def whole_elements(self, elements: int) -> int:
        """Elements in all chunks together, when the tensor of this rank has so many."""
        whole, rest = divmod(elements * self.chunks, self.share)
        if rest:
            raise ProgramError(
                f"{self.name}: rank {self.rank} brings {self.share} of {self.chunks} chunks, which a tensor of "
                f"{elements} elements cannot be with equal chunks elsewhere: give a multiple of {self.share} elements"
            )
        return whole

    def offsets(self, places: Ints, whole: int) -> tuple[Ints, Ints]:
        """Where chunks begin and end among `whole` elements: as equal as whole elements can be, empty ones included."""
        return whole * places // self.chunks, whole * (places + 1) // self.chunks


def program_of(given: Program | Schedule) -> Program:
    """The program itself, whether it comes with its fabric or alone."""
    return given.program if hasattr(given, "program") else given


def rank_plans(program: Program) -> tuple[RankPlan, ...]:
    """The plans of all ranks.

    >>> from ropewalk.collectives import ring_all_gather
    >>> plans = rank_plans(ring_all_gather([[0, 1, 2]]))
    >>> [(step.sends[0].peer, step.sends[0].places.tolist()) for step in plans[1].steps]
    [(2, [1]), (2, [0])]
    """
    return tuple(_compiled(program, range(program.ranks)))


@lru_cache(maxsize=16)
def rank_plan(program: Program, rank: int) -> RankPlan:
    """The plan of one rank."""
    if not 0 <= rank < program.ranks:
        raise ProgramError(
            f"{program.name} has no rank {rank}: it is for {program.ranks} ranks; give it to a group of that size"
        )
    return next(_compiled(program, [rank]))


@dataclass(eq=False)
class _Draft:
    """A plan as far as rounds have been read."""

    rank: int
    holds: Flags
    """Chunks of which the rank has something, by place."""
    touched: Flags
    zeroed: Flags
    steps: list[RankRound] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)

    def add(self, lane: int, sends: list[Message], receives: list[Message]) -> None:
        for message in sends:
            self._begin_as_zero(message.places)
        for message in receives:
            if message.adds:
                self._begin_as_zero(message.places)
            self.holds[message.places] = True
            self.touched[message.places] = True
        self.steps.append(RankRound(lane, self.last.get(lane, -1), tuple(sends), tuple(receives)))
        self.last[lane] = len(self.steps) - 1

    def _begin_as_zero(self, places: Ints) -> None:
        missing = places[~self.holds[places]]
        self.zeroed[missing] = self.holds[missing] = self.touched[missing] = True


def _compiled(program: Program, ranks: Sequence[int]) -> Iterator[RankPlan]:
    place, takes, gives, taken, given, contributors = _conditions(program, ranks)
    drafts = {
        rank: _Draft(rank, takes[at].copy(), takes[at] | gives[at], np.zeros(program.chunks, bool))
        for at, rank in enumerate(ranks)
    }
    for step in program.rounds:
        _add_round(drafts, step, place)
    for at, draft in enumerate(drafts.values()):
        yield RankPlan(
            name=program.name,
            rank=draft.rank,
            ranks=program.ranks,
            chunks=program.chunks,
            takes=np.flatnonzero(takes[at]),
            gives=np.flatnonzero(gives[at]),
            held=np.flatnonzero(draft.touched),
            zeroed=np.flatnonzero(draft.zeroed),
            taken=taken,
            given=given,
            contributors=contributors,
            steps=tuple(draft.steps),
        )


def _conditions(
    program: Program, ranks: Sequence[int]
) -> tuple[Ints, Flags, Flags, tuple[int, ...], tuple[int, ...], int]:
    """The place of every chunk, what the ranks begin and end with by place, how many everybody does, contributors."""
    source, takes, taken, bring = _read(program.pre, program, ranks)
    target, gives, given, _ = _read(program.post, program, ranks)
    order = np.lexsort((np.arange(program.chunks), target, source))
    place = np.empty(program.chunks, np.int64)
    place[order] = np.arange(program.chunks)
    contributors = int(bring[0]) if len(bring) and (bring == bring[0]).all() else 0
    return place, takes[:, order], gives[:, order], taken, given, contributors


def _read(condition: Condition, program: Program, ranks: Sequence[int]) -> tuple[Ints, Flags, tuple[int, ...], Ints]:
    """First rank named for each chunk, the rows of `ranks`, chunks named for each rank, ranks named for each chunk."""
    first = np.empty(program.chunks, np.int64)
    many = np.empty(program.chunks, np.int64)
    rows = np.empty((len(ranks), program.chunks), np.bool_)
    count = np.zeros(program.ranks, np.int64)
    block = max(1, _BLOCK // program.ranks)
    for begin in range(0, program.chunks, block):
        here = slice(begin, min(begin + block, program.chunks))
        named = condition(np.arange(here.start, here.stop))
        first[here] = named.argmax(axis=0)
        many[here] = named.sum(axis=0)
        rows[:, here] = named[list(ranks)]
        count += named.sum(axis=1)
    return first, rows, tuple(count.tolist()), many


def _add_round(drafts: dict[int, _Draft], step: Round, place: Ints) -> None:
    """Bundle what a round moves into one message for each lane, pair of ranks and kind, and hand them to their ends."""
    pattern = step.pattern
    start, ids = step.chunks()
    send = np.repeat(np.arange(pattern.sends), np.diff(start))
    wanted = np.fromiter(drafts, np.int64)
    ours = np.isin(pattern.src, wanted) | np.isin(pattern.dst, wanted)
    send, ids = send[ours[send]], ids[ours[send]]
    columns = (pattern.lane[send], pattern.src[send], pattern.dst[send], pattern.reduces[send], place[ids])
    order = np.lexsort(columns[::-1])
    rows = np.stack([column[order].astype(np.int64) for column in columns])
    begins = np.flatnonzero(np.any(np.diff(rows[:4], axis=1, prepend=-1) != 0, axis=0))
    sends: dict[tuple[int, int], list[Message]] = {}
    receives: dict[tuple[int, int], list[Message]] = {}
    for places, (lane, src, dst, adds) in zip(
        np.split(rows[4], begins[1:]) if len(begins) else [], rows[:4, begins].T.tolist(), strict=True
    ):
        if src in drafts:
            sends.setdefault((lane, src), []).append(Message(dst, bool(adds), places))
        if dst in drafts:
            receives.setdefault((lane, dst), []).append(Message(src, bool(adds), places))
    for lane, rank in sorted({*sends, *receives}):
        drafts[rank].add(lane, sends.get((lane, rank), []), receives.get((lane, rank), []))
