"""The timetables as a planner sees them: where the pieces of the model live, and what fits in memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ropewalk.errors import StrategyError
from ropewalk.timetable.named import TIMETABLES
from ropewalk.timetable.table import Timetable
from ropewalk.timetable.v_shape import v_homes
from ropewalk.timetable.warm_up import with_warm_up

FITTED = "zb-auto"
"""The zero-bubble timetable that is made for the times of a plan, tried on the best plans alone."""


def searched() -> tuple[str, ...]:
    """Those that planners try unless told otherwise.

    DualPipe is for models whose passes hide communication of each other, which a profile does not show.
    """
    return tuple(name for name, one in TIMETABLES.items() if one.searched and not one.side_by_side)


def splits_backward(schedule: str) -> bool:
    """Are gradients of weights put off?"""
    return TIMETABLES[schedule].splits_backward


def pieces_each(schedule: str) -> int:
    """Pieces of the model on a device."""
    return TIMETABLES[schedule].pieces_each


def copies(schedule: str) -> int:
    """Copies of the model that GPUs keep."""
    return TIMETABLES[schedule].copies


def homes(schedule: str, devices: int) -> tuple[int, ...]:
    """The device of every piece of one copy of the model."""
    if pieces_each(schedule) == 1:
        return tuple(range(devices))
    return (*range(devices), *range(devices)) if schedule == "interleaved" else tuple(v_homes(devices))


@lru_cache(maxsize=1024)
def table_of(schedule: str, devices: int, micro_batches: int) -> Timetable | None:
    """The timetable of a schedule; None where it does not exist for these numbers."""
    try:
        return TIMETABLES[schedule].make(devices, micro_batches)
    except StrategyError:
        return None


def within(schedule: str, fit: Sequence[int], micro_batches: int) -> Timetable | None:
    """Early backward when device i has room for `fit[i]` micro-batches; None where one has room for none.

    >>> print(within("1f1b", (1, 3), 2))
    1f1b: 2 devices, 2 pieces, 2 micro-batches
    0  0F0 0B0 0F1 0B1
    1  1F0 1B0 1F1 1B1
    """
    devices = len(fit)
    ahead = []
    most = micro_batches
    for device, room in enumerate(fit):
        behind = devices - device
        # A device that is further ahead than the one before it would wait for what never comes.
        most = min(most, room)
        ahead.append(min(2 * behind - 1 if schedule == "1f1b-deep" else behind, most))
    return _warmed_up(schedule, tuple(ahead), micro_batches) if most >= 1 else None


@lru_cache(maxsize=1024)
def _warmed_up(schedule: str, ahead: tuple[int, ...], micro_batches: int) -> Timetable:
    return with_warm_up(schedule, ahead, micro_batches)
