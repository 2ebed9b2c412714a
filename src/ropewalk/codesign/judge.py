"""Who is faster: strategies timed on wirings and networks, each pair once.

Times are simulated. A step with very many transfers between pairs takes long to simulate; there turns of a search are
judged by estimate, and only what comes out of it is simulated.
"""

from __future__ import annotations

import math

import numpy as np

from ropewalk.codesign.estimate import estimate
from ropewalk.codesign.evaluate import time_step
from ropewalk.codesign.job import PricedQuestion
from ropewalk.codesign.link_loads import LinkLoads
from ropewalk.codesign.network import StepNetwork
from ropewalk.codesign.planes import PatchList, one_panel, patch_list
from ropewalk.errors import FabricError
from ropewalk.fabric.wiring import Wiring
from ropewalk.strategy.seating import Seating
from ropewalk.task.step import Act

MANY_SENDS = 30_000
"""Sends in a step from which on a search is judged by estimate."""
FINALISTS = 2
"""Wirings of a strategy that are simulated besides the first, those with the best estimates."""


class Judge:
    """Seconds of steps of one job."""

    def __init__(self, job: PricedQuestion) -> None:
        self.job = job
        sends = int(np.count_nonzero(job.step(job.space.seating(job.space.start)).act == Act.SEND))
        self.by_estimate = sends > MANY_SENDS
        self._on_wiring: dict[tuple[Seating, Wiring], float] = {}
        self._estimates: dict[tuple[Seating, Wiring], float] = {}
        self._can_be_built: dict[Wiring, bool] = {}
        self._wired: dict[Seating, Wiring] = {}

    def on_network(self, seating: Seating, network: StepNetwork) -> float:
        if self.by_estimate:
            return self.estimated(seating, network)
        return time_step(self.job.step(seating), network).seconds

    def on_wiring(self, seating: Seating, wiring: Wiring) -> float:
        """On a wiring with routes for this strategy; infinite where the wiring cannot be patched."""
        if not self._buildable(wiring):
            return math.inf
        if self.by_estimate:
            return self._estimated_on(seating, wiring)
        key = seating, wiring
        if key not in self._on_wiring:
            self._on_wiring[key] = self.on_network(seating, self.job.network(seating, wiring))
        return self._on_wiring[key]

    def wire(self, seating: Seating) -> Wiring:
        """The fastest wiring of those that are made for a strategy; ties go to the first, the published split."""
        if seating not in self._wired:
            first, *others = self.job.wirings(seating)
            if len(others) > FINALISTS:
                buildable = [wiring for wiring in others if self._buildable(wiring)]
                estimates = {one: self._estimated_on(seating, one) for one in buildable}
                others = sorted(buildable, key=lambda one: estimates[one])[:FINALISTS]
            self._wired[seating] = min([first, *others], key=lambda one: self.on_wiring(seating, one))
        return self._wired[seating]

    def estimated(self, seating: Seating, network: StepNetwork) -> float:
        loads = LinkLoads(network, self.job.question.servers, self.job.demands(seating))
        return estimate(self.job.pricer, seating, loads)

    def _estimated_on(self, seating: Seating, wiring: Wiring) -> float:
        key = seating, wiring
        if key not in self._estimates:
            self._estimates[key] = self.estimated(seating, self.job.network(seating, wiring))
        return self._estimates[key]

    def patches(self, wiring: Wiring) -> PatchList:
        """The patch list of a wiring; a wiring that has none is an error."""
        return (one_panel if self.job.question.single_panel else patch_list)(wiring)

    def _buildable(self, wiring: Wiring) -> bool:
        if wiring not in self._can_be_built:
            try:
                self.patches(wiring)
                self._can_be_built[wiring] = True
            except FabricError:
                self._can_be_built[wiring] = False
        return self._can_be_built[wiring]
