"""What a plan takes and holds: its exact step by the clock, its memory, and whether it fits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.errors import StrategyError
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.schedules import FITTED, homes, pieces_each, table_of, within
from ropewalk.timetable.automatic import automatic
from ropewalk.timetable.clock import TimetableRun, run
from ropewalk.timetable.kept import mean_kept
from ropewalk.timetable.named import TIMETABLES
from ropewalk.timetable.stage_times import StageTimes
from ropewalk.timetable.table import Timetable

NEXT_TO_NOTHING = 1e-9
"""The part of its room that a device keeps of a micro-batch where it keeps nothing."""


@dataclass(frozen=True, eq=False)
class HeldBytes:
    """What a GPU holds: the state by device, and by piece what a micro-batch keeps and brings back."""

    state: Floats
    kept: Floats
    until_weight: Floats
    again: Floats


@dataclass(frozen=True, eq=False)
class Judged:
    """A plan that fits, with its step."""

    plan: PipelinePlan
    run: TimetableRun
    memory_bytes: tuple[float, ...]
    """By set of GPUs, in the order of `plan.devices`: on each GPU of it, at its fullest."""
    held: HeldBytes

    @cached_property
    def average_memory_bytes(self) -> tuple[float, ...]:
        """The same on average over the step."""
        held = self.held
        kept = mean_kept(self.run, held.kept, held.until_weight, held.again)
        return tuple((held.state + kept).tolist())

    @property
    def step_s(self) -> float:
        return self.run.makespan

    @property
    def loads(self) -> Floats:
        """Seconds per micro-batch by stage and cut: stage k is at 2k, the cut behind it at 2k + 1.

        With two copies of the model, the means of what the GPUs of a stage do of both, and of what a direction carries.
        """
        times, count = self.run.times, len(self.plan.stages)
        copies = times.pieces // count
        own = (times.forward + times.backward + times.weight).reshape(copies, count)
        onward, back = (np.append(sends, 0.0).reshape(copies, count)[:, :-1]
                        for sends in (times.send_forward, times.send_backward))  # fmt: skip
        load = np.zeros(2 * count - 1)
        if copies == 1:
            load[::2], load[1::2] = own[0], np.maximum(onward[0], back[0])
        else:
            load[::2] = (own[0] + own[1, ::-1]) / 2
            load[1::2] = np.maximum(onward[0] + back[1, ::-1], back[0] + onward[1, ::-1]) / 2
        return load

    @property
    def bottleneck(self) -> int:
        """The place in `loads` of the stage or transfer that takes longest for all micro-batches."""
        return int(self.loads.argmax())

    @property
    def exposed_sums_s(self) -> float:
        """Seconds at the end of the step in which nothing but gradients is added up."""
        return max(0.0, self.run.makespan - float(self.run.end.max()))


@dataclass(frozen=True)
class Unfit:
    """Why a plan is no plan."""

    reason: str
    needs_bytes: float = inf
    """Of a GPU, where more memory would make it one."""


def judge(costs: Costs, plan: PipelinePlan, times: StageTimes | None = None) -> Judged | Unfit:
    """The step of a plan, or the reason why it has none; `times` are those of the plan, where they are known."""
    if times is None:
        times = costs.times(plan)
    size = plan.micro_batch
    whole = np.array([costs.kept_bytes(piece, size) for piece in plan.pieces])
    kept = np.array([costs.input_bytes(piece, size) for piece in plan.pieces]) if plan.recompute else whole
    again = whole if plan.recompute else np.zeros_like(whole)
    table = _timetable(costs, plan, times, kept, again)
    if isinstance(table, Unfit):
        return table
    held = HeldBytes(state_bytes(costs, plan), kept, kept + again, again)
    full = held.state + table.peak_kept(held.kept, held.until_weight, held.again)
    over = _over(costs, full, plan)
    return over or Judged(plan, run(table, times), tuple(full.tolist()), held)


def state_bytes(costs: Costs, plan: PipelinePlan) -> Floats:
    """By device, what is there all the time: weights and all that goes with them."""
    held = np.zeros(len(plan.devices))
    np.add.at(held, list(plan.homes), [costs.state_bytes(piece, plan.micro_batch) for piece in plan.pieces])
    return held


def _timetable(costs: Costs, plan: PipelinePlan, times: StageTimes, kept: Floats, again: Floats) -> Timetable | Unfit:
    memory = costs.terms.memory_bytes
    devices = len(plan.stages) // pieces_each(plan.schedule)
    if len(plan.stages) != len(homes(plan.schedule, devices)) or len(plan.devices) != devices:
        return Unfit(f"{plan.schedule} cuts the model into {pieces_each(plan.schedule)} chunks per device")
    if any(plan.stages[at].workers != plan.devices[home] for at, home in enumerate(homes(plan.schedule, devices))):
        return Unfit(f"{plan.schedule} puts its pieces on other devices than the plan does")
    if any(
        one.tensor != other.tensor for one, other in zip(plan.stages, plan.pieces[len(plan.stages) :], strict=False)
    ):
        return Unfit(f"{plan.schedule} places opposite stages on the same GPUs, so both need the same tensor degree")
    if memory is not None and (TIMETABLES[plan.schedule].within_memory or plan.schedule == FITTED):
        held = state_bytes(costs, plan)
        if TIMETABLES[plan.schedule].within_memory:
            held = held + again  # room to compute one micro-batch again
        room = memory - held
        if (room < 0).any():
            return _over(costs, held, plan) or Unfit("it does not fit")
        if TIMETABLES[plan.schedule].within_memory:
            fit = [
                plan.micro_batches if each == 0 else int(left // each) for left, each in zip(room, kept, strict=True)
            ]
            table = within(plan.schedule, fit, plan.micro_batches)
            return table or _over(costs, held + kept, plan) or Unfit("it does not fit")
    if plan.schedule == FITTED:
        return _fitted(plan, times, kept + again, None if memory is None else room)
    found = table_of(plan.schedule, devices, plan.micro_batches)
    if found is None:
        return Unfit(f"there is no {plan.schedule} for {plan.micro_batches} micro-batches on {devices} devices")
    return found


def _fitted(plan: PipelinePlan, times: StageTimes, kept: Floats, room: Floats | None) -> Timetable | Unfit:
    """The timetable made for these times; what a device may keep is counted in parts of its own room."""
    most = kept * plan.micro_batches if room is None else room
    if (kept > most).any():
        return Unfit("it does not fit")
    shares = np.divide(kept, most, out=np.zeros_like(kept), where=most > 0)
    shares = np.maximum(shares, NEXT_TO_NOTHING)
    try:
        return automatic(times, plan.micro_batches, kept=shares, limit=1.0).timetable
    except StrategyError as error:
        return Unfit(str(error))


def _over(costs: Costs, held: Floats, plan: PipelinePlan) -> Unfit | None:
    memory = costs.terms.memory_bytes
    if memory is None or held.max() <= memory * (1 + 1e-12):
        return None
    fullest = int(held.argmax())
    return Unfit(
        f"stage {fullest} of {plan.strategy} needs {held[fullest] / 1e9:.1f} GB on a GPU, which has "
        f"{memory / 1e9:g} GB: cut it smaller, recompute, or make micro-batches smaller",
        float(held[fullest]),
    )
