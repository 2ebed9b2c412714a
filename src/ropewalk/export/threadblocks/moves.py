"""The sends of a program as moves between places in buffers, with what must be finished before each end of a move.

A chunk begins in the input buffer of a rank. Input buffers are never written: the first value that a rank computes or
receives goes to its *home*, which is the chunk's place in the output buffer, or a slot of scratch where the chunk only
passes through. What order matters is decided chunk by chunk: a send waits for the value it sends, an arrival for the
sends that still read what it replaces, unless it is itself a consequence of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ropewalk.collectives.program import Program
from ropewalk.errors import ProgramError
from ropewalk.export.threadblocks.layout import ChunkLayout

INPUT, OUTPUT, SCRATCH = "i", "o", "s"

Place = tuple[str, int]
"""A chunk of a buffer: which buffer, and the index in it."""


@dataclass(frozen=True)
class ChunkRun:
    """Neighbouring chunks that move together: `count` of them from each of these places on."""

    source: Place
    """At the sender."""
    operand: Place | None
    """At the receiver: what the arrivals are added to; None where they replace."""
    target: Place
    """At the receiver: where the result goes."""
    count: int
    direct: bool
    """The sender may write to the target itself: all that used it before is known to be over."""


@dataclass(frozen=True)
class ProgramSend:
    """One send of the program."""

    number: int
    round: int
    lane: int
    src: int
    dst: int
    runs: tuple[ChunkRun, ...]

    @property
    def chunks(self) -> int:
        return sum(run.count for run in self.runs)


Event = tuple[int, bool]
"""One end of a move: (its number, whether it is the arrival)."""


@dataclass
class Moves:
    """All moves of a program in the order of its rounds; `needs` lists what must be over, at the same rank, before."""

    layout: ChunkLayout
    ranks: int
    moves: list[ProgramSend] = field(default_factory=list)
    needs: dict[Event, set[Event]] = field(default_factory=dict)
    overtaken: set[int] = field(default_factory=set)
    """Moves whose source is replaced later by something that does not come of their arrival."""
    scratch: list[int] = field(default_factory=list)
    """Slots of scratch that the homes at each rank take."""

    outputs: list[set[int]] = field(default_factory=list)
    """Output chunks of each rank that moves write."""

    def own(self, rank: int) -> list[tuple[int, int, int]]:
        """What a rank copies from its input to its output by itself: (input index, output index, chunks)."""
        runs: list[tuple[int, int, int]] = []
        for source, target, count in self.layout.own[rank]:
            for offset in range(count):
                if target + offset in self.outputs[rank]:
                    continue  # it comes back over the network, as its owner sent it
                first, goal, length = runs[-1] if runs else (-2, -2, 0)
                if (first + length, goal + length) == (source + offset, target + offset):
                    runs[-1] = (first, goal, length + 1)
                else:
                    runs.append((source + offset, target + offset, 1))
        return runs

    def rank_of(self, event: Event) -> int:
        move = self.moves[event[0]]
        return move.dst if event[1] else move.src

    def turn(self, event: Event) -> tuple[int, bool, int]:
        """Sorts events into an order in which all of them can happen: by round, sends before arrivals."""
        return self.moves[event[0]].round, event[1], event[0]


def moves_of(program: Program, layout: ChunkLayout) -> Moves:
    """Follow every chunk of the program through the buffers of the ranks."""
    result = Moves(layout, program.ranks, scratch=[0] * program.ranks)
    result.outputs = [set() for _ in range(program.ranks)]
    trackers: dict[int, _Chunk] = {}
    for number, step in enumerate(program.rounds):
        pattern = step.pattern
        start, ids = step.chunks()
        sends = list(_sends(start.tolist(), ids.tolist()))
        first = len(result.moves)
        # All sends of a round read what was there before it, so they are written down before its arrivals.
        plans: list[list[tuple[int, Place]]] = []
        ends = list(zip(pattern.src.tolist(), pattern.dst.tolist(), strict=True))
        for offset, ((src, _), chunks) in enumerate(zip(ends, sends, strict=True)):
            plan = []
            for chunk in chunks:
                tracker = trackers.setdefault(chunk, _Chunk(chunk, result))
                plan.append((chunk, tracker.send(src, (first + offset, False), program.name)))
            plans.append(sorted(plan, key=lambda pair: (pair[1], pair[0])))
        for offset, ((src, dst), plan) in enumerate(zip(ends, plans, strict=True)):
            adds = bool(pattern.reduces[offset])
            arrivals = [trackers[chunk].arrive(dst, (first + offset, True), adds, place) for chunk, place in plan]
            lane = int(pattern.lane[offset])
            result.moves.append(ProgramSend(first + offset, number, lane, src, dst, tuple(_joined(arrivals))))
    return result


def _sends(start: list[int], ids: list[int]) -> Iterator[list[int]]:
    for low, high in pairwise(start):
        yield ids[low:high]


def _joined(single: list[ChunkRun]) -> list[ChunkRun]:
    """Put chunks together that are neighbours everywhere."""
    runs: list[ChunkRun] = []
    for run in single:
        last = runs[-1] if runs else None
        if last is not None and last.direct == run.direct and _follows(last, run):
            runs[-1] = ChunkRun(last.source, last.operand, last.target, last.count + 1, last.direct)
        else:
            runs.append(run)
    return runs


def _follows(last: ChunkRun, run: ChunkRun) -> bool:
    pairs = ((last.source, run.source), (last.operand, run.operand), (last.target, run.target))
    return all(_beside(before, after, last.count) for before, after in pairs)


def _beside(before: Place | None, after: Place | None, distance: int) -> bool:
    if before is None or after is None:
        return before is after
    return before[0] == after[0] and before[1] + distance == after[1]


class _Chunk:
    """One chunk on its way: where it is at each rank, who touched it there last, and what each touch knows of."""

    def __init__(self, chunk: int, moves: Moves) -> None:
        self.chunk = chunk
        self.moves = moves
        self.place: dict[int, Place] = {
            int(rank): (INPUT, int(moves.layout.at_input[rank, chunk]))
            for rank in np.flatnonzero(moves.layout.at_input[:, chunk] >= 0)
        }
        self.home: dict[int, Place] = {}
        self.writer: dict[int, Event] = {}
        self.readers: dict[int, list[Event]] = {}
        # Bit k of known[e]: event k of this chunk is over before e begins, whatever the speed of the others.
        self.bit: dict[Event, int] = {}
        self.known: dict[Event, int] = {}

    def send(self, rank: int, event: Event, program: str) -> Place:
        """The place that a send reads."""
        if rank not in self.place:
            raise ProgramError(
                f"{program}: rank {rank} sends chunk {self.chunk} before it has it: give a program that check() accepts"
            )
        self._touch(event, [self.writer[rank]] if rank in self.writer else [])
        self.readers.setdefault(rank, []).append(event)
        return self.place[rank]

    def arrive(self, rank: int, event: Event, adds: bool, source: Place) -> ChunkRun:
        """What the arrival at a rank reads and writes."""
        sender = (event[0], False)
        heard = self.known[sender]
        # The sender may know that what used the target is over: a writer when it is done, a reader when its receiver
        # has been heard of, for only then has even an adapter that copies by itself finished reading.
        writers = [self.writer[rank]] if rank in self.writer else []
        unknown_writers = [writer for writer in writers if not heard & self.bit[writer]]
        unknown_readers = [
            reader for reader in self.readers.pop(rank, []) if not heard & self.bit.get((reader[0], True), 0)
        ]
        self.moves.overtaken.update(number for number, _ in unknown_readers)
        target = self._home_of(rank)
        operand = self.place.get(rank) if adds else None
        self._touch(event, unknown_writers + unknown_readers, also=sender)
        self.writer[rank] = event
        self.place[rank] = target
        return ChunkRun(source, operand, target, 1, direct=not adds and not unknown_writers and not unknown_readers)

    def _touch(self, event: Event, before: list[Event], also: Event | None = None) -> None:
        self.bit[event] = 1 << len(self.bit)
        known = 0
        for earlier in [*before, *([also] if also is not None else [])]:
            known |= self.known[earlier] | self.bit[earlier]
        self.known[event] = known
        if before:
            self.moves.needs.setdefault(event, set()).update(before)

    def _home_of(self, rank: int) -> Place:
        if rank not in self.home:
            index = int(self.moves.layout.at_output[rank, self.chunk])
            if index >= 0:
                self.home[rank] = (OUTPUT, index)
                self.moves.outputs[rank].add(index)
            else:
                self.home[rank] = (SCRATCH, self.moves.scratch[rank])
                self.moves.scratch[rank] += 1
        return self.home[rank]
