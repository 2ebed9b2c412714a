"""What a device of a pipeline does with a micro-batch, and how people write it."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Pass(IntEnum):
    """What a device does with one micro-batch."""

    FORWARD = 0
    BACKWARD = 1
    """Gradients of inputs and of weights together."""
    INPUT = 2
    """Gradients of inputs alone: all that the piece before waits for."""
    WEIGHT = 3
    """Gradients of weights: nobody waits for them before the end of the step."""


class Entry(NamedTuple):
    """One pass in a row."""

    kind: Pass
    piece: int
    micro_batch: int
    paired: bool = False
    """Does it run side by side with the next pass of the row?"""


LETTERS = {Pass.FORWARD: "F", Pass.BACKWARD: "B", Pass.INPUT: "I", Pass.WEIGHT: "W"}


def text(entry: Entry) -> str:
    """A pass as people write it: piece, letter, micro-batch."""
    return f"{entry.piece}{LETTERS[entry.kind]}{entry.micro_batch}"
