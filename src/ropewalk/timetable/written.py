"""Timetables as text: a row for each device, passes as people write them."""

from __future__ import annotations

import re
from functools import lru_cache

from ropewalk.errors import ProofError, StrategyError
from ropewalk.timetable.passes import LETTERS, Entry, Pass
from ropewalk.timetable.table import Timetable, from_rows

ONE_PASS = re.compile(r"(?P<piece>[0-9]{1,9})(?P<kind>[FBIW])(?P<micro_batch>[0-9]{1,9})(?P<paired>\+?)")
KINDS = {letter: kind for kind, letter in LETTERS.items()}


@lru_cache(maxsize=256)
def timetable_of_rows(name: str, rows: tuple[str, ...], micro_batches: int) -> Timetable:
    """The timetable whose devices run these rows; it has proved itself. Devices hold the pieces in their rows.

    >>> print(timetable_of_rows("mine", ("0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"), 2))
    mine: 2 devices, 2 pieces, 2 micro-batches
    0  0F0 0F1 0B0 0B1
    1  1F0 1B0 1F1 1B1
    """
    entries = [_row(name, number, text) for number, text in enumerate(rows)]
    homes = {entry.piece: device for device, row in enumerate(entries) for entry in row}
    if sorted(homes) != list(range(len(homes))):
        raise StrategyError(f"timetable {name}: its rows name pieces {sorted(homes)}: count them from 0 without gaps")
    table = from_rows(name, entries, [homes[piece] for piece in range(len(homes))], micro_batches)
    try:
        table.check()
    except ProofError as error:
        raise StrategyError(f"{error}: fix its rows or name one that is known") from None
    return table


def rows_of(table: Timetable) -> tuple[str, ...]:
    """The rows of a timetable as text."""
    return tuple(line.split("  ", 1)[1] for line in str(table).splitlines()[1:])


def _row(name: str, device: int, text: str) -> list[Entry]:
    found = []
    for word in text.replace("+", "+ ").split():
        one = ONE_PASS.fullmatch(word)
        if one is None:
            raise StrategyError(
                f"timetable {name}: {word!r} in row {device} is not a pass: write piece, {', '.join(KINDS)} and "
                "micro-batch, such as 0F3"
            )
        kind = KINDS[one["kind"]]
        found.append(Entry(Pass(kind), int(one["piece"]), int(one["micro_batch"]), bool(one["paired"])))
    return found
