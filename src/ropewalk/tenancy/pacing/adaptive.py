"""Adaptive routing: when a round begins, each of its flows takes the path with the fewest flows of that moment.

Jobs are looked at as at random moments (`moments.py`). What runs then has found its paths in order of coming; flows of
the round that is looked at come after all of them, as flows that begin now do. What they find is what they keep until
the round is over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ropewalk.tenancy.pacing._adaptive_kernel import look_for_paths
from ropewalk.tenancy.pacing.moments import settled
from ropewalk.tenancy.pacing.pace import Company, JobPace


def round_by_round(company: Company) -> list[JobPace]:
    """The pace of jobs whose flows choose a path anew in every round."""
    cables, core_cables, tiers = company.cables.astype(float), company.core_cables.astype(float), company.tiers
    switches = tiers.pod_of_leaf, tiers.first_spine, tiers.first_core, tiers.end_core
    room = [np.zeros(one.shape) for one in (cables, cables, core_cables, core_cables)]

    def look(*given: Any) -> None:
        look_for_paths(cables, core_cables, *switches, *room, *given)

    return settled(company, look)
