"""Jobs that are not in step: the mean over random moments of what the others are doing.

The model. Rounds of a collective end with a barrier, so a round takes as long as its slowest flow, and flows on a link
get equal parts of it: a round takes bytes / (bandwidth / flows) on its fullest link, or what its NICs take if that is
longer. That is the rule of the published simulations; max-min sharing gives a flow more only where others on its
fullest link are held up more elsewhere, which changes the times here by less than 0.1 %. What the others do at that
moment is random: iterations of different jobs are not in step, so a job is found in a phase with the probability of
that phase's part of its iteration. Both sides depend on each other: who is slowed down communicates longer and is met
more often. So the snapshots are evaluated again until times settle. What a job finds of another one must not count what
it does to that one itself: with fair sharing, whoever comes second into a round is delayed by what the first still has
to send, not by how long both take together. Of n jobs that slow another one down each finds it stretched by what the
other n - 1 do. For two jobs with equally many flows on a link that is exact over all offsets of their iterations; for n
equal ones it keeps links within their capacity.

Why snapshots and not mean loads: a round waits for its fullest link, and the mean of the fullest is far above the
fullest mean when many jobs each touch another link. Snapshots are drawn once for every job (a Latin hypercube, from the
seed and the number of the job), so the same set of jobs always gives the same times.

A flow on an emptier link is done before its round is, and others then find that link free: a snapshot has only the
flows of a round that still run. Against the flow simulator, which runs every round (`snapshot/`), two jobs on a link
agree within 2 %, and jobs of random worlds lie between 6 % below and 19 % above it, 2.5 % above on average where
collisions cost 38 % (`tests/agree`). What is left has two causes, both on the slow side. Of two jobs with m and k flows
on a link the first is taken to be slowed by 1 + k / m for as long as its phase lasts, but phases of the second that are
shorter than that delay it by no more than what they send. And others move on while a round lasts, so that the mean of
the fullest link is above the fullest mean of a round; that is a third of it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats
from ropewalk.tenancy.footprint import Footprint
from ropewalk.tenancy.pacing._sharing_kernel import sample
from ropewalk.tenancy.pacing.laid import DrawnMoments, LaidJobs, SeenPhases, laid, nothing_seen
from ropewalk.tenancy.pacing.pace import Company, JobPace, alone

SNAPSHOTS = 48
MOST_SWEEPS = 6
SETTLED = 0.005
"""Iteration times that change by less than this part between sweeps have settled."""


Look = Callable[[LaidJobs, DrawnMoments, Floats, SeenPhases], None]
"""Fills what jobs see at drawn moments: the contract of `sample`."""


def at_random_moments(company: Company) -> list[JobPace]:
    """The pace of jobs that share links in equal parts."""
    if len(company.footprints) == 1:
        return [alone(company.footprints[0])]
    return settled(company, sample)


def settled(company: Company, look: Look, *, of_rates: bool = False) -> list[JobPace]:
    """The pace of jobs by what they see at random moments, looked at again until times settle.

    `of_rates`: what is seen is how fast a phase gets on, and its mean is that of rates; otherwise how long it takes.
    """
    footprints = company.footprints
    jobs = laid(footprints)
    alone_s = jobs.alone_s
    seen = nothing_seen(len(footprints), company.moments.shape[2])
    moment, probe = np.ascontiguousarray(company.moments[:, 0]), np.ascontiguousarray(company.moments[:, 1])
    found_s, iteration_s = alone_s.copy(), np.array([one.alone_iteration_s for one in footprints])
    drawn = DrawnMoments(found_s, iteration_s.copy(), moment, probe)
    for _ in range(MOST_SWEEPS):
        look(jobs, drawn, company.load, seen)
        before = iteration_s.copy()
        for job, footprint in enumerate(footprints):
            mine = slice(jobs.phase_start[job], jobs.phase_start[job + 1])
            probed = seen.probed[job] - jobs.phase_start[job]
            took_s = stretched(footprint, probed, seen.stretch[job], of_rates=of_rates)
            iteration_s[job] = footprint.iteration_s(took_s)
            found_s[mine] = alone_s[mine] + (took_s - alone_s[mine]) * (1 - 1 / max(company.neighbours[job], 1))
            drawn.iteration_s[job] = footprint.iteration_s(found_s[mine])
        if (np.abs(iteration_s - before) <= SETTLED * before).all():
            break
    return [
        JobPace(float(seconds), met_flows(footprint, seen.probed[job] - jobs.phase_start[job], seen.met[job]))
        for job, (footprint, seconds) in enumerate(zip(footprints, iteration_s, strict=True))
    ]


def stretched(
    footprint: Footprint, probed: NDArray[np.int64], seen: NDArray[np.float64], *, of_rates: bool = False
) -> NDArray[np.float64]:
    """Seconds of every phase: phases of an exchange are stretched alike, by the mean of those that were probed."""
    if probed[0] < 0:
        return footprint.alone_s
    count = len(footprint.work.exchanges)
    exchange = footprint.exchange[probed]  # phases that use links, so none of computing
    tries = np.bincount(exchange, minlength=count)
    mean = np.where(tries > 0, np.bincount(exchange, seen, minlength=count) / np.maximum(tries, 1), seen.mean())
    over_links = np.diff(footprint.flow_start) > 0
    factor = 1 / mean if of_rates else mean
    return np.where(over_links, footprint.alone_s * factor[footprint.exchange], footprint.alone_s)


def met_flows(footprint: Footprint, probed: NDArray[np.int64], met: NDArray[np.float64]) -> float:
    """Flows of an iteration that share a link: the part of those probed, of all that cross leafs."""
    if probed[0] < 0:
        return 0.0
    flows = np.diff(footprint.flow_start)
    seen = flows[probed] * footprint.rounds[probed]
    weight = 1.0 / np.maximum(footprint.alone_s[probed], 1e-300)  # phases are probed by time, flows count by rounds
    part = float((met * footprint.rounds[probed] * weight).sum() / (seen * weight).sum())
    return part * float((flows * footprint.rounds).sum())
