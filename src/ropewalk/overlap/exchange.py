"""What a library is handed in a step: chunks of tensors in operations, their urgency, and the overlaps it allows.

Every scheme is a `ChunkExchange`: whole tensors one after the other, buckets, pieces by priority, and the streamed
all-reduce, which is one operation whose chunks go by urgency of their own. `run` says when everything happens on a
symmetric ring, and when every tensor is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.errors import StrategyError
from ropewalk.overlap._stream_kernel import DONE, LibraryRules, run_ring
from ropewalk.overlap.ring import RankRing
from ropewalk.overlap.tensors import Tensors

ALL_AT_ONCE = 1 << 30
"""A window that never fills."""
Part = tuple[int, float]
"""A tensor, and how many bytes of it."""


class Overlaps(NamedTuple):
    """Which of the three overlaps a rank uses."""

    mixing: bool = True
    """Sending and mixing: the port sends while the adder adds."""
    broadcasting: bool = True
    """Reducing and broadcasting: a chunk is broadcast while others are still being reduced."""
    computing: bool = True
    """Communicating and computing: a layer starts when its own tensors are there, not when the whole operation is."""


ALL_THREE = Overlaps()


@dataclass(frozen=True, eq=False)
class Chunks:
    """Tensors cut for the network: piece i is `size_bytes[i]` bytes of tensor `tensor[i]` and travels in `chunk[i]`."""

    tensor: Ints
    chunk: Ints
    """Never falls from one piece to the next."""
    size_bytes: Floats

    def __len__(self) -> int:
        return int(self.chunk[-1]) + 1

    @cached_property
    def chunk_bytes(self) -> Floats:
        return np.asarray(np.bincount(self.chunk, self.size_bytes), np.float64)

    def ready_s(self, tensors: Tensors) -> Floats:
        """When all of a chunk exists."""
        ready = np.zeros(len(self))
        np.maximum.at(ready, self.chunk, tensors.ready_s[self.tensor])
        return ready

    def arrival_s(self, done_s: Floats, tensors: int) -> Floats:
        """When the last chunk with a piece of each tensor is complete."""
        arrival = np.zeros(tensors)
        np.maximum.at(arrival, self.tensor, done_s[self.chunk])
        return arrival


def chunks_of(parts: Sequence[Sequence[Part]]) -> Chunks:
    """Chunks by what is in them.

    >>> chunks_of([[(0, 3.0)], [(0, 1.0), (1, 2.0)]]).chunk_bytes.tolist()
    [3.0, 3.0]
    """
    flat = [(tensor, number, size) for number, chunk in enumerate(parts) for tensor, size in chunk]
    tensor, chunk, size = zip(*flat, strict=True)
    return Chunks(np.array(tensor, np.int64), np.array(chunk, np.int64), np.array(size, np.float64))


@dataclass(frozen=True, eq=False)
class ChunkExchange:
    """Operations of chunks, and how a library runs them.

    A unit is what is handed to the port as a whole: an operation, or in a stream a chunk of the one operation.
    """

    chunks: Chunks
    op: Ints
    """The operation of every chunk, from 0."""
    unit: Ints
    """The unit of every chunk, from 0; never falls."""
    unit_key: Ints
    """Which of the units that are ready is handed over first: the smallest."""
    reduce_key: Ints
    """Which chunk is reduced first of those that could be."""
    gather_key: Ints
    """Which chunk is broadcast first. The two share one port, so that their keys are compared with each other."""
    overlaps: Overlaps = ALL_THREE
    barrier: bool = False
    """No layer starts before all tensors are complete."""
    window: int = ALL_AT_ONCE
    """Units that may be handed over and not done."""
    serial: bool = True
    """One unit at a time; side by side otherwise, and their chunks go by urgency."""
    in_turn: bool = False
    """Units are handed over in the order of their keys, whichever are ready first."""
    streams: bool = False
    """One launch before the first gradient exists, instead of one for each unit."""

    @property
    def operations(self) -> int:
        return int(self.op.max()) + 1

    def with_overlaps(self, overlaps: Overlaps) -> ChunkExchange:
        """The same with only these overlaps; what is reduced as a whole must be handed over as a whole."""
        window = self.window if overlaps.broadcasting else ALL_AT_ONCE
        return replace(self, overlaps=overlaps, window=window, serial=self.serial and overlaps.broadcasting)

    def as_stream(self) -> ChunkExchange:
        """The same chunks in the same order, fused: one launch, and every tensor is released on its own."""
        return replace(self, op=np.zeros_like(self.op), overlaps=ALL_THREE, barrier=False, streams=True)


@dataclass(frozen=True, eq=False)
class ExchangeRun:
    """One step of an exchange on a ring."""

    exchange: ChunkExchange
    step_s: float
    arrival_s: Floats
    """By tensor: complete, and its operator may start."""
    done_s: Floats
    """By chunk."""
    sent_s: Floats
    """Begin and end of every message, row chunk * rounds + round; empty where it was not asked for."""
    added_s: Floats


def run(exchange: ChunkExchange, tensors: Tensors, ring: RankRing, *, keep: bool = False) -> ExchangeRun:
    """A step on a ring; `keep` has every message and addition of it.

    >>> from ropewalk.overlap.tensors import from_layers
    >>> two = from_layers([4, 4], backward_s=[1, 1], forward_s=[1, 1])
    >>> one_by_one = in_operations([[(1, 4.0)], [(0, 4.0)]])
    >>> run(one_by_one, two, RankRing(ranks=2, bandwidth=1)).arrival_s.tolist()
    [9.0, 5.0]
    """
    done, sent, added = _times(exchange, ring, exchange.chunks.ready_s(tensors), (ring.rounds, ring.rounds), keep)
    return finished(exchange, tensors, done, sent, added)


def finished(exchange: ChunkExchange, tensors: Tensors, done: Floats, sent: Floats, added: Floats) -> ExchangeRun:
    """The step that follows from when chunks are complete."""
    usable = done
    if not exchange.overlaps.computing:
        whole = np.zeros(exchange.operations)
        np.maximum.at(whole, exchange.op, done)
        usable = whole[exchange.op]
    arrival = exchange.chunks.arrival_s(usable, len(tensors))
    step = tensors.step_s(arrival, barrier=exchange.barrier)
    return ExchangeRun(exchange, step, arrival, done, sent, added)


def halves_done(
    exchange: ChunkExchange, ring: RankRing, ready_s: Floats, *, reduces: bool
) -> tuple[Floats, Floats, Floats]:
    """Only the reduce-scatters, or only the all-gathers, of chunks that may start at these times."""
    rounds = (ring.rounds, 0) if reduces else (0, ring.rounds)
    return _times(exchange, ring, ready_s, rounds, keep=True)


def _times(
    exchange: ChunkExchange, ring: RankRing, ready_s: Floats, rounds: tuple[int, int], keep: bool
) -> tuple[Floats, Floats, Floats]:
    chunks, units = exchange.chunks, len(exchange.unit_key)
    unit_ready = np.zeros(units)
    np.maximum.at(unit_ready, exchange.unit, ready_s)
    costs = ring.costs
    if exchange.streams:
        unit_ready = np.maximum(unit_ready, costs.launch_s)
        costs = costs._replace(launch_s=0.0)
    if exchange.in_turn:
        turn = np.argsort(exchange.unit_key, kind="stable")
        unit_ready[turn] = np.maximum.accumulate(unit_ready[turn])
    first = np.searchsorted(exchange.unit, np.arange(units + 1))
    size = np.diff(first)
    of_chunks = np.column_stack([
        ready_s, chunks.chunk_bytes / ring.ranks, exchange.unit, exchange.op, exchange.reduce_key, exchange.gather_key,
        np.full(len(chunks), np.nan),
    ]).astype(np.float64)  # fmt: skip
    of_units = np.column_stack([first[:-1], first[1:], unit_ready, exchange.unit_key, size, np.zeros(units)])
    overlaps = exchange.overlaps
    rules = LibraryRules(*rounds, exchange.window, exchange.serial, not overlaps.broadcasting, not overlaps.mixing)
    sent, added = (np.zeros((len(chunks) * sum(rounds) if keep else 0, 2)) for _ in range(2))
    run_ring(of_chunks, of_units, np.bincount(exchange.op), costs, rules, sent, added)
    done = of_chunks[:, DONE].copy()
    if np.isnan(done).any():
        raise StrategyError(
            f"a window of {exchange.window} units holds back what must be reduced before anything is broadcast: "
            "give an unlimited window, or broadcast while reducing"
        )
    return done, sent, added


def in_operations(
    operations: Sequence[Sequence[Part]],
    *,
    slices: int = 1,
    barrier: bool = False,
    window: int = ALL_AT_ONCE,
    serial: bool = True,
) -> ChunkExchange:
    """Operations as libraries run them, each cut into equal `slices` that follow each other through it.

    They are launched in the order given; with a window the most urgent that is ready goes first, of the first ones.
    """
    if slices < 1:
        raise StrategyError(f"an operation has 1 slice or more, got {slices}")
    parts = [part for operation in operations for part in _sliced(operation, slices)]
    order, number = np.arange(len(parts)), np.repeat(np.arange(len(operations)), slices)
    return ChunkExchange(
        chunks_of(parts), number, number, np.arange(len(operations)), order, order,
        Overlaps(computing=False), barrier, window, serial, in_turn=window == ALL_AT_ONCE,
    )  # fmt: skip


def _sliced(operation: Sequence[Part], slices: int) -> list[list[Part]]:
    """Cut along the buffer: an operation arrives as a whole, so where tensors end does not matter."""
    return [[(tensor, size / slices) for tensor, size in operation] for _ in range(slices)]


def streamed(
    parts: Sequence[Sequence[Part]],
    reduce_key: Sequence[int] | Ints,
    gather_key: Sequence[int] | Ints,
    *,
    window: int = ALL_AT_ONCE,
    overlaps: Overlaps = ALL_THREE,
) -> ChunkExchange:
    """All chunks in one operation that is launched before the first gradient exists; the most urgent goes first."""
    chunk = np.arange(len(parts))
    reduce_key, gather_key = np.asarray(reduce_key, np.int64), np.asarray(gather_key, np.int64)
    return ChunkExchange(
        chunks_of(parts), np.zeros_like(chunk), chunk, reduce_key, reduce_key, gather_key, overlaps, window=window,
        serial=False, streams=True,
    )  # fmt: skip
