"""What can be said of a job before it starts: whether it ever can, and how long it is expected to run."""

from __future__ import annotations

import math

import numpy as np

from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.footprint import footprint_of
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.paths import SwitchNetwork, ideal
from ropewalk.tenancy.policy import Allocate


class Expectations:
    """Jobs on the plant when nobody else is there."""

    def __init__(self, state: Occupancy, allocate: Allocate) -> None:
        self._allocate = allocate
        self._empty = state.copy()
        for name in list(self._empty.jobs):
            self._empty.release(name)
        self._places: dict[int, Allocation | Waiting] = {}
        self._run_s: dict[str, float] = {}

    def place(self, job: Job) -> Allocation | Waiting:
        """What a job of this size gets when everything is free, or why it can never start."""
        if job.gpus not in self._places:
            self._places[job.gpus] = self._allocate(self._empty, job.name, job.gpus)
        return self._places[job.gpus]

    def run_s(self, job: Job) -> float:
        """How long it says it runs; otherwise how long it would on a quiet network."""
        if job.expected_s is not None:
            return job.expected_s
        if job.name not in self._run_s:
            self._run_s[job.name] = self._quiet_s(job)
        return self._run_s[job.name]

    def _quiet_s(self, job: Job) -> float:
        place = self.place(job)
        if isinstance(place, Waiting):
            return math.inf
        plant = self._empty.plant
        network = SwitchNetwork(plant, plant.cables, lambda: np.zeros(0), 0)
        return job.iterations * footprint_of(job.work, place, network, ideal).quiet_iteration_s
