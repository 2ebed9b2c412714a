"""Snapshots of a network with priorities: what higher levels leave of links, and how it is shared below them.

The loops only; what they mean stands in `priority.py` and `moments.py`, what they read and fill in `laid.py`.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints, Ints32
from ropewalk.compiled import kernel
from ropewalk.tenancy.pacing._sharing_kernel import over_links, phase_at, put, tried
from ropewalk.tenancy.pacing.laid import DrawnMoments, LaidJobs, SeenPhases


@kernel
def _company_at(
    loads: Floats, level: int, kept: float, path: Ints32, first: int, last: int, nic_flows: float
) -> tuple[float, float, int]:
    """As `company_of` among flows of a level; then the same over what higher levels leave of links, and those held."""
    fullest, slowest, held = 0.0, 0.0, 0
    for flow in range(first, last):
        company, with_all = 0.0, 0.0
        for hop in range(path.shape[1]):
            link = path[flow, hop]
            if link < 0:
                continue
            higher = 0.0
            for above in range(level):
                higher += loads[above, link]
            left = max(1.0 - higher, kept)
            company = max(company, loads[level, link])
            with_all = max(with_all, loads[level, link] / left)
        fullest, slowest = max(fullest, company), max(slowest, with_all)
        if with_all > nic_flows * (1 + 1e-9):
            held += 1
    return fullest, slowest, held


@kernel
def look_by_level(
    level: Ints,
    loads: Floats,
    rate: Floats,
    kept: float,
    jobs: LaidJobs,
    drawn: DrawnMoments,
    load: Floats,
    seen: SeenPhases,
) -> None:
    """As `sample`, where `stretch` is what jobs of the same level do, and `rate` what higher ones leave of it.

    `loads` is room for [level, link], comes in empty and stays so.
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
                put(loads[level[job]], path, share, lasts, flow_start[now], flow_start[now + 1], into[job], 1.0)
        for job in range(count):
            trial, _ = tried(linked, phase_start[job], phase_start[job + 1], probe[job, shot] * total[job])
            probed[job, shot] = trial
            stretch[job, shot] = 1.0
            rate[job, shot] = 1.0
            met[job, shot] = 0.0
            if trial < 0:
                continue
            mine, own = loads[level[job]], active[job]
            first, last = flow_start[trial], flow_start[trial + 1]
            if own >= 0:
                put(mine, path, share, lasts, flow_start[own], flow_start[own + 1], into[job], -1.0)
            put(mine, path, share, lasts, first, last, -1.0, 1.0)
            fullest, slowest, held = _company_at(loads, level[job], kept, path, first, last, nic_flows[trial])
            shared_s = max(floor_s[trial], flow_s[trial] * fullest)
            stretch[job, shot] = shared_s / alone_s[trial]
            rate[job, shot] = shared_s / max(floor_s[trial], flow_s[trial] * slowest)
            met[job, shot] = held
            put(mine, path, share, lasts, first, last, -1.0, -1.0)
            if own >= 0:
                put(mine, path, share, lasts, flow_start[own], flow_start[own + 1], into[job], 1.0)
        for job in range(count):
            own = active[job]
            if own >= 0:
                put(loads[level[job]], path, share, lasts, flow_start[own], flow_start[own + 1], into[job], -1.0)
