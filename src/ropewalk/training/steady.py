"""How long a step takes when one follows the other: gradients on a real network, step after step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import GraphError
from ropewalk.fabric import Fabric
from ropewalk.sim.step import StepRun, Window
from ropewalk.task.passes.gradients import Gradients
from ropewalk.task.passes.weave import Woven, woven
from ropewalk.training.network import NetworkUse, expand_on, run_on

Array = NDArray[np.float64]

STEPS_IN_A_ROW = 4
"""Steps that are run where gradients reach from one into the next."""
FEWEST_STEPS = 3
"""Steps that are needed to see two periods: the first one has nothing to wait for and does not count."""
STEADY = 1e-9
"""Part of a step by which two periods in a row may differ and still be the same."""


@dataclass(frozen=True, eq=False)
class GradientRun:
    """Gradients as they were launched, and the run of the step that they are woven into."""

    woven: Woven
    run: StepRun

    @cached_property
    def arrival_s(self) -> Array:
        """When the last piece of each shard is summed."""
        return np.array([self.run.times.end[sums].max() for sums in self.woven.sums])

    @cached_property
    def ends_s(self) -> Array:
        """When each step is over: the last rank has computed all of it."""
        return np.array(
            [self.run.times.end[self.woven.base_operation[ends]].max() for ends in self.woven.gradients.ends]
        )

    @property
    def periods_s(self) -> Array:
        """From the end of each step to the end of the next."""
        return np.diff(self.ends_s)

    @property
    def is_steady(self) -> bool:
        """Did the last two steps take equally long?"""
        return len(self.periods_s) > 1 and bool(
            abs(self.periods_s[-1] - self.periods_s[-2]) <= STEADY * self.periods_s[-1]
        )


def steady_step(run: StepRun, ends: Sequence[NDArray[np.int64]]) -> Window:
    """Of several steps in a row the last but one, behind which another has begun as behind every step."""
    over = [float(run.times.end[operations].max()) for operations in ends[-3:]]
    return Window(over[0], over[1], len(ends))


def changes_from_step_to_step(run: StepRun, ends: Sequence[NDArray[np.int64]]) -> bool:
    """Do the last two steps still take different times?"""
    before, last = np.diff([float(run.times.end[operations].max()) for operations in ends[-3:]])
    return bool(abs(last - before) > STEADY * last)


def run_gradients(gradients: Gradients, fabric: Fabric, use: NetworkUse | None = None) -> GradientRun:
    """Weave gradients into their step, put it on a fabric and run it; rank r is host r."""
    use = use or NetworkUse()
    whole = woven(gradients)
    return GradientRun(whole, run_on(whole.step, expand_on(whole.step, fabric, use), fabric, use))


def steady_step_seconds(gradients: Gradients, fabric: Fabric, use: NetworkUse | None = None) -> float:
    """Seconds from one step to the next, once steps repeat: the difference of the last two ends.

    Repeat the step first, `cross_barrier` or `with_barrier`, three times or more.

    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.task.passes import cross_barrier, sequence, with_barrier
    >>> from ropewalk.task.passes.data_parallel import data_parallel
    >>> from ropewalk.task.transport import Transport
    >>> fabric, use = IdealSwitch(2, bandwidth=1e9).build(), NetworkUse(transport=Transport())
    >>> gradients = sequence(data_parallel(2, [3e9, 6e9, 3e9], [2] * 3, [2] * 3), [0, 2, 1])
    >>> [round(steady_step_seconds(way(gradients, 4), fabric, use), 6) for way in (with_barrier, cross_barrier)]
    [21.0, 19.0]
    """
    if gradients.steps < FEWEST_STEPS:
        raise GraphError(
            f"{gradients.steps} steps in a row show no period: repeat the step {FEWEST_STEPS} times or more"
        )
    found = run_gradients(gradients, fabric, use)
    if not found.is_steady:
        raise GraphError(
            f"after {gradients.steps} steps the last two still differ ({found.periods_s[-2]:g} s and "
            f"{found.periods_s[-1]:g} s): repeat the step more often, or look at periods_s of run_gradients"
        )
    return float(found.periods_s[-1])
