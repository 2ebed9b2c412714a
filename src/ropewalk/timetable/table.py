"""Which device of a pipeline runs which pass of which micro-batch, in which order.

A timetable says nothing about time: a device starts each pass of its row when the one before it is done and its input
has arrived. How long that takes is for `clock` to say. A model is cut into pieces; a device holds one or several of
them, and some timetables keep two copies of the model and send micro-batches through in both directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.timetable._proof import prove
from ropewalk.timetable.kept import changes
from ropewalk.timetable.passes import Entry as Entry
from ropewalk.timetable.passes import Pass as Pass
from ropewalk.timetable.passes import text


@dataclass(frozen=True, eq=False)
class Timetable:
    """Rows of passes, one row a device, all rows one after the other in columns.

    >>> from ropewalk.timetable import early_backward
    >>> print(early_backward(2, 3))
    1f1b: 2 devices, 2 pieces, 3 micro-batches
    0  0F0 0F1 0B0 0F2 0B1 0B2
    1  1F0 1B0 1F1 1B1 1F2 1B2
    """

    name: str
    row_start: Ints
    """Row of device d: passes `row_start[d]` up to `row_start[d + 1]`."""
    kind: NDArray[np.int8]
    piece: NDArray[np.int32]
    """Pieces 0 … pieces-1 are the model from input to output; those of its second copy follow."""
    micro_batch: NDArray[np.int32]
    paired: NDArray[np.bool_]
    """True where a pass and the next one of the row run side by side and end together."""
    device_of_piece: NDArray[np.int32]
    """By piece, of all copies."""
    micro_batches: int
    copies: int = 1
    """How many copies of the model the devices keep."""
    copy_of_micro_batch: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """Which copy a micro-batch goes through; empty where there is only one."""

    @property
    def devices(self) -> int:
        return len(self.row_start) - 1

    @property
    def pieces(self) -> int:
        """Pieces of one copy of the model."""
        return len(self.device_of_piece) // self.copies

    @property
    def passes(self) -> int:
        return len(self.kind)

    @property
    def splits_backward(self) -> bool:
        """Are there passes for gradients of inputs alone?"""
        return bool((self.kind == Pass.INPUT).any())

    def row(self, device: int) -> list[Entry]:
        """The passes of one device, first to last."""
        part = slice(int(self.row_start[device]), int(self.row_start[device + 1]))
        columns = (self.kind[part], self.piece[part], self.micro_batch[part], self.paired[part])
        return [Entry(Pass(k), p, m, w) for k, p, m, w in zip(*(column.tolist() for column in columns), strict=True)]

    def rows(self) -> Iterator[list[Entry]]:
        return (self.row(device) for device in range(self.devices))

    @cached_property
    def device(self) -> NDArray[np.int32]:
        """The device of every pass."""
        return np.repeat(np.arange(self.devices, dtype=np.int32), np.diff(self.row_start))

    @cached_property
    def source(self) -> Ints:
        """The pass whose output every pass takes in, -1 for those that wait for no other piece."""
        return _sources(self)

    @cached_property
    def consumer(self) -> Ints:
        """The pass that takes in the output of every pass, -1 where nobody does."""
        consumer = np.full(self.passes, -1, np.int64)
        taken = np.flatnonzero(self.source >= 0)
        consumer[self.source[taken]] = taken
        return consumer

    @cached_property
    def peak_live(self) -> Ints:
        """By device, the most forward passes whose gradients are still to come; one that waits for WEIGHT counts."""
        return np.rint(self.peak_kept(np.ones(len(self.device_of_piece)))).astype(np.int64)

    def peak_kept(self, kept: Floats, until_weight: Floats | None = None, again: Floats | None = None) -> Floats:
        """By device, the most bytes kept for backward passes when a forward pass of piece i keeps `kept[i]`.

        Pieces are those of all copies of the model. From INPUT to WEIGHT it keeps `until_weight[i]`, the same unless
        given: less where INPUT frees some of it, more where INPUT computes it again. While BACKWARD runs, `again[i]`
        come back besides. Of two passes side by side the forward one takes before the other gives back. Rows alone
        decide this, whatever the passes take.
        """
        change, besides = changes(self, kept, until_weight, again)
        first = np.flatnonzero(self.paired)
        swapped = first[(change[first] < 0) & (change[first + 1] > 0)]
        for column in (change, besides):
            column[swapped], column[swapped + 1] = column[swapped + 1], column[swapped]
        held = np.cumsum(change)
        fullest = np.maximum(held, held - change + besides)
        before = np.concatenate(([0.0], held))[self.row_start[:-1]]
        full = [
            fullest[s:e].max(initial=b) - b for s, e, b in zip(self.row_start, self.row_start[1:], before, strict=False)
        ]
        return np.array(full)

    def check(self) -> None:
        """Every pass once, on the device of its piece, after what it needs, and no device waits for ever.

        Raises ProofError with the first counterexample.
        """
        _ = self._proof

    @cached_property
    def _proof(self) -> bool:
        """Once is enough: nothing here changes."""
        prove(self)
        return True

    def __str__(self) -> str:
        title = f"{self.name}: {self.devices} devices, {self.pieces} pieces, {self.micro_batches} micro-batches"
        return "\n".join([title, *(f"{device}  {_row_text(row)}" for device, row in enumerate(self.rows()))])


def from_rows(
    name: str,
    rows: Iterable[Sequence[Entry]],
    device_of_piece: Sequence[int] | NDArray[np.int32],
    micro_batches: int,
    copies: int = 1,
    copy_of_micro_batch: Sequence[int] = (),
) -> Timetable:
    """A timetable from its rows, written pass by pass."""
    lists = [list(row) for row in rows]
    flat = [entry for row in lists for entry in row]
    kind, piece, number, paired = (list(column) for column in zip(*flat, strict=True)) if flat else ([], [], [], [])
    return Timetable(
        name=name,
        row_start=np.cumsum([0, *map(len, lists)]).astype(np.int64),
        kind=np.array(kind, np.int8),
        piece=np.array(piece, np.int32),
        micro_batch=np.array(number, np.int32),
        paired=np.array(paired, np.bool_),
        device_of_piece=np.array(device_of_piece, np.int32),
        micro_batches=micro_batches,
        copies=copies,
        copy_of_micro_batch=np.array(copy_of_micro_batch, np.int32),
    )


class RowColumns(NamedTuple):
    """A row as columns, for timetables of very many passes."""

    kind: NDArray[np.int64]
    piece: NDArray[np.int64]
    micro_batch: NDArray[np.int64]

    def only(self, which: NDArray[np.bool_] | Ints) -> RowColumns:
        """Some of its passes, or all of them in another order."""
        return RowColumns(*(column[which] for column in self))


def from_columns(
    name: str, rows: Sequence[RowColumns], device_of_piece: Sequence[int], micro_batches: int
) -> Timetable:
    """A timetable without passes side by side from its rows."""
    kind, piece, number = (np.concatenate(column) for column in zip(*rows, strict=True))
    return Timetable(
        name=name,
        row_start=np.cumsum([0, *(len(row.kind) for row in rows)]).astype(np.int64),
        kind=kind.astype(np.int8),
        piece=piece.astype(np.int32),
        micro_batch=number.astype(np.int32),
        paired=np.zeros(len(kind), np.bool_),
        device_of_piece=np.array(device_of_piece, np.int32),
        micro_batches=micro_batches,
        copies=1,
        copy_of_micro_batch=np.zeros(0, np.int32),
    )


def _row_text(row: Sequence[Entry]) -> str:
    """Passes with spaces between them, `+` between two that run side by side."""
    return "".join(text(entry) + ("+" if entry.paired else " ") for entry in row).rstrip()


def _sources(table: Timetable) -> Ints:
    """For every pass the position of the one that hands it its input."""
    pieces, every = table.pieces, table.pieces * table.copies
    position = np.full((2, every, table.micro_batches), -1, np.int64)
    here = np.arange(table.passes)
    gives = table.kind != Pass.WEIGHT
    behind = (table.kind != Pass.FORWARD).astype(np.int64)
    position[behind[gives], table.piece[gives], table.micro_batch[gives]] = here[gives]
    source = np.full(table.passes, -1, np.int64)
    inner = table.piece % pieces
    forward = np.flatnonzero((table.kind == Pass.FORWARD) & (inner > 0))
    source[forward] = position[0, table.piece[forward] - 1, table.micro_batch[forward]]
    backward = np.flatnonzero((behind == 1) & gives & (inner < pieces - 1))
    source[backward] = position[1, table.piece[backward] + 1, table.micro_batch[backward]]
    return source
