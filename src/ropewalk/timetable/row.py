"""A row under construction for a device with two pieces: passes of a kind are taken in the order of micro-batches."""

from __future__ import annotations

from collections import Counter, deque

from ropewalk.timetable.table import Entry, Pass


class Row:
    """Counts micro-batches and remembers which gradients of weights have been put off."""

    def __init__(self, down: int, up: int, first: dict[int, int] | None = None) -> None:
        self.down, self.up = down, up
        self.entries: list[Entry] = []
        self._first = first or {}
        self._count: Counter[tuple[bool, int]] = Counter()
        self._put_off: deque[tuple[int, int]] = deque()

    def done(self, kind: Pass, piece: int) -> int:
        """How many forward passes, or backward passes of either kind, a piece has run."""
        return self._count[kind == Pass.FORWARD, piece]

    def add(self, kind: Pass, piece: int, *, paired: bool = False) -> None:
        """The next micro-batch of a piece; INPUT puts its gradients of weights off."""
        number = self._first.get(piece, 0) + self.done(kind, piece)
        self._count[kind == Pass.FORWARD, piece] += 1
        self.entries.append(Entry(kind, piece, number, paired))
        if kind == Pass.INPUT:
            self._put_off.append((piece, number))

    def pair(self, forward: int, backward: int) -> None:
        """A forward and a whole backward pass side by side."""
        self.add(Pass.FORWARD, forward, paired=True)
        self.add(Pass.BACKWARD, backward)

    def weight(self) -> None:
        """The gradients of weights that have been put off the longest."""
        self.entries.append(Entry(Pass.WEIGHT, *self._put_off.popleft()))

    def all_weights(self) -> None:
        while self._put_off:
            self.weight()
