"""Snapshots of a shared network: who communicates at a moment, and how much longer everybody's round takes then.

The loops only; what they mean stands in `moments.py`, what they read and fill in `laid.py`.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints32
from ropewalk.compiled import kernel
from ropewalk.tenancy.pacing.laid import DrawnMoments, LaidJobs, SeenPhases


@kernel
def put(
    load: Floats, path: Ints32, share: Floats, lasts: Floats, first: int, last: int, into: float, sign: float
) -> None:
    """Add flows to their links; of a round that is `into` of its way those that still run."""
    for flow in range(first, last):
        if lasts[flow] > into:
            for hop in range(path.shape[1]):
                link = path[flow, hop]
                if link >= 0:
                    after = load[link] + sign * share[flow, hop]
                    load[link] = after if after > 1e-12 else 0.0  # fractions leave no rounding behind


@kernel
def phase_at(weight: Floats, first: int, last: int, where: float) -> tuple[int, float]:
    """The phase in which `where` seconds of communication fall, and which part of it is over; -1 behind the last."""
    for phase in range(first, last):
        if where < weight[phase]:
            return phase, where / weight[phase]
        where -= weight[phase]
    return -1, 0.0


@kernel
def over_links(jobs: LaidJobs) -> tuple[Floats, Floats]:
    """Seconds of every phase that uses links, 0 of the others, and their sum for each job."""
    phase_start, flow_start, alone_s = jobs.phase_start, jobs.flow_start, jobs.alone_s
    linked, total = np.zeros(len(alone_s)), np.zeros(len(phase_start) - 1)
    for job in range(len(total)):
        for phase in range(phase_start[job], phase_start[job + 1]):
            if flow_start[phase + 1] > flow_start[phase]:
                linked[phase] = alone_s[phase]
                total[job] += alone_s[phase]
    return linked, total


@kernel
def tried(linked: Floats, first: int, last: int, where: float) -> tuple[int, float]:
    """The phase over links that is looked at, and which part of it is over; -1 where there is none."""
    trial, part = phase_at(linked, first, last, where)
    if trial >= 0:
        return trial, part
    for phase in range(last - 1, first - 1, -1):
        if linked[phase] > 0:
            return phase, 0.5  # rounding has led past the end
    return -1, 0.0


@kernel
def company_of(load: Floats, path: Ints32, first: int, last: int, nic_flows: float) -> tuple[float, int]:
    """Flows on the fullest link of some, and how many of them find more than their NICs send."""
    fullest, held = 0.0, 0
    for flow in range(first, last):
        company = 0.0
        for hop in range(path.shape[1]):
            if path[flow, hop] >= 0:
                company = max(company, load[path[flow, hop]])
        fullest = max(fullest, company)
        if company > nic_flows * (1 + 1e-9):
            held += 1
    return fullest, held


@kernel
def sample(jobs: LaidJobs, drawn: DrawnMoments, load: Floats, seen: SeenPhases) -> None:
    """Fill what every job sees in every snapshot; `load` comes in empty and is left so.

    Flows that are done before the end of their round (`lasts`) are no longer there at its end.
    """
    phase_start, flow_start, path, share, lasts = jobs.phase_start, jobs.flow_start, jobs.path, jobs.share, jobs.lasts
    moment, probe, iteration_s, window_s = drawn.moment, drawn.probe, drawn.iteration_s, drawn.window_s
    floor_s, flow_s, alone_s, nic_flows, rounds = jobs.floor_s, jobs.flow_s, jobs.alone_s, jobs.nic_flows, jobs.rounds
    stretch, met, probed = seen.stretch, seen.met, seen.probed
    count, snapshots = moment.shape
    active = np.full(count, -1, np.int64)
    into = np.zeros(count)
    linked, total = over_links(jobs)
    for shot in range(snapshots):
        for job in range(count):
            where = moment[job, shot] * iteration_s[job]
            now, part = phase_at(window_s, phase_start[job], phase_start[job + 1], where)
            active[job] = now
            if now >= 0:
                into[job] = part * rounds[now] % 1.0
                put(load, path, share, lasts, flow_start[now], flow_start[now + 1], into[job], 1.0)
        for job in range(count):
            trial, _ = tried(linked, phase_start[job], phase_start[job + 1], probe[job, shot] * total[job])
            probed[job, shot] = trial
            if trial < 0:
                stretch[job, shot] = 1.0
                met[job, shot] = 0.0
                continue
            own = active[job]
            first, last = flow_start[trial], flow_start[trial + 1]
            if own >= 0:
                put(load, path, share, lasts, flow_start[own], flow_start[own + 1], into[job], -1.0)
            put(load, path, share, lasts, first, last, -1.0, 1.0)
            fullest, held = company_of(load, path, first, last, nic_flows[trial])
            stretch[job, shot] = max(floor_s[trial], flow_s[trial] * fullest) / alone_s[trial]
            met[job, shot] = held
            put(load, path, share, lasts, first, last, -1.0, -1.0)
            if own >= 0:
                put(load, path, share, lasts, flow_start[own], flow_start[own + 1], into[job], 1.0)
        for job in range(count):
            own = active[job]
            if own >= 0:
                put(load, path, share, lasts, flow_start[own], flow_start[own + 1], into[job], -1.0)
