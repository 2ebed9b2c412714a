"""The cells of a schedule file: how an action is written, and what may stand in a cell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from ropewalk.timetable.passes import LETTERS, Entry, Pass, text
from ropewalk.timetable.table import Timetable

Slot = tuple[Entry, ...]
"""One pass, or a forward and a backward pass side by side."""


class Deed(StrEnum):
    """What a rank does besides computing; the stage is the one on whose behalf it does it."""

    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"
    UNSHARD = "UNSHARD"
    RESHARD = "RESHARD"
    REDUCE_GRAD = "REDUCE_GRAD"


class Action(NamedTuple):
    """A cell that does not compute."""

    deed: Deed
    stage: int
    micro_batch: int | None = None
    """None for parameters and gradients of a stage as a whole."""


PASSES = {letter: kind for kind, letter in LETTERS.items()}
_PASS = re.compile(r"([0-9]{1,9})([FIBW])([0-9]{1,9})")
_MOVE = re.compile(r"([0-9]{1,9})(SEND_F|RECV_F|SEND_B|RECV_B)([0-9]{1,9})")
_WHOLE = re.compile(r"([0-9]{1,9})(UNSHARD|RESHARD|REDUCE_GRAD)")
_PAIR = re.compile(r"\(([0-9]{1,9})F([0-9]{1,9});([0-9]{1,9})B([0-9]{1,9})\)OVERLAP_F_B")


def slots(table: Timetable, device: int) -> Iterator[Slot]:
    """The row of a device, with passes side by side together and the forward one first."""
    row = iter(table.row(device))
    for entry in row:
        if entry.paired:
            both = (entry, next(row))
            yield both if entry.kind == Pass.FORWARD else both[::-1]
        else:
            yield (entry,)


def cell(what: Slot | Action) -> str:
    """An action as PyTorch writes it.

    >>> cell(Action(Deed.SEND_F, 2, 7)), cell((Entry(Pass.FORWARD, 0, 4), Entry(Pass.BACKWARD, 7, 0)))
    ('2SEND_F7', '(0F4;7B0)OVERLAP_F_B')
    """
    if isinstance(what, Action):
        return f"{what.stage}{what.deed}" + ("" if what.micro_batch is None else str(what.micro_batch))
    if len(what) == 1:
        return text(what[0])
    return f"({';'.join(text(entry) for entry in what)})OVERLAP_F_B"


def parse(written: str) -> Slot | Action | None:
    """What a cell says, from its first to its last character; None where it says nothing that there is.

    PyTorch stops reading where it has understood enough (`1F0xyz` is 1F0 to it), which hides slips of the pen.
    """
    if found := _PASS.fullmatch(written):
        return (Entry(PASSES[found[2]], int(found[1]), int(found[3])),)
    if found := _MOVE.fullmatch(written):
        return Action(Deed(found[2]), int(found[1]), int(found[3]))
    if found := _WHOLE.fullmatch(written):
        return Action(Deed(found[2]), int(found[1]))
    if found := _PAIR.fullmatch(written):
        ahead, first, behind, second = (int(group) for group in found.groups())
        return Entry(Pass.FORWARD, ahead, first, paired=True), Entry(Pass.BACKWARD, behind, second)
    return None
