"""Snapshots of jobs that take turns: each during its own communication, with those in step where their shifts are.

The loops only; what they mean stands in `in_turns.py` and `moments.py`, what they read and fill in `laid.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Flags, Floats, Ints
from ropewalk.compiled import kernel
from ropewalk.tenancy.pacing._sharing_kernel import company_of, over_links, phase_at, put, tried
from ropewalk.tenancy.pacing.laid import DrawnMoments, LaidJobs, SeenPhases


class Turns(NamedTuple):
    """Jobs of the same `group` (not -1) begin iterations `shift_s` after each other, every `period_s`."""

    group: Ints
    shift_s: Floats
    period_s: Floats
    near: Flags
    """[job, job]: do they share a link?"""


@kernel
def _before(jobs: LaidJobs) -> Floats:
    """Seconds of a job's iteration that are over when a phase begins."""
    before = np.zeros(len(jobs.alone_s))
    for job in range(len(jobs.phase_start) - 1):
        passed = 0.0
        for phase in range(jobs.phase_start[job], jobs.phase_start[job + 1]):
            before[phase] = passed
            passed += jobs.alone_s[phase]
    return before


@kernel
def look_in_turns(turns: Turns, jobs: LaidJobs, drawn: DrawnMoments, load: Floats, seen: SeenPhases) -> None:
    """As `sample`, with jobs that take turns."""
    group, shift_s, period_s, near = turns.group, turns.shift_s, turns.period_s, turns.near
    phase_start, flow_start, path, share, lasts = jobs.phase_start, jobs.flow_start, jobs.path, jobs.share, jobs.lasts
    moment, probe, iteration_s, window_s = drawn.moment, drawn.probe, drawn.iteration_s, drawn.window_s
    floor_s, flow_s, alone_s, nic_flows, rounds = jobs.floor_s, jobs.flow_s, jobs.alone_s, jobs.nic_flows, jobs.rounds
    stretch, met, probed = seen.stretch, seen.met, seen.probed
    count, snapshots = moment.shape
    active = np.full(count, -1, np.int64)
    into = np.zeros(count)
    linked, total = over_links(jobs)
    before = _before(jobs)
    for job in range(count):
        for shot in range(snapshots):
            trial, part = tried(linked, phase_start[job], phase_start[job + 1], probe[job, shot] * total[job])
            probed[job, shot] = trial
            stretch[job, shot] = 1.0
            met[job, shot] = 0.0
            if trial < 0:
                continue
            # A moment of the trial, some iterations on: which of them decides where others of other periods are.
            now = shift_s[job] + before[trial] + part * alone_s[trial]
            now += np.floor(moment[job, shot] * 5040.0) * period_s[job]
            for other in range(count):
                active[other] = -1
                if not near[job, other]:
                    continue
                if group[job] >= 0 and group[other] == group[job]:
                    where = (now - shift_s[other]) % period_s[other]
                else:
                    where = moment[other, shot] * iteration_s[other]
                phase, over = phase_at(window_s, phase_start[other], phase_start[other + 1], where)
                active[other] = phase
                if phase >= 0:
                    into[other] = over * rounds[phase] % 1.0
                    put(load, path, share, lasts, flow_start[phase], flow_start[phase + 1], into[other], 1.0)
            first, last = flow_start[trial], flow_start[trial + 1]
            put(load, path, share, lasts, first, last, -1.0, 1.0)
            fullest, held = company_of(load, path, first, last, nic_flows[trial])
            stretch[job, shot] = max(floor_s[trial], flow_s[trial] * fullest) / alone_s[trial]
            met[job, shot] = held
            put(load, path, share, lasts, first, last, -1.0, -1.0)
            for other in range(count):
                phase = active[other]
                if phase >= 0:
                    put(load, path, share, lasts, flow_start[phase], flow_start[phase + 1], into[other], -1.0)
