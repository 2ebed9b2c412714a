"""Snapshots of a network with adaptive routing: flows choose their spines one after the other.

The loops only; what they mean stands in `adaptive.py` and `moments.py`. Paths hold the link up of a flow's leaf (twice
its number) and the link down of the other one (twice its number plus 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel
from ropewalk.tenancy.pacing._sharing_kernel import _last_of, _phase_at


@kernel
def _choose(
    cables: NDArray[np.float64],
    up: NDArray[np.float64],
    down: NDArray[np.float64],
    a: int,
    b: int,
    first: int,
) -> int:
    """The spine whose fuller cable would carry least with one flow more; -1 where no spine leads there."""
    spines = cables.shape[1]
    best, best_most, best_sum = -1, np.inf, np.inf
    for turn in range(spines):
        spine = (first + turn) % spines
        if cables[a, spine] == 0 or cables[b, spine] == 0:
            continue
        rise, fall = (up[a, spine] + 1) / cables[a, spine], (down[b, spine] + 1) / cables[b, spine]
        most, total = max(rise, fall), rise + fall
        if most < best_most or (most == best_most and total < best_sum):
            best, best_most, best_sum = spine, most, total
            if up[a, spine] == 0 and down[b, spine] == 0:
                break  # nothing is emptier than empty
    return best


@kernel
def look_for_paths(
    cables: NDArray[np.float64],
    up: NDArray[np.float64],
    down: NDArray[np.float64],
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
    """As `sample`, with flows that choose; `up` and `down` are room for [leaf, spine], come in empty and stay so."""
    jobs, snapshots = moment.shape
    active = np.full(jobs, -1, np.int64)
    into = np.zeros(jobs)
    linked = np.zeros(len(alone_s))
    total = np.zeros(jobs)
    taken = np.full(len(path), -1, np.int64)
    weight = np.zeros(len(path))
    for flow in range(len(path)):
        weight[flow] = share[flow, 0] * cables[path[flow, 0] // 2].sum()  # a share is that of all cables of the leaf
    for job in range(jobs):
        for phase in range(phase_start[job], phase_start[job + 1]):
            if flow_start[phase + 1] > flow_start[phase]:
                linked[phase] = alone_s[phase]
                total[job] += alone_s[phase]
    for shot in range(snapshots):
        for job in range(jobs):
            now, part = _phase_at(
                window_s, phase_start[job], phase_start[job + 1], moment[job, shot] * iteration_s[job]
            )  # fmt: skip
            active[job] = now
            if now >= 0:
                into[job] = part * rounds[now] % 1.0
                for flow in range(flow_start[now], flow_start[now + 1]):
                    taken[flow] = -1
                    if lasts[flow] > into[job]:
                        a, b = path[flow, 0] // 2, path[flow, 1] // 2
                        spine = _choose(cables, up, down, a, b, flow)
                        taken[flow] = spine
                        if spine >= 0:
                            up[a, spine] += weight[flow]
                            down[b, spine] += weight[flow]
        for job in range(jobs):
            trial, _ = _phase_at(linked, phase_start[job], phase_start[job + 1], probe[job, shot] * total[job])
            if trial < 0:
                trial = _last_of(linked, phase_start[job], phase_start[job + 1])
            probed[job, shot] = trial
            if trial < 0:
                stretch[job, shot] = 1.0
                met[job, shot] = 0.0
                continue
            own = active[job]
            if own >= 0:
                _move(path, weight, taken, up, down, flow_start[own], flow_start[own + 1], -1.0)
            first, last = flow_start[trial], flow_start[trial + 1]
            chosen = np.full(last - first, -1, np.int64)
            for flow in range(first, last):
                a, b = path[flow, 0] // 2, path[flow, 1] // 2
                spine = _choose(cables, up, down, a, b, flow)
                chosen[flow - first] = spine
                if spine >= 0:
                    up[a, spine] += weight[flow]
                    down[b, spine] += weight[flow]
            fullest, held = 0.0, 0
            for flow in range(first, last):
                spine = chosen[flow - first]
                if spine >= 0:
                    a, b = path[flow, 0] // 2, path[flow, 1] // 2
                    company = max(up[a, spine] / cables[a, spine], down[b, spine] / cables[b, spine])
                    fullest = max(fullest, company)
                    if company > nic_flows[trial] * (1 + 1e-9):
                        held += 1
            stretch[job, shot] = max(floor_s[trial], flow_s[trial] * fullest) / alone_s[trial]
            met[job, shot] = held
            for flow in range(first, last):
                spine = chosen[flow - first]
                if spine >= 0:
                    a, b = path[flow, 0] // 2, path[flow, 1] // 2
                    up[a, spine] -= weight[flow]
                    down[b, spine] -= weight[flow]
            if own >= 0:
                _move(path, weight, taken, up, down, flow_start[own], flow_start[own + 1], 1.0)
        up[:] = 0.0
        down[:] = 0.0


@kernel
def _move(
    path: NDArray[np.int32],
    weight: NDArray[np.float64],
    taken: NDArray[np.int64],
    up: NDArray[np.float64],
    down: NDArray[np.float64],
    first: int,
    last: int,
    sign: float,
) -> None:
    """Put flows back onto the paths that they have chosen, or take them away."""
    for flow in range(first, last):
        spine = taken[flow]
        if spine >= 0:
            up[path[flow, 0] // 2, spine] += sign * weight[flow]
            down[path[flow, 1] // 2, spine] += sign * weight[flow]
