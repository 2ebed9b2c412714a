"""When every pass of a timetable starts and ends, exactly.

Devices run their rows in order. What a pass hands to another device crosses the link between the two, one transfer at
a time in the order in which they are ready, while devices compute on. The two directions of a link do not disturb each
other unless links are said to be half duplex. The all-reduce of a piece starts when its last gradient is there, so
those of later pieces are hidden behind the backward passes of earlier ones; it takes nothing from transfers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats
from ropewalk.errors import StrategyError
from ropewalk.timetable.passes import Pass
from ropewalk.timetable.stage_times import StageTimes as StageTimes
from ropewalk.timetable.stage_times import stage_times as stage_times
from ropewalk.timetable.table import Timetable


@dataclass(frozen=True, eq=False)
class TimetableRun:
    """What the clock saw."""

    timetable: Timetable
    times: StageTimes
    start: Floats
    """By pass, in the order of the timetable."""
    end: Floats
    sent: Floats
    """By pass: when its transfer starts; NaN where nothing crosses to another device."""
    arrived: Floats
    """By pass: when its output is where it is needed."""
    all_reduce_start: Floats
    """By piece of the model."""
    all_reduce_end: Floats

    @cached_property
    def makespan(self) -> float:
        """When the last pass and the last all-reduce are done."""
        return float(max(self.end.max(), self.all_reduce_end.max()))

    @cached_property
    def span(self) -> Floats:
        """By device: from the start of its first pass to the end of its last one."""
        rows = self.timetable.row_start
        return np.asarray(self.end[rows[1:] - 1] - self.start[rows[:-1]])

    @cached_property
    def busy(self) -> Floats:
        """By device: seconds in which it computes; two passes side by side count once."""
        counted = np.ones(len(self.start), bool)
        counted[1:] = ~self.timetable.paired[:-1]
        took = np.where(counted, self.end - self.start, 0.0)
        return np.bincount(self.timetable.device, took, self.timetable.devices).astype(np.float64)

    @property
    def bubble(self) -> float:
        """The share of the devices' time up to the makespan in which they do not compute."""
        return 1.0 - float(self.busy.sum()) / (self.timetable.devices * self.makespan) if self.makespan else 0.0

    @property
    def peak_live(self) -> NDArray[np.int64]:
        """By device: the most forward passes whose gradients are still to come."""
        return self.timetable.peak_live


def run(timetable: Timetable, times: StageTimes, *, half_duplex: bool = False) -> TimetableRun:
    """Lets the clock run over a timetable.

    >>> from ropewalk.timetable import early_backward
    >>> run(early_backward(4, 8), stage_times(1, 2, pieces=4)).makespan
    33.0
    """
    from ropewalk.timetable._clock_kernel import settle, take_turns

    timetable.check()
    every = _of_every_piece(timetable, times)
    link, links = _links(timetable, half_duplex)
    kernel = take_turns if half_duplex else settle
    start, end, sent, arrived, _ = kernel(
        timetable.row_start, timetable.device, timetable.paired, timetable.source, timetable.consumer,
        _seconds(timetable, every), link, _send_seconds(timetable, every), links,
    )  # fmt: skip
    reduce_start, reduce_end = _all_reduces(timetable, every, end)
    return TimetableRun(timetable, times, start, end, sent, arrived, reduce_start, reduce_end)


def _of_every_piece(table: Timetable, times: StageTimes) -> StageTimes:
    """The times of the pieces of all copies of the model; those of one copy hold for all."""
    if times.pieces == len(table.device_of_piece):
        return times
    if times.pieces != table.pieces:
        raise StrategyError(
            f"timetable {table.name} has {table.pieces} pieces, the times are those of {times.pieces}: "
            "give the times of every piece"
        )
    return times.copied(table.copies)


def _seconds(table: Timetable, times: StageTimes) -> Floats:
    """How long every pass occupies its device; passes side by side as long as the pair."""
    by_kind = np.stack((times.forward, times.backward + times.weight, times.backward, times.weight))
    alone = by_kind[table.kind, table.piece]
    first = np.flatnonzero(table.paired)
    if len(first):
        longer = np.maximum(alone[first], alone[first + 1])
        shorter = np.minimum(alone[first], alone[first + 1])
        alone[first] = alone[first + 1] = longer + (1.0 - times.overlap) * shorter
    return alone


def _links(table: Timetable, half_duplex: bool) -> tuple[NDArray[np.int64], int]:
    """The link that the output of every pass crosses, -1 where it stays; links are pairs of devices."""
    given = np.flatnonzero(table.consumer >= 0)
    here = table.device[given].astype(np.int64)
    there = table.device[table.consumer[given]].astype(np.int64)
    if half_duplex:
        here, there = np.minimum(here, there), np.maximum(here, there)
    crossing = here != there
    pairs, number = np.unique(here[crossing] * table.devices + there[crossing], return_inverse=True)
    link = np.full(table.passes, -1, np.int64)
    link[given[crossing]] = number
    return link, len(pairs)


def _send_seconds(table: Timetable, times: StageTimes) -> Floats:
    """How long the output of every pass occupies its link, were it to cross one."""
    # Nothing is handed on behind the last piece, and nothing back before the first: a zero keeps the arithmetic simple.
    onward = np.append(times.send_forward, 0.0)[table.piece]
    back = np.concatenate(([0.0], times.send_backward))[table.piece]
    return np.where(table.kind == Pass.FORWARD, onward, np.where(table.kind == Pass.WEIGHT, 0.0, back))


def _all_reduces(table: Timetable, times: StageTimes, end: Floats) -> tuple[Floats, Floats]:
    """First ready, first started; a device takes part in one at a time, with all copies of a piece in the same one."""
    done = np.zeros(len(table.device_of_piece))
    np.maximum.at(done, table.piece, end)
    ready = done.reshape(table.copies, table.pieces).max(axis=0)
    homes = table.device_of_piece.reshape(table.copies, table.pieces)
    took = times.all_reduce.reshape(table.copies, table.pieces).max(axis=0)
    free = np.zeros(table.devices)
    start, over = ready.copy(), ready.copy()
    for piece in np.lexsort((np.arange(table.pieces), ready)):
        start[piece] = max(ready[piece], free[homes[:, piece]].max())
        over[piece] = start[piece] + took[piece]
        if took[piece] > 0:
            free[homes[:, piece]] = over[piece]
    return start, over
