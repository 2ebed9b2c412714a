"""Proves a timetable, or names the first thing that is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.errors import ProofError
from ropewalk.timetable.passes import LETTERS, Entry, Pass, text

if TYPE_CHECKING:
    from ropewalk.timetable.table import Timetable

MOST_MISSING = 10**6
"""Of these the first is named; beyond, no memory is taken to look for it."""


def prove(table: Timetable) -> None:
    """Columns fit; every pass once, on the device of its piece, after what it needs; nobody waits for ever."""
    _columns(table)
    _pairs(table)
    position = _complete(table)
    _at_home(table)
    _in_order(table, position)
    _no_deadlock(table)


def _fail(table: Timetable, fact: str) -> NoReturn:
    raise ProofError(f"timetable {table.name}: {fact}")


def _columns(table: Timetable) -> None:
    columns = (table.kind, table.piece, table.micro_batch, table.paired)
    if any(len(column) != table.passes for column in columns):
        _fail(table, f"its columns have {[len(column) for column in columns]} entries: give every column one per pass")
    starts = table.row_start
    if len(starts) < 2 or starts[0] != 0 or starts[-1] != table.passes or (np.diff(starts) < 0).any():
        _fail(table, "its rows do not follow each other from the first pass to the last")
    every = len(table.device_of_piece)
    if table.copies < 1 or every == 0 or every % table.copies:
        _fail(table, f"{every} pieces are not {table.copies} copies of a model: list every copy in full")
    if table.copies > 1 and len(table.copy_of_micro_batch) != table.micro_batches:
        _fail(table, "there are several copies of the model: say which one every micro-batch goes through")
    for name, column, count in (
        ("kind", table.kind, len(Pass)),
        ("piece", table.piece, every),
        ("micro-batch", table.micro_batch, table.micro_batches),
        ("device", table.device_of_piece, table.devices),
        ("copy", table.copy_of_micro_batch, table.copies),
    ):
        wrong = (column < 0) | (column >= count)
        if wrong.any():
            _fail(table, f"there is no {name} {int(column[wrong][0])}: count from 0 to {count - 1}")

    least = 2 * table.pieces * table.micro_batches
    if least > table.passes + MOST_MISSING:
        wanted = f"{table.pieces} pieces and {table.micro_batches} micro-batches take {least} or more"
        _fail(table, f"it has {table.passes} passes, and {wanted}: number both without gaps")


def _pairs(table: Timetable) -> None:
    first = np.flatnonzero(table.paired)
    if not len(first):
        return
    last_of_row = table.row_start[1:] - 1
    for alone in first[np.isin(first, last_of_row)][:1]:
        _fail(table, f"{_name(table, alone)} is to overlap with a pass beyond the end of its row")
    for three in first[table.paired[first + 1]][:1]:
        _fail(table, f"{_name(table, three)} starts a third overlapping pass: only two passes form a pair")
    both = (table.kind[first] == Pass.FORWARD) == (table.kind[first + 1] == Pass.FORWARD)
    for same in first[both][:1]:
        _fail(
            table,
            f"{_name(table, same)} and {_name(table, same + 1)} do not form a pair: one of the two must be forward",
        )


def _complete(table: Timetable) -> Ints:
    """Every pass exactly once; returns positions by kind, piece and micro-batch, -1 for missing ones."""
    every, batches = len(table.device_of_piece), table.micro_batches
    counts = np.zeros((len(Pass), every, batches), np.int64)
    np.add.at(counts, (table.kind, table.piece, table.micro_batch), 1)
    expected = np.ones((every, batches), np.int64)
    if table.copies > 1:
        expected = (np.arange(every)[:, None] // table.pieces == table.copy_of_micro_batch[None, :]).astype(np.int64)
    forward, backward, inputs, weights = counts
    for wrong, what in (
        (forward != expected, "forward passes"),
        (backward + inputs != expected, "backward passes"),
        (inputs != weights, "passes for gradients of weights"),
    ):
        if wrong.any():
            piece, batch = (int(index) for index in np.argwhere(wrong)[0])
            should = inputs if what.endswith("weights") else expected
            have = {"f": forward, "b": backward + inputs, "p": weights}[what[0]]
            _fail(table, f"piece {piece} has {have[piece, batch]} {what} of micro-batch {batch}, "
                         f"not {should[piece, batch]}")  # fmt: skip
    position = np.full(counts.shape, -1, np.int64)
    position[table.kind, table.piece, table.micro_batch] = np.arange(table.passes)
    return position


def _at_home(table: Timetable) -> None:
    away = np.flatnonzero(table.device_of_piece[table.piece] != table.device)
    if len(away):
        home = int(table.device_of_piece[table.piece[away[0]]])
        _fail(table, f"{_name(table, away[0])} is in the row of device {table.device[away[0]]}, "
                     f"but its piece is on device {home}")  # fmt: skip


def _in_order(table: Timetable, position: Ints) -> None:
    """Gradients after the forward pass, gradients of weights after those of inputs, never side by side with them."""
    slot = np.arange(table.passes)
    slot[1:] -= table.paired[:-1]
    for early, late in ((Pass.FORWARD, Pass.BACKWARD), (Pass.FORWARD, Pass.INPUT), (Pass.INPUT, Pass.WEIGHT)):
        before, behind = position[early], position[late]
        both = (before >= 0) & (behind >= 0)
        wrong = both & (slot[np.where(both, before, 0)] >= slot[np.where(both, behind, 0)])
        if wrong.any():
            piece, batch = (int(index) for index in np.argwhere(wrong)[0])
            _fail(table, f"{piece}{LETTERS[late]}{batch} does not come after {piece}{LETTERS[early]}{batch} in its row")


def _no_deadlock(table: Timetable) -> None:
    """Let everything take no time: rows that do not come to their end wait for each other."""
    from ropewalk.timetable._clock_kernel import settle

    nothing, nowhere = np.zeros(table.passes), np.full(table.passes, -1, np.int64)
    *_, at = settle(table.row_start, table.device, table.paired, table.source, table.consumer, nothing, nowhere,
                    nothing, 0)  # fmt: skip
    stuck = np.flatnonzero(at < table.row_start[1:])
    if not len(stuck):
        return
    # Follow who waits for whom until a device comes up again.
    here, chain = int(stuck[0]), []
    seen: set[int] = set()
    while here not in seen:
        seen.add(here)
        slot = range(int(at[here]), int(at[here]) + 1 + int(table.paired[at[here]]))
        awaited = next(int(table.source[one]) for one in slot if _unfinished(table, at, int(table.source[one])))
        chain.append(f"device {here} at {_name(table, slot[0])} waits for {_name(table, awaited)}")
        here = int(table.device[awaited])
    _fail(table, "deadlock: " + ", ".join(chain))


def _unfinished(table: Timetable, at: Ints, position: int) -> bool:
    return position >= 0 and position >= int(at[table.device[position]])


def _name(table: Timetable, position: int | np.integer) -> str:
    return text(Entry(Pass(int(table.kind[position])), int(table.piece[position]), int(table.micro_batch[position])))
