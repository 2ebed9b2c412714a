"""How long a step takes when one follows the other, where gradients of one are on their way while the next begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ropewalk.sim.step import StepRun, Window

STEPS_IN_A_ROW = 4
"""Steps that are run: the first has nothing to wait for, and behind the last nothing comes."""
STEADY = 1e-9
"""Part of a step by which two in a row may differ and still be the same."""


def steady_step(run: StepRun, ends: Sequence[NDArray[np.int64]]) -> Window:
    """Of several steps in a row the last but one, behind which another has begun as behind every step.

    `ends` are the operations with which each is over.
    """
    over = _ends_s(run, ends)
    return Window(over[-3], over[-2], len(ends))


def changes_from_step_to_step(run: StepRun, ends: Sequence[NDArray[np.int64]]) -> bool:
    """Do the last two steps still take different times?"""
    before, last = np.diff(_ends_s(run, ends)[-3:])
    return bool(abs(last - before) > STEADY * last)


def _ends_s(run: StepRun, ends: Sequence[NDArray[np.int64]]) -> list[float]:
    """When each step is over: the last rank has computed all of it."""
    return [float(run.times.end[operations].max()) for operations in ends]
