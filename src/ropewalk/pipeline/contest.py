"""Plans against each other: the clock times those that could still win."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.judge import Judged, Unfit, judge
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.schedules import FITTED, pieces_each, splits_backward
from ropewalk.timetable.stage_times import StageTimes

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
        self.interrupted = False
        """Did somebody end the search before it was over?"""
        self.unfit: dict[str, float] = {}
        """Reasons, each once, in the order in which they came up, and the memory of a GPU that would do."""

    def enter(self, plan: PipelinePlan, schedules: Iterable[str], within: float = np.inf) -> Judged | None:
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

    def judge(self, plan: PipelinePlan, times: StageTimes | None = None) -> Judged | None:
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
    """Those of the schedules that cut the model into so many chunks per device and need no times to be written down."""
    return tuple(name for name in schedules if name != FITTED and pieces_each(name) == pieces)


def least_seconds(times: StageTimes, plan: PipelinePlan) -> float:
    """No timetable of this schedule's kind is faster: a device waits for its first input, works through all
    micro-batches, and its last backward pass still has to run through the stages before it.

    Where gradients of weights are put off, they may come last, and nothing has to follow them.
    """
    # Hand-overs within a device cost nothing, so none is counted where devices have several pieces.
    sends = 1.0 if pieces_each(plan.schedule) == 1 else 0.0
    copies = times.pieces // len(plan.stages)
    first = _before(times.forward, sends * times.send_forward, copies)
    least_back = _before(times.backward, sends * times.send_backward, copies)
    work = times.forward + times.backward + times.weight
    if len(plan.devices) < times.pieces:
        places = list(plan.homes)
        first, least_back, work = (
            _by_device(gather, places, column)
            for gather, column in ((np.minimum, first), (np.minimum, least_back), (np.add, work))
        )
    bound = first + plan.micro_batches / copies * work
    if not splits_backward(plan.schedule):
        bound = bound + least_back
    return float(bound.max())


def _before(passes: Floats, sends: Floats, copies: int) -> Floats:
    """What comes before each piece: the passes of those before it in its own copy of the model, and hand-overs."""
    steps = (passes + np.append(sends, 0.0)).reshape(copies, -1)
    return np.asarray((np.cumsum(steps, axis=1) - steps).ravel())


def _by_device(gather: np.ufunc, places: list[int], column: Floats) -> Floats:
    found = np.full(max(places) + 1, 0.0 if gather is np.add else np.inf)
    gather.at(found, places, column)
    return found
