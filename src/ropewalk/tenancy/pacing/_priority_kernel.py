"""Snapshots of a network with priorities: what higher levels leave of links, and how it is shared below them.

The loops only; what they mean stands in `priority.py` and `moments.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel
from ropewalk.tenancy.pacing._sharing_kernel import _last_of, _phase_at, _put


@kernel
def look_by_level(
    level: NDArray[np.int64],
    loads: NDArray[np.float64],
    rate: NDArray[np.float64],
    kept: float,
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
    """As `sample`, where `stretch` is what jobs of the same level do, and `rate` what higher ones leave of it.

    `loads` is room for [level, link], comes in empty and stays so.
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
            now, part = _phase_at(
                window_s, phase_start[job], phase_start[job + 1], moment[job, shot] * iteration_s[job]
            )  # fmt: skip
            active[job] = now
            if now >= 0:
                into[job] = part * rounds[now] % 1.0
                _put(loads[level[job]], path, share, lasts, flow_start[now], flow_start[now + 1], into[job], 1.0)
        for job in range(jobs):
            trial, _ = _phase_at(linked, phase_start[job], phase_start[job + 1], probe[job, shot] * total[job])
            if trial < 0:
                trial = _last_of(linked, phase_start[job], phase_start[job + 1])
            probed[job, shot] = trial
            stretch[job, shot] = 1.0
            rate[job, shot] = 1.0
            met[job, shot] = 0.0
            if trial < 0:
                continue
            mine, own = loads[level[job]], active[job]
            first, last = flow_start[trial], flow_start[trial + 1]
            if own >= 0:
                _put(mine, path, share, lasts, flow_start[own], flow_start[own + 1], into[job], -1.0)
            _put(mine, path, share, lasts, first, last, -1.0, 1.0)
            fullest, slowest, held = 0.0, 0.0, 0
            for flow in range(first, last):
                company, with_all = 0.0, 0.0
                for hop in range(path.shape[1]):
                    link = path[flow, hop]
                    if link < 0:
                        continue
                    higher = 0.0
                    for above in range(level[job]):
                        higher += loads[above, link]
                    left = max(1.0 - higher, kept)
                    company = max(company, mine[link])
                    with_all = max(with_all, mine[link] / left)
                fullest, slowest = max(fullest, company), max(slowest, with_all)
                if with_all > nic_flows[trial] * (1 + 1e-9):
                    held += 1
            shared_s = max(floor_s[trial], flow_s[trial] * fullest)
            stretch[job, shot] = shared_s / alone_s[trial]
            rate[job, shot] = shared_s / max(floor_s[trial], flow_s[trial] * slowest)
            met[job, shot] = held
            _put(mine, path, share, lasts, first, last, -1.0, -1.0)
            if own >= 0:
                _put(mine, path, share, lasts, flow_start[own], flow_start[own + 1], into[job], 1.0)
        for job in range(jobs):
            own = active[job]
            if own >= 0:
                _put(loads[level[job]], path, share, lasts, flow_start[own], flow_start[own + 1], into[job], -1.0)
