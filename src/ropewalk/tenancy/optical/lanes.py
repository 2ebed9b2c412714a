"""Circuits between pods: s lanes, each a spine of every pod, with l virtual cores that are joined with all of them.

A virtual core is a place in a core that forwards packets; with two pods also a circuit straight from spine to spine.
Lanes share the fibres of cores and nothing else, so they are laid one after the other by the chains of two tiers; where
that fails, an integer program decides about all of them together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.tenancy.linear_rows import ConstraintRows
from ropewalk.tenancy.optical.clos import MOST_CIRCUITS, quick_network
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.programs import NODE_LIMIT, RELATIVE_GAP, ProgramUndecided, solve

STRAIGHT = -1


@dataclass(frozen=True, eq=False)
class CoreLanes:
    """What every virtual core is, and the switches of its circuits."""

    core: Ints
    """[lane, virtual core]: a core that forwards packets, or -1 where the spines of two pods are joined straight."""
    switch: Ints
    """[lane, virtual core, pod]: through which switch the spine of the pod is joined with it."""


def quick_lanes(fibres: FreeFibres, spines: Ints, cores: int) -> CoreLanes | None:
    """Lay lane after lane; `spines` is [lane, pod], `cores` virtual ones for each. None says nothing."""
    leaf, core = fibres.leaf.copy(), fibres.spine.copy()
    lanes, pods = spines.shape
    chosen, switch = np.full((lanes, cores), STRAIGHT, np.int64), np.zeros((lanes, cores, pods), np.int64)
    for lane in range(lanes):
        done = 0
        if pods == 2:
            straight = _straight(FreeFibres(leaf, core), spines[lane])[:cores]
            done = len(straight)
            switch[lane, :done] = straight[:, None]
            leaf[np.ix_(spines[lane], straight)] = False
        if done == cores:
            continue
        one_each = np.zeros(len(leaf), np.int64)
        one_each[spines[lane]] = 1
        left_over = FreeFibres(leaf, core)
        network = quick_network(left_over, one_each, cores - done)
        network = network or quick_network(left_over, one_each, cores - done, emptiest=True)
        if network is None:
            return None
        left = {ends: iter(switches) for ends, switches in network.switches.items()}
        for place, at in enumerate(np.repeat(np.arange(len(core)), network.spines).tolist(), done):
            chosen[lane, place] = at
            for pod, spine in enumerate(spines[lane].tolist()):
                taken = next(left[spine, at])
                switch[lane, place, pod] = taken
                leaf[spine, taken] = False
                core[at, taken] -= 1
    return CoreLanes(chosen, switch)


def exact_lanes(
    fibres: FreeFibres, spines: Ints, cores: int, *, node_limit: int = NODE_LIMIT, most: int = MOST_CIRCUITS
) -> CoreLanes | ProgramUndecided | None:
    """The integer program over all lanes together; None where there is no way.

    y[i, j] virtual cores of lane i in core j and t[i, k] straight through switch k sum to l; the spines of a lane have
    y[i, j] circuits to core j each; no fibre is used twice. Cores with few free ports are preferred.
    """
    lanes, pods = spines.shape
    all_cores, switches = fibres.spine.shape
    lane, pod, core, at = np.nonzero(fibres.leaf[spines][:, :, None, :] & (fibres.spine > 0)[None, None])
    straight = fibres.leaf[spines].all(axis=1) & (pods == 2)
    t_lane, t_at = np.nonzero(straight)
    if len(lane) > most:
        return ProgramUndecided()
    y = np.arange(lanes * all_cores).reshape(lanes, all_cores)
    c = y.size + np.arange(len(lane))
    t = y.size + len(lane) + np.arange(len(t_lane))
    rows = ConstraintRows(y.size + len(lane) + len(t_lane))
    number = np.repeat(np.arange(lanes), all_cores)
    rows.add(np.full(lanes, cores), np.full(lanes, cores), (number, y.ravel(), 1.0), (t_lane, t, 1.0))
    joined = (lane * pods + pod) * all_cores + core
    every = np.arange(lanes * pods * all_cores)
    owner = every // (pods * all_cores) * all_cores + every % all_cores
    rows.add(np.zeros(len(every)), 0.0, (joined, c, 1.0), (every, owner, -1.0))
    ends = spines[lane, pod] * switches + at
    t_ends = spines[t_lane] * switches + t_at[:, None]
    ports, row = np.unique(np.concatenate([ends, t_ends.ravel()]), return_inverse=True)
    column = np.concatenate([c, np.repeat(t, pods)])
    rows.add(np.full(len(ports), -np.inf), np.ones(len(ports)), (row, column, 1.0))
    ports, row = np.unique(core * switches + at, return_inverse=True)
    rows.add(np.full(len(ports), -np.inf), fibres.spine.ravel()[ports].astype(np.float64), (row, c, 1.0))
    cost = np.concatenate([np.tile(fibres.of_spine, lanes), np.zeros(len(lane) + len(t_lane))]).astype(np.float64)
    upper = np.concatenate([np.full(y.size, cores), np.ones(len(lane) + len(t_lane))]).astype(np.float64)
    solved = solve(cost, rows, upper, node_limit, RELATIVE_GAP)
    if not isinstance(solved, np.ndarray):
        return solved
    return _dealt(solved, y, cores, (lane[solved[c] > 0], pod[solved[c] > 0], core[solved[c] > 0], at[solved[c] > 0]),
                  (t_lane[solved[t] > 0], t_at[solved[t] > 0]), spines.shape)  # fmt: skip


def _dealt(
    solved: Ints, y: Ints, cores: int, circuits: tuple[Ints, ...], straight: tuple[Ints, Ints], shape: tuple[int, ...]
) -> CoreLanes:
    """Give every virtual core its circuits: of equal ones any will do."""
    lanes, pods = shape
    chosen, switch = np.full((lanes, cores), STRAIGHT, np.int64), np.zeros((lanes, cores, pods), np.int64)
    for i in range(lanes):
        mine = straight[1][straight[0] == i]
        switch[i, : len(mine)] = mine[:, None]
        place = len(mine)
        for core in np.flatnonzero(solved[y[i]]).tolist():
            count = int(solved[y[i, core]])
            chosen[i, place : place + count] = core
            for pod in range(pods):
                lane, at_pod, at_core, at = circuits
                switch[i, place : place + count, pod] = at[(lane == i) & (at_pod == pod) & (at_core == core)]
            place += count
    return CoreLanes(chosen, switch)


def _straight(fibres: FreeFibres, pair: Ints) -> Ints:
    """Switches that both spines reach; first those with the fewest core fibres left for each spine that wants one."""
    common = np.flatnonzero(fibres.leaf[pair].all(axis=0))
    spare = fibres.spine.sum(axis=0) - fibres.leaf.sum(axis=0)
    return np.asarray(common[np.argsort(spare[common], kind="stable")], np.int64)
