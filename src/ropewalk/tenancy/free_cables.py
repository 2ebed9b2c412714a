"""Free cables between the switches of one tier and those of the next, with every count that allocators read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.allocation import CableColumns
from ropewalk.tenancy.words import words_of

WORD = 64
"""Switches above whose state fits one word."""


class FreeCables:
    """Cables between lower and upper switches. What is drained keeps its bits, and counts leave it out."""

    NAMES = ("bits", "count", "words", "reached", "ports_below", "ports_above")

    bits: NDArray[np.int64]
    """Bit c of [below, above]: their cable c belongs to no job."""
    count: NDArray[np.int64]
    """[below, above]: free cables between the two."""
    words: NDArray[np.uint64]
    """[below, word]: bit j of word w says that a free cable leads to the upper switch `first` + 64 w + j."""
    reached: NDArray[np.int64]
    """Upper switches to which every lower one has a free cable."""
    ports_below: NDArray[np.int64]
    """Free cables of every lower switch."""
    ports_above: NDArray[np.int64]
    """Free cables of every upper switch."""

    def __init__(self, cables: NDArray[np.int32], first: NDArray[np.int64], width: int, up: NDArray[np.bool_]) -> None:
        self.bits = (np.int64(1) << cables.astype(np.int64)) - 1
        self.first = first
        """The upper switch that bit 0 of the words of each lower one stands for."""
        self._words = -(-width // WORD)
        self.up = up
        """[below, above]: is the link in service?"""
        self.recount()

    def recount(self) -> None:
        """Count everything anew."""
        self.count = np.bitwise_count(self.bits).astype(np.int64) * self.up
        self.ports_above = self.count.sum(axis=0)
        self.ports_below = self.count.sum(axis=1)
        self.reached = (self.count > 0).sum(axis=1)
        below, above = np.nonzero(self.count)
        padded = np.zeros((len(self.bits), self._words * WORD), bool)
        padded[below, above - self.first[below]] = True
        self.words = words_of(padded)

    @property
    def _columns(self) -> tuple[Any, ...]:
        return self.first, self.up, *(getattr(self, name) for name in self.NAMES)

    def take(self, held: CableColumns, *, on_drained: bool) -> bool:
        """Take cables, all or none: False where one does not exist, is drained, taken or listed twice."""
        from ropewalk.tenancy._occupancy_kernel import take_cables

        return bool(take_cables(on_drained, held.below, held.above, held.cable, *self._columns))

    def give(self, held: CableColumns) -> None:
        """Cables come back."""
        from ropewalk.tenancy._occupancy_kernel import give_cables

        give_cables(held.below, held.above, held.cable, *self._columns)

    def turn(self, below: NDArray[np.int64], above: NDArray[np.int64], now: NDArray[np.bool_]) -> None:
        """Links go out of service or come back."""
        from ropewalk.tenancy._occupancy_kernel import turn_links

        turn_links(below, above, now, *self._columns)

    def first_free(self, below: NDArray[np.int64], above: NDArray[np.int64]) -> NDArray[np.int64]:
        """The free cable of the lowest number of each link; every one of them has one."""
        from ropewalk.tenancy._occupancy_kernel import first_cables

        found: NDArray[np.int64] = first_cables(below, above, self.bits)
        return found

    def copy(self) -> FreeCables:
        other = FreeCables.__new__(FreeCables)
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, np.ndarray) else value)
        return other

    def differs(self, other: FreeCables) -> str | None:
        """The name of a column that differs."""
        return next((n for n in self.NAMES if not np.array_equal(getattr(self, n), getattr(other, n))), None)
