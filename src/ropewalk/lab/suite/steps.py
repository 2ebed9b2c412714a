"""The training step of a plan, as a run of a testbed: computing is a timed wait, every transfer really travels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.lab.measure import OWN_PATHS
from ropewalk.lab.network import LabNetwork
from ropewalk.lab.step import work_of_step
from ropewalk.lab.suite.testbed import Read, Ready, last_end
from ropewalk.sim.step import Window
from ropewalk.sim.trace import Trace
from ropewalk.task import TaskKind
from ropewalk.training import TrainingAnswer

LONGER = 2.0
"""Steps run so many times as long as other runs: links that were idle send some bytes at once, and theirs often are."""
CLOSE = 1e-9
"""Part of a run by which computations may end apart and still end together."""


@dataclass(frozen=True)
class StepSetup:
    """A simulated step, run again at 1/`scale` of its speeds; compared are seconds per sample, as on the fabric."""

    simulated: Callable[[int], TrainingAnswer]
    """Plans and simulates it, with a seed."""
    scale: float = 2500.0
    longer: float = LONGER

    @property
    def hashed(self) -> bool:
        return False

    @property
    def unit(self) -> str:
        return "sample"

    def ready(self, seconds: float, seed: int) -> Ready:
        found = self.simulated(seed)
        trace = found.run.trace
        network = LabNetwork(trace.routes.fabric, self.scale)
        # Several steps in a row share twice the time: of them one is compared.
        lasting = self.longer * seconds * (1 if found.window is None else 2)
        shrink = max(1.0, trace.makespan * self.scale / lasting)
        work = work_of_step(network, found.workload.name, trace, shrink, found.window)
        amount = found.strategy.global_batch * self.scale / shrink
        return Ready(network, OWN_PATHS, trace.routes, work, amount, _read(trace, found.window))


def _read(trace: Trace, window: Window | None) -> Read:
    """The time of the whole run, or of the step in the window: from the last computation before it to its own last."""
    if window is None:
        return last_end
    before, own = (_ending_at(trace, at) for at in (window.begin_s, window.end_s))

    def read(end: NDArray[np.float64]) -> float:
        return float(end[own].max() - end[before].max())

    return read


def _ending_at(trace: Trace, at_s: float) -> NDArray[np.int64]:
    """The computations that end at this moment."""
    computing = np.flatnonzero(trace.graph.kind == TaskKind.COMPUTE)
    return computing[np.abs(trace.end[computing] - at_s) <= CLOSE * trace.makespan]
