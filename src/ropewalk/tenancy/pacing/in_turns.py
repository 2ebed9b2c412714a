"""Jobs that take turns on links: shifted in time by CASSINI, so that one computes while the other communicates.

Iterations are cut into equal steps, the same for all jobs that share links. Whoever is shifted iterates in whole steps,
because only then does it stay in step with the others, and waits for the rest; it may wait up to 5 % of an iteration
(CASSINI's agents correct drifts of that size) to have a period that goes well with its neighbours'. Every set of
links that the same jobs share gets the best rotation of their circles; where that is better than not being in step by
more than the waiting costs, it becomes a link of the affinity graph, which gives every job its shift. Then each job is
looked at during its communication: those in step with it are where their shifts put them, all others anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, lcm, log

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats
from ropewalk.tenancy.footprint import Footprint
from ropewalk.tenancy.pacing._sharing_kernel import sample
from ropewalk.tenancy.pacing._turns_kernel import Turns, look_in_turns
from ropewalk.tenancy.pacing.affinity import Affinity, SharedLink, affinity
from ropewalk.tenancy.pacing.circle import best_turns, mean_score, perimeter
from ropewalk.tenancy.pacing.laid import DrawnMoments, LaidJobs, SeenPhases
from ropewalk.tenancy.pacing.moments import settled
from ropewalk.tenancy.pacing.pace import Company, JobPace, alone

STEPS = 72
"""Of the shortest iteration: 5 degrees of its circle each."""
PATIENCE = 0.05
"""Part of an iteration that a job may wait in every one to stay in step."""
MOST_JOBS = 6
"""On a link whose jobs are shifted; more than that never interleave."""


def in_turns(company: Company) -> list[JobPace]:
    """The pace of jobs that are shifted in time against each other, where that makes their iterations shorter.

    Jobs that ask for more than a link has cannot interleave: in step they would meet in every iteration. Those in step
    with each other go back to sharing the link at random where that is faster for them.
    """
    if len(company.footprints) == 1:
        return [alone(company.footprints[0])]
    step_s, periods, found = shifts_of(company)
    free = settled(company, sample)
    if not found.shift:
        return free
    shifted = _shifted(company, step_s, periods, found, set(found.group.values()))
    better = {
        group
        for group in set(found.group.values())
        if _stretch(company, shifted, found, group) < _stretch(company, free, found, group)
    }
    if not better:
        return free
    return shifted if len(better) == len(set(found.group.values())) else _shifted(
        company, step_s, periods, found, better
    )  # fmt: skip


def _stretch(company: Company, paces: list[JobPace], found: Affinity, group: int) -> float:
    """Iterations of those in step with each other over those alone, summed."""
    return sum(
        paces[job].iteration_s / company.footprints[job].alone_iteration_s
        for job, its in found.group.items()
        if its == group
    )


def _shifted(company: Company, step_s: float, periods: list[int], found: Affinity, groups: set[int]) -> list[JobPace]:
    """The pace of everybody when these groups are in step."""
    footprints, count = company.footprints, len(company.footprints)
    group, shift_s, period_s = np.full(count, -1, np.int64), np.zeros(count), np.zeros(count)
    for job, turn in found.shift.items():
        if found.group[job] in groups:
            group[job], shift_s[job], period_s[job] = found.group[job], turn * step_s, periods[job] * step_s
    turns = Turns(group, shift_s, period_s, _near(footprints, len(company.load)))

    def look(jobs: LaidJobs, drawn: DrawnMoments, load: Floats, seen: SeenPhases) -> None:
        look_in_turns(turns, jobs, drawn, load, seen)

    paces = settled(company, look)
    return [
        JobPace(max(pace.iteration_s, float(period)), pace.met_flows)
        for pace, period in zip(paces, period_s, strict=True)
    ]


def shifts_of(company: Company) -> tuple[float, list[int], Affinity]:
    """(seconds of a step, steps of every job's iteration, the shift of every job that takes turns)."""
    footprints = company.footprints
    shared = _shared_links(footprints)
    step_s = min(one.alone_iteration_s for one in footprints) / STEPS
    periods = _periods([one.alone_iteration_s / step_s for one in footprints], [jobs for jobs, _ in shared])
    links = []
    for jobs, link in shared:
        circles = [demand_of(footprints[job], link, step_s, periods[job]) for job in jobs]
        if len(jobs) > MOST_JOBS or perimeter(circles) is None:
            continue
        free = mean_score(circles)
        turns, reached = best_turns(circles)
        waits = max(periods[job] * step_s / footprints[job].alone_iteration_s - 1 for job in jobs)
        if reached - free > waits + 1e-3:
            links.append(SharedLink(dict(zip(jobs, turns, strict=True)), reached - free))
    return step_s, periods, affinity(links, dict(enumerate(periods)))


def _periods(iterations: list[float], shared: list[tuple[int, ...]]) -> list[int]:
    """Steps of every iteration: of those that a job can wait for the ones that give the shortest circles."""
    periods = [max(1, ceil(steps - 1e-9)) for steps in iterations]
    near: dict[int, set[int]] = {}
    for jobs in shared:
        for job in jobs:
            near.setdefault(job, set()).update(other for other in jobs if other != job)
    for _ in range(2):
        for job in sorted(near, key=lambda one: (-len(near[one]), one)):
            least = max(1, ceil(iterations[job] - 1e-9))
            most = max(least, int(iterations[job] * (1 + PATIENCE)))
            periods[job] = min(
                range(least, most + 1),
                key=lambda steps: (sum(log(lcm(steps, periods[other])) for other in near[job]), steps),
            )
    return periods


def demand_of(footprint: Footprint, link: int, step_s: float, steps: int) -> Floats:
    """What a job wants of a link, round its iteration in steps: the part of capacity that it uses when alone."""
    carried = footprint.load_in_phases(link)
    used = np.divide(
        footprint.flow_s * carried, footprint.alone_s, out=np.zeros(len(carried)), where=footprint.alone_s > 0
    )  # fmt: skip
    edges = np.concatenate([[0.0], np.cumsum(footprint.alone_s)])
    area = np.concatenate([[0.0], np.cumsum(used * footprint.alone_s)])
    at = np.minimum(np.arange(steps + 1) * step_s, edges[-1])
    return np.asarray(np.diff(np.interp(at, edges, area)) / step_s, np.float64)


def _shared_links(footprints: Sequence[Footprint]) -> list[tuple[tuple[int, ...], int]]:
    """(jobs, one link) for every set of jobs that share links; of the links they share the one that they use most."""
    links = np.unique(np.concatenate([one.links for one in footprints]))
    uses = np.zeros((len(footprints), len(links)), bool)
    wanted = np.zeros((len(footprints), len(links)))
    for job, footprint in enumerate(footprints):
        places = np.searchsorted(links, footprint.links)
        uses[job, places] = True
        wanted[job, places] = footprint.wanted
    shared = np.flatnonzero(uses.sum(axis=0) >= 2)
    ordered = shared[np.argsort(-wanted[:, shared].sum(axis=0), kind="stable")]
    # Most links are shared by jobs that share busier ones as well: only the first of every set of jobs is looked at.
    _, first = np.unique(np.packbits(uses[:, ordered], axis=0), axis=1, return_index=True)
    chosen = ordered[np.sort(first)].tolist()
    return [(tuple(np.flatnonzero(uses[:, at]).tolist()), int(links[at])) for at in chosen]


def _near(footprints: Sequence[Footprint], links: int) -> NDArray[np.bool_]:
    """[job, job]: do they share a link?"""
    uses = np.zeros((len(footprints), links), np.float32)
    for job, footprint in enumerate(footprints):
        uses[job, footprint.links] = 1.0
    shared = (uses @ uses.T) > 0
    np.fill_diagonal(shared, False)
    return np.asarray(shared)
