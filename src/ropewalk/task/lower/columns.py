"""Columns that a gang is written from, and those in which stages stand while it is written: records for the kernel."""

from __future__ import annotations

from typing import NamedTuple

from ropewalk.arrays import Flags, Ints

SPARE_THREADS = 4
"""Threads for two passes side by side, of a stage and of its twin."""


class TimetableRows(NamedTuple):
    """A timetable; `marked` are the pass with which the gradients of a piece are complete, and its first forward pass.

    A row is what one device runs in order. A stage has a row of its own, or shares one with all others (seats).
    """

    row_start: Ints
    kind: Ints
    piece: Ints
    micro_batch: Ints
    paired: Ints
    marked: Flags
    home: Ints
    """By piece, of all copies of the model: its stage."""
    row_of_stage: Ints


class Legs(NamedTuple):
    """Legs of pass p of piece i: from `first` to `behind` at 2 (4 i + p), one further of marked passes."""

    first: Ints
    behind: Ints
    layer: Ints
    move_start: Ints
    move: Ints
    beside: Ints
    """By move of a leg: 1 where it runs beside the move behind it."""
    gather_start: Ints
    gather: Ints
    reduce_start: Ints
    reduce: Ints
    reduce_piece: Ints
    """By reduction: the piece of the model, counted in one copy, and the place in the pass, to find its other half."""
    reduce_place: Ints


class Hops(NamedTuple):
    """Hand-overs between pieces; `give` and `take` are CSR by piece, forward passes first."""

    giver: Ints
    to_stage: Ints
    sent: Ints
    """-1 where nothing has to move."""
    gathered: Ints
    """What puts the parts together that were sent, otherwise -1."""
    give_start: Ints
    give: Ints
    take_start: Ints
    take: Ints


class Ending(NamedTuple):
    """What comes behind the last passes."""

    tie_owner: Ints
    tie_other: Ints
    tie: Ints
    update: Ints
    line_start: Ints
    line: Ints
    """By stage, as CSR: whose gradients its update waits for."""
    gather_start: Ints
    gather: Ints
    twin: Ints


class WriterState(NamedTuple):
    """Where rows and stages stand while their operations are written.

    A thread is a row, or a spare one for passes side by side.
    """

    at: Ints
    """The next pass of each row."""
    cursor: Ints
    """By thread, as lists: what the next operation waits for, the last one;"""
    arrived: Ints
    """what it waits for besides: weights that are gathered, activations on the way;"""
    before: Ints
    """what the leg before this one waited for: from then on weights are gathered ahead."""
    gathered: Ints
    """By thread: the layer whose weights were gathered last."""
    last: Ints
    """By line: the last operation on each stream that keeps its own order."""
    line: Ints
    """By stage: where its streams stand; stages on the same ranks share a line."""
    owed: Ints
    """By stage, as a list: reductions that wait for the end of the backward pass."""
    done: Flags
    """By direction, piece and micro-batch: is the pass written?"""
    sent: Ints
    """By hop and micro-batch: the send."""
    half_done: Ints
    """Reductions that wait for the second copy of the model: stage of the first, and the lists that it waits for."""
