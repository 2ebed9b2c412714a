"""Adaptive routing: when a round begins, each of its flows takes the path with the fewest flows of that moment.

Jobs are looked at as at random moments (`moments.py`). What runs then has found its paths in order of coming; flows of
the round that is looked at come after all of them, as flows that begin now do. What they find is what they keep until
the round is over.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.tenancy.pacing._adaptive_kernel import CableFlows, SwitchCables, look_for_paths
from ropewalk.tenancy.pacing.laid import DrawnMoments, LaidJobs, SeenPhases
from ropewalk.tenancy.pacing.moments import settled
from ropewalk.tenancy.pacing.pace import Company, JobPace


def round_by_round(company: Company) -> list[JobPace]:
    """The pace of jobs whose flows choose a path anew in every round."""
    cables, core_cables, tiers = company.cables.astype(float), company.core_cables.astype(float), company.tiers
    switches = SwitchCables(cables, core_cables, tiers.pod_of_leaf, tiers.first_spine, tiers.first_core, tiers.end_core)
    carried = CableFlows(*(np.zeros(one.shape) for one in (cables, cables, core_cables, core_cables)))

    def look(jobs: LaidJobs, drawn: DrawnMoments, load: Floats, seen: SeenPhases) -> None:
        look_for_paths(switches, carried, jobs, drawn, load, seen)

    return settled(company, look)
