"""Where a stage of a pipeline stands while its operations are written down: its row of passes and what comes next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ropewalk.task.lower.moves import Move
from ropewalk.timetable.passes import Entry, Pass

GRADIENTS_DONE = (Pass.BACKWARD, Pass.WEIGHT)
"""Passes after which the gradients of a micro-batch are complete."""


@dataclass
class Thread:
    """Operations of a stage one after the other; of two passes side by side each has a thread of its own."""

    cursor: list[int] = field(default_factory=list)
    """What the next operation waits for: the last one."""
    arrived: list[int] = field(default_factory=list)
    """What it waits for besides: weights that are gathered, activations on the way."""
    before: list[int] = field(default_factory=list)
    """What the leg before this one waited for: from then on weights are gathered ahead."""
    gathered: int = -1
    """The layer whose weights were gathered last."""

    @property
    def since(self) -> list[int]:
        return [*self.cursor, *self.arrived]

    def fork(self) -> Thread:
        return replace(self, cursor=[*self.cursor], arrived=[*self.arrived], before=[*self.before])

    def join(self, others: Sequence[Thread]) -> None:
        """Go on when all of these have come to their ends."""
        self.cursor = list(dict.fromkeys(at for other in others for at in other.cursor))
        self.arrived = list(dict.fromkeys(at for other in others for at in other.arrived))
        self.before, self.gathered = others[-1].before, others[-1].gathered


@dataclass(frozen=True)
class Reduction:
    """Gradients to be reduced; `key` tells those that two copies of the model reduce together."""

    move: Move
    key: tuple[int, int]
    """Piece of the model, counted in one copy, and place in its last backward pass."""


@dataclass
class Stage:
    """A row of passes, how far it is written, and the last operation on each of its streams."""

    row: list[Entry]
    at: int = 0
    thread: Thread = field(default_factory=Thread)
    last: dict[str, int] = field(default_factory=dict)
    """The last operation on each stream that keeps its own order."""
    reductions: list[Reduction] = field(default_factory=list)
    """Gradients that wait for the end of the backward pass."""

    def __post_init__(self) -> None:
        ends = {entry.piece: at for at, entry in enumerate(self.row) if entry.kind in GRADIENTS_DONE}
        self._ends = set(ends.values())

    def slot(self) -> Iterator[tuple[Entry, bool]]:
        """The pass that comes next, or the two that run side by side; True behind the last gradients of a piece."""
        if self.at < len(self.row):
            for at in range(self.at, self.at + 1 + self.row[self.at].paired):
                yield self.row[at], at in self._ends
