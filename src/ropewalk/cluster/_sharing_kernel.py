"""Snapshots of a shared network: who communicates at a moment, and how much longer everybody's round takes then.

The loops only; what they mean stands in `rates.py`. Jobs, phases and flows are laid end to end.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_kernel = njit(cache=True, nogil=True)


@_kernel
def _put(
    load: NDArray[np.int32], up: NDArray[np.int32], down: NDArray[np.int32], first: int, last: int, amount: int
) -> None:
    for flow in range(first, last):
        load[up[flow]] += amount
        load[down[flow]] += amount


@_kernel
def _phase_at(weight: NDArray[np.float64], first: int, last: int, where: float) -> int:
    """The phase in which `where` seconds of communication fall; -1 behind the last."""
    for phase in range(first, last):
        where -= weight[phase]
        if where < 0:
            return phase
    return -1


@_kernel
def _last_of(weight: NDArray[np.float64], first: int, last: int) -> int:
    """The last phase with any weight, -1 where there is none."""
    for phase in range(last - 1, first - 1, -1):
        if weight[phase] > 0:
            return phase
    return -1


@_kernel
def sample(
    phase_start: NDArray[np.int64],
    floor_s: NDArray[np.float64],
    flow_s: NDArray[np.float64],
    alone_s: NDArray[np.float64],
    nic_flows: NDArray[np.int64],
    flow_start: NDArray[np.int64],
    up: NDArray[np.int32],
    down: NDArray[np.int32],
    window_s: NDArray[np.float64],
    iteration_s: NDArray[np.float64],
    moment: NDArray[np.float64],
    probe: NDArray[np.float64],
    load: NDArray[np.int32],
    stretch: NDArray[np.float64],
    met: NDArray[np.float64],
    probed: NDArray[np.int64],
) -> None:
    """Fill, for every (job, snapshot), how much longer the probed phase takes than alone, and which part of it is met.

    `window_s` is how long others find phases to take, in iterations of `iteration_s`. In a snapshot job j is
    `moment[j]` of the way through its iteration, which begins with its communication; independently of that, its phase
    at `probe[j]` of its communication over links is tried out among the others. `load` comes in empty and is left so.
    """
    jobs, snapshots = moment.shape
    active = np.full(jobs, -1, np.int64)
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
            active[job] = _phase_at(window_s, phase_start[job], phase_start[job + 1], where)
            if active[job] >= 0:
                _put(load, up, down, flow_start[active[job]], flow_start[active[job] + 1], 1)
        for job in range(jobs):
            trial = _phase_at(linked, phase_start[job], phase_start[job + 1], probe[job, shot] * total[job])
            if trial < 0:  # there is no communication over links, or rounding has led past its end
                trial = _last_of(linked, phase_start[job], phase_start[job + 1])
            probed[job, shot] = trial
            if trial < 0:
                stretch[job, shot] = 1.0
                met[job, shot] = 0.0
                continue
            own = active[job]
            first, last = flow_start[trial], flow_start[trial + 1]
            if own != trial:
                if own >= 0:
                    _put(load, up, down, flow_start[own], flow_start[own + 1], -1)
                _put(load, up, down, first, last, 1)
            fullest = 0
            held = 0
            for flow in range(first, last):
                company = max(load[up[flow]], load[down[flow]])
                fullest = max(fullest, company)
                if company > nic_flows[trial]:
                    held += 1
            stretch[job, shot] = max(floor_s[trial], flow_s[trial] * fullest) / alone_s[trial]
            met[job, shot] = held
            if own != trial:
                _put(load, up, down, first, last, -1)
                if own >= 0:
                    _put(load, up, down, flow_start[own], flow_start[own + 1], 1)
        for job in range(jobs):
            if active[job] >= 0:
                _put(load, up, down, flow_start[active[job]], flow_start[active[job] + 1], -1)
