"""Max-min fair rates of flows by the compiled kernel of the flow level, started from nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.sim.flow.waterfill import LIVE, RATE, fill, join, make_state, make_usage, make_water


def max_min(
    capacity: Floats,
    start: Ints,
    link: NDArray[np.int32],
    weight: Floats | None = None,
    cap: Floats | None = None,
    count: Floats | None = None,
) -> tuple[Floats, Ints]:
    """Max-min fair rates of flows that all share the network now: (rate, link that stops each flow)."""
    flows, links = len(start) - 1, len(capacity)
    usage = make_usage(start, link, np.ones(len(link)) if weight is None else weight, links)
    water = make_water(capacity, flows)
    state = make_state(np.full(flows, np.inf) if cap is None else cap)
    state[:, RATE] = np.inf
    state[:, LIVE] = 1.0 if count is None else count
    np.add.at(water.total, link, usage.weight * np.repeat(state[:, LIVE], np.diff(start)))
    np.add.at(water.open_flows, link, 1)
    water.is_open[:] = True
    water.fills[:] = True
    for flow in range(flows):
        join(usage.start, usage.link, usage.members, usage.member_start, usage.member, usage.member_entry,
             usage.place, flow)  # fmt: skip
    bound_by = np.full(flows, -1, np.int64)
    fill(usage, water, np.arange(links), links, np.arange(flows), flows, state, bound_by)
    return state[:, RATE].copy(), bound_by
