"""Snapshots of a network with adaptive routing: flows choose their spines and cores one after the other.

The loops only; what they mean stands in `adaptive.py` and `moments.py`. Paths hold the link up of a flow's leaf (twice
its number) and, last, the link down of the other one (twice its number plus 1). What a flow takes are three numbers:
its spine, its core (-1 inside a pod) and the spine of the other pod, or the same one again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel
from ropewalk.tenancy.pacing._sharing_kernel import _last_of, _phase_at


@kernel
def _end_of(path: NDArray[np.int32], flow: int) -> int:
    """The leaf that a flow goes to."""
    last = path.shape[1] - 1
    link: int = path[flow, last] if path[flow, last] >= 0 else path[flow, 1]
    return link // 2


@kernel
def _choose(
    cables: NDArray[np.float64],
    core_cables: NDArray[np.float64],
    pod_of_leaf: NDArray[np.int64],
    first_spine: NDArray[np.int64],
    first_core: NDArray[np.int64],
    end_core: NDArray[np.int64],
    up: NDArray[np.float64],
    down: NDArray[np.float64],
    rise: NDArray[np.float64],
    fall: NDArray[np.float64],
    a: int,
    b: int,
    first: int,
    taken: NDArray[np.int64],
) -> None:
    """The path whose fullest cable would carry least with one flow more; -1 where no spine leads there."""
    here, there = pod_of_leaf[a], pod_of_leaf[b]
    start, spines = first_spine[here], first_spine[here + 1] - first_spine[here]
    best_most, best_sum = np.inf, np.inf
    taken[:] = -1
    for turn in range(spines):
        spine = start + (first + turn) % spines
        far = spine if here == there else first_spine[there] + spine - start
        if far >= first_spine[there + 1] or cables[a, spine] == 0 or cables[b, far] == 0:
            continue
        climb, sink = (up[a, spine] + 1) / cables[a, spine], (down[b, far] + 1) / cables[b, far]
        if here == there:
            most, total = max(climb, sink), climb + sink
            if most < best_most or (most == best_most and total < best_sum):
                best_most, best_sum = most, total
                taken[0], taken[1], taken[2] = spine, -1, spine
                if up[a, spine] == 0 and down[b, spine] == 0:
                    break  # nothing is emptier than empty
            continue
        if max(climb, sink) > best_most:
            continue
        cores, empty = end_core[spine] - first_core[spine], False
        for step in range(cores):
            core = first_core[spine] + (first // spines + step) % cores
            if core_cables[spine, core] == 0 or core_cables[far, core] == 0:
                continue
            over = (rise[spine, core] + 1) / core_cables[spine, core]
            under = (fall[far, core] + 1) / core_cables[far, core]
            most, total = max(max(climb, sink), max(over, under)), climb + sink + over + under
            if most < best_most or (most == best_most and total < best_sum):
                best_most, best_sum = most, total
                taken[0], taken[1], taken[2] = spine, core, far
                empty = up[a, spine] == 0 and down[b, far] == 0 and rise[spine, core] == 0 and fall[far, core] == 0
                if empty:
                    break
        if empty:
            break


@kernel
def _put(
    up: NDArray[np.float64],
    down: NDArray[np.float64],
    rise: NDArray[np.float64],
    fall: NDArray[np.float64],
    a: int,
    b: int,
    taken: NDArray[np.int64],
    weight: float,
) -> None:
    """Load what a flow has taken, or with a negative weight take the flow away."""
    if taken[0] >= 0:
        up[a, taken[0]] += weight
        down[b, taken[2]] += weight
        if taken[1] >= 0:
            rise[taken[0], taken[1]] += weight
            fall[taken[2], taken[1]] += weight


@kernel
def look_for_paths(
    cables: NDArray[np.float64],
    core_cables: NDArray[np.float64],
    pod_of_leaf: NDArray[np.int64],
    first_spine: NDArray[np.int64],
    first_core: NDArray[np.int64],
    end_core: NDArray[np.int64],
    up: NDArray[np.float64],
    down: NDArray[np.float64],
    rise: NDArray[np.float64],
    fall: NDArray[np.float64],
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
    """As `sample`, with flows that choose.

    `up` and `down` are room for [leaf, spine], `rise` and `fall` for [spine, core]; they come in empty and stay so.
    """
    jobs, snapshots = moment.shape
    active = np.full(jobs, -1, np.int64)
    into = np.zeros(jobs)
    linked = np.zeros(len(alone_s))
    total = np.zeros(jobs)
    taken = np.full((len(path), 3), -1, np.int64)
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
                        a, b = path[flow, 0] // 2, _end_of(path, flow)
                        _choose(cables, core_cables, pod_of_leaf, first_spine, first_core, end_core, up, down, rise,
                                fall, a, b, flow, taken[flow])  # fmt: skip
                        _put(up, down, rise, fall, a, b, taken[flow], weight[flow])
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
                for flow in range(flow_start[own], flow_start[own + 1]):
                    _put(up, down, rise, fall, path[flow, 0] // 2, _end_of(path, flow), taken[flow], -weight[flow])
            first, last = flow_start[trial], flow_start[trial + 1]
            chosen = np.full((last - first, 3), -1, np.int64)
            for flow in range(first, last):
                a, b = path[flow, 0] // 2, _end_of(path, flow)
                _choose(cables, core_cables, pod_of_leaf, first_spine, first_core, end_core, up, down, rise, fall, a, b,
                        flow, chosen[flow - first])  # fmt: skip
                _put(up, down, rise, fall, a, b, chosen[flow - first], weight[flow])
            fullest, held = 0.0, 0
            for flow in range(first, last):
                spine, core, far = chosen[flow - first]
                if spine >= 0:
                    a, b = path[flow, 0] // 2, _end_of(path, flow)
                    company = max(up[a, spine] / cables[a, spine], down[b, far] / cables[b, far])
                    if core >= 0:
                        over, under = rise[spine, core] / core_cables[spine, core], fall[far, core]
                        company = max(company, max(over, under / core_cables[far, core]))
                    fullest = max(fullest, company)
                    if company > nic_flows[trial] * (1 + 1e-9):
                        held += 1
            stretch[job, shot] = max(floor_s[trial], flow_s[trial] * fullest) / alone_s[trial]
            met[job, shot] = held
            for flow in range(first, last):
                _put(up, down, rise, fall, path[flow, 0] // 2, _end_of(path, flow), chosen[flow - first], -weight[flow])
            if own >= 0:
                for flow in range(flow_start[own], flow_start[own + 1]):
                    _put(up, down, rise, fall, path[flow, 0] // 2, _end_of(path, flow), taken[flow], weight[flow])
        up[:] = 0.0
        down[:] = 0.0
        rise[:] = 0.0
        fall[:] = 0.0
