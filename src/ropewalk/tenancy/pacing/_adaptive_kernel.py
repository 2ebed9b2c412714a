"""Snapshots of a network with adaptive routing: flows choose their spines and cores one after the other.

The loops only; what they mean stands in `adaptive.py` and `moments.py`, what they read and fill in `laid.py`. Paths
hold the link up of a flow's leaf (twice its number) and, last, the link down of the other one (twice that plus 1).
What a flow takes are three numbers: its spine, its core (-1 inside a pod) and the spine of the other pod, or the same
one again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Floats, Ints, Ints32
from ropewalk.compiled import kernel
from ropewalk.tenancy.pacing._sharing_kernel import over_links, phase_at, tried
from ropewalk.tenancy.pacing.laid import DrawnMoments, LaidJobs, SeenPhases


class SwitchCables(NamedTuple):
    """Cables between leafs and spines, and between spines and cores; which of them belong together."""

    cables: Floats
    core_cables: Floats
    pod_of_leaf: Ints
    first_spine: Ints
    first_core: Ints
    end_core: Ints


class CableFlows(NamedTuple):
    """Flows on cables: `up` and `down` of [leaf, spine], `rise` and `fall` of [spine, core]."""

    up: Floats
    down: Floats
    rise: Floats
    fall: Floats


@kernel
def _end_of(path: Ints32, flow: int) -> int:
    """The leaf that a flow goes to."""
    last = path.shape[1] - 1
    link: int = path[flow, last] if path[flow, last] >= 0 else path[flow, 1]
    return link // 2


@kernel
def _choose(switches: SwitchCables, carried: CableFlows, a: int, b: int, first: int, taken: Ints) -> None:
    """The path whose fullest cable would carry least with one flow more; -1 where no spine leads there."""
    cables, core_cables, first_spine = switches.cables, switches.core_cables, switches.first_spine
    first_core, end_core = switches.first_core, switches.end_core
    up, down, rise, fall = carried.up, carried.down, carried.rise, carried.fall
    here, there = switches.pod_of_leaf[a], switches.pod_of_leaf[b]
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
def _put(carried: CableFlows, a: int, b: int, taken: Ints, weight: float) -> None:
    """Load what a flow has taken, or with a negative weight take the flow away."""
    if taken[0] >= 0:
        carried.up[a, taken[0]] += weight
        carried.down[b, taken[2]] += weight
        if taken[1] >= 0:
            carried.rise[taken[0], taken[1]] += weight
            carried.fall[taken[2], taken[1]] += weight


@kernel
def _put_all(carried: CableFlows, path: Ints32, taken: Ints, first: int, weight: Floats, sign: float) -> None:
    """Load, or take away, what flows from `first` on have taken."""
    for at in range(len(taken)):
        flow = first + at
        _put(carried, path[flow, 0] // 2, _end_of(path, flow), taken[at], sign * weight[flow])


@kernel
def _company_on(
    switches: SwitchCables, carried: CableFlows, path: Ints32, taken: Ints, first: int, nic_flows: float
) -> tuple[float, int]:
    """Flows on the fullest cable that some have taken, and how many of them find more than their NICs send."""
    fullest, held = 0.0, 0
    for at in range(len(taken)):
        spine, core, far = taken[at]
        if spine >= 0:
            a, b = path[first + at, 0] // 2, _end_of(path, first + at)
            company = max(
                carried.up[a, spine] / switches.cables[a, spine], carried.down[b, far] / switches.cables[b, far]
            )
            if core >= 0:
                over = carried.rise[spine, core] / switches.core_cables[spine, core]
                under = carried.fall[far, core] / switches.core_cables[far, core]
                company = max(company, max(over, under))
            fullest = max(fullest, company)
            if company > nic_flows * (1 + 1e-9):
                held += 1
    return fullest, held


@kernel
def look_for_paths(
    switches: SwitchCables, carried: CableFlows, jobs: LaidJobs, drawn: DrawnMoments, load: Floats, seen: SeenPhases
) -> None:
    """As `sample`, with flows that choose; `carried` comes in empty and stays so."""
    phase_start, flow_start, path, lasts = jobs.phase_start, jobs.flow_start, jobs.path, jobs.lasts
    moment, probe, iteration_s, window_s = drawn.moment, drawn.probe, drawn.iteration_s, drawn.window_s
    floor_s, flow_s, alone_s, nic_flows, rounds = jobs.floor_s, jobs.flow_s, jobs.alone_s, jobs.nic_flows, jobs.rounds
    stretch, met, probed = seen.stretch, seen.met, seen.probed
    count, snapshots = moment.shape
    active = np.full(count, -1, np.int64)
    into = np.zeros(count)
    linked, total = over_links(jobs)
    taken = np.full((len(path), 3), -1, np.int64)
    weight = np.zeros(len(path))
    for flow in range(len(path)):  # a share is that of all cables of the leaf
        weight[flow] = jobs.share[flow, 0] * switches.cables[path[flow, 0] // 2].sum()
    for shot in range(snapshots):
        for job in range(count):
            where = moment[job, shot] * iteration_s[job]
            now, part = phase_at(window_s, phase_start[job], phase_start[job + 1], where)
            active[job] = now
            if now >= 0:
                into[job] = part * rounds[now] % 1.0
                for flow in range(flow_start[now], flow_start[now + 1]):
                    taken[flow] = -1
                    if lasts[flow] > into[job]:
                        a, b = path[flow, 0] // 2, _end_of(path, flow)
                        _choose(switches, carried, a, b, flow, taken[flow])
                        _put(carried, a, b, taken[flow], weight[flow])
        for job in range(count):
            trial, _ = tried(linked, phase_start[job], phase_start[job + 1], probe[job, shot] * total[job])
            probed[job, shot] = trial
            if trial < 0:
                stretch[job, shot] = 1.0
                met[job, shot] = 0.0
                continue
            own = active[job]
            if own >= 0:
                mine = taken[flow_start[own] : flow_start[own + 1]]
                _put_all(carried, path, mine, flow_start[own], weight, -1.0)
            first, last = flow_start[trial], flow_start[trial + 1]
            chosen = np.full((last - first, 3), -1, np.int64)
            for flow in range(first, last):
                a, b = path[flow, 0] // 2, _end_of(path, flow)
                _choose(switches, carried, a, b, flow, chosen[flow - first])
                _put(carried, a, b, chosen[flow - first], weight[flow])
            fullest, held = _company_on(switches, carried, path, chosen, first, nic_flows[trial])
            stretch[job, shot] = max(floor_s[trial], flow_s[trial] * fullest) / alone_s[trial]
            met[job, shot] = held
            _put_all(carried, path, chosen, first, weight, -1.0)
            if own >= 0:
                mine = taken[flow_start[own] : flow_start[own + 1]]
                _put_all(carried, path, mine, flow_start[own], weight, 1.0)
        carried.up[:] = 0.0
        carried.down[:] = 0.0
        carried.rise[:] = 0.0
        carried.fall[:] = 0.0
