"""Snapshots of a shared network: who communicates at a moment, and how much longer everybody's round takes then.

The loops only; what they mean stands in `rates.py`. Jobs, phases and flows are laid end to end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel


@kernel
def _put(
    load: NDArray[np.float64],
    path: NDArray[np.int32],
    share: NDArray[np.float64],
    lasts: NDArray[np.float64],
    first: int,
    last: int,
    into: float,
    sign: float,
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
def _phase_at(weight: NDArray[np.float64], first: int, last: int, where: float) -> tuple[int, float]:
    """The phase in which `where` seconds of communication fall, and which part of it is over; -1 behind the last."""
    for phase in range(first, last):
        if where < weight[phase]:
            return phase, where / weight[phase]
        where -= weight[phase]
    return -1, 0.0


@kernel
def _last_of(weight: NDArray[np.float64], first: int, last: int) -> int:
    """The last phase with any weight, -1 where there is none."""
    for phase in range(last - 1, first - 1, -1):
        if weight[phase] > 0:
            return phase
    return -1


@kernel
def sample(
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
    """Fill, for every (job, snapshot), how much longer the probed phase takes than alone, and which part of it is met.

    `window_s` is how long others find phases to take, in iterations of `iteration_s`. In a snapshot job j is
    `moment[j]` of the way through its iteration, which begins with its communication; flows that are done before the
    end of their round (`lasts`) are no longer there at its end. Independently of that, its phase at `probe[j]` of its
    communication over links is tried out among the others. `load` comes in empty and is left so.
    """
    jobs, snapshots = moment.shape
    active = np.full(jobs, -1, np.int64)
    into = np.zeros(jobs)
    linked = np.zeros(len(alone_s))
    total = np.zeros(jobs)
    for job in range(jobs):
        for phase in range(phase_start[job], phase_start[job + 1]):
            if flow_start[phase + 1] > flow_start[phase]:
                linked[phase] = alone_s[phase]
                total[job] += alone_s[phase]
    for shot in range(snapshots):
        for job in range(jobs):
            where = moment[job, shot] * iteration_s[job]
            now, part = _phase_at(window_s, phase_start[job], phase_start[job + 1], where)
            active[job] = now
            if now >= 0:
                into[job] = part * rounds[now] % 1.0
                _put(load, path, share, lasts, flow_start[now], flow_start[now + 1], into[job], 1)
        for job in range(jobs):
            trial, _ = _phase_at(linked, phase_start[job], phase_start[job + 1], probe[job, shot] * total[job])
            if trial < 0:  # there is no communication over links, or rounding has led past its end
                trial = _last_of(linked, phase_start[job], phase_start[job + 1])
            probed[job, shot] = trial
            if trial < 0:
                stretch[job, shot] = 1.0
                met[job, shot] = 0.0
                continue
            own = active[job]
            first, last = flow_start[trial], flow_start[trial + 1]
            if own >= 0:
                _put(load, path, share, lasts, flow_start[own], flow_start[own + 1], into[job], -1)
            _put(load, path, share, lasts, first, last, -1.0, 1)
            fullest = 0.0
            held = 0
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
            _put(load, path, share, lasts, first, last, -1.0, -1)
            if own >= 0:
                _put(load, path, share, lasts, flow_start[own], flow_start[own + 1], into[job], 1)
        for job in range(jobs):
            own = active[job]
            if own >= 0:
                _put(load, path, share, lasts, flow_start[own], flow_start[own + 1], into[job], -1)
