"""Snapshots of jobs that take turns: each during its own communication, with those in step where their shifts are.

The loops only; what they mean stands in `in_turns.py` and `moments.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel
from ropewalk.tenancy.pacing._sharing_kernel import _last_of, _phase_at, _put


@kernel
def look_in_turns(
    group: NDArray[np.int64],
    shift_s: NDArray[np.float64],
    period_s: NDArray[np.float64],
    near: NDArray[np.bool_],
    phase_start: NDArray[np.int64],
    floor_s: NDArray[np.float64],
    flow_s: NDArray[np.float64],
    alone_s: NDArray[np.float64],
    nic_flows: NDArray[np.float64],
    rounds: NDArray[np.float64],
    flow_start: NDArray[np.int64],
    path: NDArray[np.int32],
    share: NDArray[np.float64],
    lasts: NDArray[np.float64],
    window_s: NDArray[np.float64],
    iteration_s: NDArray[np.float64],
    moment: NDArray[np.float64],
    probe: NDArray[np.float64],
    load: NDArray[np.float64],
    stretch: NDArray[np.float64],
    met: NDArray[np.float64],
    probed: NDArray[np.int64],
) -> None:
    """As `sample`; jobs of the same `group` (not -1) begin iterations `shift_s` after each other, every `period_s`."""
    jobs, snapshots = moment.shape
    linked = np.zeros(len(alone_s))
    before = np.zeros(len(alone_s))
    total = np.zeros(jobs)
    active = np.full(jobs, -1, np.int64)
    into = np.zeros(jobs)
    for job in range(jobs):
        passed = 0.0
        for phase in range(phase_start[job], phase_start[job + 1]):
            before[phase] = passed
            passed += alone_s[phase]
            if flow_start[phase + 1] > flow_start[phase]:
                linked[phase] = alone_s[phase]
                total[job] += alone_s[phase]
    for job in range(jobs):
        for shot in range(snapshots):
            trial, part = _phase_at(linked, phase_start[job], phase_start[job + 1], probe[job, shot] * total[job])
            if trial < 0:
                trial, part = _last_of(linked, phase_start[job], phase_start[job + 1]), 0.5
            probed[job, shot] = trial
            stretch[job, shot] = 1.0
            met[job, shot] = 0.0
            if trial < 0:
                continue
            # A moment of the trial, some iterations on: which of them decides where others of other periods are.
            now = shift_s[job] + before[trial] + part * alone_s[trial]
            now += np.floor(moment[job, shot] * 5040.0) * period_s[job]
            for other in range(jobs):
                active[other] = -1
                if not near[job, other]:
                    continue
                if group[job] >= 0 and group[other] == group[job]:
                    where = (now - shift_s[other]) % period_s[other]
                else:
                    where = moment[other, shot] * iteration_s[other]
                phase, over = _phase_at(window_s, phase_start[other], phase_start[other + 1], where)
                active[other] = phase
                if phase >= 0:
                    into[other] = over * rounds[phase] % 1.0
                    _put(load, path, share, lasts, flow_start[phase], flow_start[phase + 1], into[other], 1.0)
            first, last = flow_start[trial], flow_start[trial + 1]
            _put(load, path, share, lasts, first, last, -1.0, 1.0)
            fullest, held = 0.0, 0
            for flow in range(first, last):
                company = 0.0
                for hop in range(path.shape[1]):
                    if path[flow, hop] >= 0:
                        company = max(company, load[path[flow, hop]])
                fullest = max(fullest, company)
                if company > nic_flows[trial] * (1 + 1e-9):
                    held += 1
            stretch[job, shot] = max(floor_s[trial], flow_s[trial] * fullest) / alone_s[trial]
            met[job, shot] = held
            _put(load, path, share, lasts, first, last, -1.0, -1.0)
            for other in range(jobs):
                phase = active[other]
                if phase >= 0:
                    _put(load, path, share, lasts, flow_start[phase], flow_start[phase + 1], into[other], -1.0)
