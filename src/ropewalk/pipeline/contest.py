"""Plans against each other: the clock times those that could still win."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.judge import Judged, Unfit, judge
from ropewalk.pipeline.plan import Plan
from ropewalk.pipeline.schedules import FITTED, homes, pieces_each, splits_backward
from ropewalk.timetable.stage_times import StageTimes

Array = NDArray[np.float64]

ROUNDING = 1e-9
"""Sums of the same seconds in another order differ by less."""
SAME = 1e-12
"""Steps that differ by less are equal."""


class Contest:
    """Remembers the best plan so far, how many the clock has run, and why others were no plans."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.best: Judged | None = None
        self.best_by_schedule: dict[str, Judged] = {}
        self.timed = 0
        self.unfit: dict[str, float] = {}
        """Reasons, each once, in the order in which they came up, and the memory of a GPU that would do."""

    def enter(self, plan: Plan, schedules: Iterable[str], within: float = np.inf) -> Judged | None:
        """The plan under the best of these schedules; None where it fits under none or a bound says it takes longer
        than `within`."""
        found: Judged | None = None
        for schedule in schedules:
            entry = replace(plan, schedule=schedule)
            times = self.costs.times(entry)
            reach = within if found is None else min(within, found.step_s)
            if least_seconds(times, entry) > reach * (1 + ROUNDING):
                continue
            judged = self.judge(entry, times)
            if judged is not None and is_faster(judged, found):
                found = judged
        return found

    def judge(self, plan: Plan, times: StageTimes | None = None) -> Judged | None:
        """Times one plan as it is."""
        judged = judge(self.costs, plan, times)
        if isinstance(judged, Unfit):
            self.unfit[judged.reason] = judged.needs_bytes
            return None
        self.timed += 1
        if is_faster(judged, self.best):
            self.best = judged
        if is_faster(judged, self.best_by_schedule.get(plan.schedule)):
            self.best_by_schedule[plan.schedule] = judged
        return judged

    @property
    def best_s(self) -> float:
        return np.inf if self.best is None else self.best.step_s


def is_faster(one: Judged, other: Judged | None) -> bool:
    """By more than rounding: of plans that take equally long the first one stays."""
    return other is None or one.step_s < other.step_s * (1 - SAME)


def with_pieces(schedules: Iterable[str], pieces: int) -> tuple[str, ...]:
    """Those of the schedules that cut the model into so many pieces a device and need no times to be written down."""
    return tuple(name for name in schedules if name != FITTED and pieces_each(name) == pieces)


def least_seconds(times: StageTimes, plan: Plan) -> float:
    """No timetable of this schedule's kind is faster: a device waits for its first input, works through all
    micro-batches, and its last backward pass still has to run through the stages before it.

    Where gradients of weights are put off, they may come last, and nothing has to follow them.
    """
    after = np.concatenate(([0.0], np.cumsum(times.forward[:-1] + times.send_forward)))
    back = np.concatenate(([0.0], np.cumsum(times.backward[:-1] + times.send_backward)))
    own = times.forward + times.backward + times.weight
    pieces = pieces_each(plan.schedule)
    devices = times.pieces // pieces
    if pieces == 1:
        first, least_back, work = after, back, own
    else:
        places = np.array(homes(plan.schedule, devices))
        first, least_back = np.full(devices, np.inf), np.full(devices, np.inf)
        work = np.zeros(devices)
        np.minimum.at(first, places, _without_sends(times.forward))
        np.minimum.at(least_back, places, _without_sends(times.backward))
        np.add.at(work, places, own)
    bound = first + plan.micro_batches * work
    if not splits_backward(plan.schedule):
        bound = bound + least_back
    return float(bound.max())


def _without_sends(passes: Array) -> Array:
    """Passes of the pieces before each one; hand-overs within a device cost nothing, so none is counted."""
    return np.concatenate(([0.0], np.cumsum(passes[:-1])))
