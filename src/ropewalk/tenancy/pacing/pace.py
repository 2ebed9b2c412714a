"""What is asked and answered of jobs that share links: who they are, and how each of them gets on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.footprint import Footprint
from ropewalk.tenancy.tiers import Tiers


@dataclass(frozen=True)
class JobPace:
    """How a job gets on: seconds of an iteration, and the flows of an iteration that meet another one."""

    iteration_s: float
    met_flows: float


@dataclass(frozen=True, eq=False)
class Company:
    """Jobs that share links, directly or through others, in order of coming."""

    footprints: Sequence[Footprint]
    neighbours: NDArray[np.int64]
    """How many of the others share a link with each."""
    moments: NDArray[np.float64]
    """[job, (moment, probe), snapshot] in [0, 1): where jobs are in their iterations, drawn once for each."""
    load: NDArray[np.float64]
    """Room for one number for every link, all 0."""
    cables: NDArray[np.int32]
    """[leaf, spine]: cables that are alive."""
    core_cables: NDArray[np.int32]
    """[spine, core]: the same above spines."""
    tiers: Tiers


Pacing = Callable[[Company], list[JobPace]]
"""How jobs that share links get on."""


def alone(footprint: Footprint) -> JobPace:
    """A job that nobody disturbs."""
    return JobPace(footprint.alone_iteration_s, footprint.met_alone)
