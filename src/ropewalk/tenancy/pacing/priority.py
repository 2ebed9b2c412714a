"""Flows by priority: a link serves a level only with what higher levels leave free.

Jobs are looked at as at random moments (`moments.py`). Jobs of the same level share what is left in equal parts, and a
phase takes longer by that on average over moments. What higher levels take away is time in which a phase stands still,
so it lasts as long as it takes to get through what is left on average: the mean is that of rates. Switches keep a small
part of a link for every level, so that nobody starves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats
from ropewalk.tenancy.pacing._priority_kernel import look_by_level
from ropewalk.tenancy.pacing.compression import compressed
from ropewalk.tenancy.pacing.intensity import priorities, rival_of
from ropewalk.tenancy.pacing.laid import DrawnMoments, LaidJobs, SeenPhases
from ropewalk.tenancy.pacing.moments import settled
from ropewalk.tenancy.pacing.pace import Company, JobPace, alone

KEPT = 0.02
"""Part of a link that a level keeps whatever goes before it."""


def by_intensity(company: Company) -> list[JobPace]:
    """The pace of jobs whose flows go by Crux's priorities, compressed to the levels of switches."""
    if len(company.footprints) == 1:
        return [alone(company.footprints[0])]
    return at_levels(company, levels_of(company))


def levels_of(company: Company) -> NDArray[np.int64]:
    """The level of every job, 0 first."""
    rivals = [rival_of(one) for one in company.footprints]
    rank = np.array(priorities(rivals))
    order = np.lexsort((np.arange(len(rank)), -rank))
    links = [set(one.links.tolist()) for one in company.footprints]
    edges = {
        (int(first), int(other)): float(min(rivals[first].intensity, 1e30))
        for place, first in enumerate(order)
        for other in order[place + 1 :]
        if not links[first].isdisjoint(links[other])
    }
    return compressed(rank, edges)


def at_levels(company: Company, level: NDArray[np.int64]) -> list[JobPace]:
    """The pace of jobs with these levels."""
    count = int(level.max()) + 1
    loads = np.zeros((count, len(company.load)))
    rate = np.ones((len(company.footprints), company.moments.shape[2]))

    def look(jobs: LaidJobs, drawn: DrawnMoments, load: Floats, seen: SeenPhases) -> None:
        look_by_level(level, loads, rate, KEPT, jobs, drawn, load, seen)
        np.divide(seen.stretch, rate.mean(axis=1)[:, None], out=seen.stretch)

    return settled(company, look)
