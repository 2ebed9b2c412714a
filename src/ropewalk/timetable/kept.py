"""What devices keep for backward passes: by how much every pass changes it, and the average over a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.errors import StrategyError
from ropewalk.timetable.passes import Pass

if TYPE_CHECKING:
    from ropewalk.timetable.clock import TimetableRun
    from ropewalk.timetable.table import Timetable


def changes(
    table: Timetable, kept: Floats, until_weight: Floats | None = None, again: Floats | None = None
) -> tuple[Floats, Floats]:
    """By pass, the bytes that it adds to what its device keeps, and those that are there besides while it runs.

    A forward pass of piece i keeps `kept[i]`, from INPUT to WEIGHT it is `until_weight[i]`; while BACKWARD runs,
    `again[i]` come back besides.
    """
    every = len(table.device_of_piece)
    if len(kept) != every:
        raise StrategyError(f"{len(kept)} pieces keep something, the timetable has {every}: give one each")
    ahead = np.asarray(kept, np.float64)
    then = ahead if until_weight is None else np.asarray(until_weight, np.float64)
    back = np.zeros(every) if again is None else np.asarray(again, np.float64)
    change: Floats = np.stack((ahead, -ahead, then - ahead, -then))[table.kind, table.piece]
    return change, np.where(table.kind == Pass.BACKWARD, back[table.piece], 0.0)


def mean_kept(
    run: TimetableRun, kept: Floats, until_weight: Floats | None = None, again: Floats | None = None
) -> Floats:
    """By device, the bytes kept on average over the step.

    A pass takes what it keeps when it starts and gives back when it ends, as the peak counts them: the average is
    never above it.
    """
    change, besides = changes(run.timetable, kept, until_weight, again)
    since = np.where(change > 0, run.start, run.end)
    byte_seconds = change * (run.makespan - since) + besides * (run.end - run.start)
    total = np.bincount(run.timetable.device, byte_seconds, run.timetable.devices)
    return np.asarray(total / run.makespan if run.makespan else total, np.float64)
