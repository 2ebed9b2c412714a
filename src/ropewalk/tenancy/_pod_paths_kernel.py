"""Which cables a flow between two pods takes, by hash or by load: up to a core, and down in the other pod."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints, Ints32
from ropewalk.compiled import kernel
from ropewalk.tenancy._paths_kernel import mix


@kernel
def _cores_towards(
    leaf: int, cables: Ints32, core_cables: Ints32, first: int, last: int, first_core: Ints, end_core: Ints,
    reaches: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Which cores have a way down to a leaf, whose pod has spines `first` to `last` - 1?"""
    reaches[:] = False
    for spine in range(first, last):
        if cables[leaf, spine] > 0:
            for core in range(first_core[spine], end_core[spine]):
                if core_cables[spine, core] > 0:
                    reaches[core] = True


@kernel
def hashed_over_cores(
    src: Ints,
    dst: Ints,
    leaf_of: Ints32,
    cables: Ints32,
    core_cables: Ints32,
    first_cable: Ints,
    first_core_cable: Ints,
    pod_of_leaf: Ints,
    first_spine: Ints,
    first_core: Ints,
    end_core: Ints,
    seed: int,
    polarised: bool,
) -> Ints32:
    """ECMP: leaf, spine, core and spine each hash a flow onto one of their cables that lead on.

    Polarised: every switch has the same hash. A flow that no core can carry gets -1.
    """
    leafs, spines = cables.shape
    path = np.full((len(src), 4), -1, np.int32)
    reaches = np.zeros(core_cables.shape[1], np.bool_)
    ways = np.zeros(spines, np.int64)
    for flow in range(len(src)):
        a, b = leaf_of[src[flow]], leaf_of[dst[flow]]
        here, there = pod_of_leaf[a], pod_of_leaf[b]
        _cores_towards(
            b, cables, core_cables, first_spine[there], first_spine[there + 1], first_core, end_core, reaches
        )
        total = 0
        for spine in range(first_spine[here], first_spine[here + 1]):
            ways[spine] = 0
            if cables[a, spine] > 0:
                for core in range(first_core[spine], end_core[spine]):
                    if reaches[core]:
                        ways[spine] += core_cables[spine, core]
            if ways[spine] > 0:
                total += cables[a, spine]
        if total == 0:
            continue
        state = mix(mix(np.uint64(seed), np.uint64(src[flow])), np.uint64(dst[flow]))
        pick = _pick(state, a + 1, total, polarised)
        for spine in range(first_spine[here], first_spine[here + 1]):
            if ways[spine] == 0:
                continue
            if pick < cables[a, spine]:
                path[flow, 0] = 2 * (first_cable[a, spine] + pick)
                _over_core(
                    flow, spine, b, state, polarised, leafs, ways[spine], cables, core_cables, first_cable,
                    first_core_cable, first_spine[there], first_spine[there + 1], first_core, end_core, reaches, path,
                )  # fmt: skip
                break
            pick -= cables[a, spine]
    return path


@kernel
def _pick(state: np.uint64, switch: int, ways: int, polarised: bool) -> np.int64:
    """What the hash of a switch makes of a flow."""
    own = state if polarised else mix(state, np.uint64(switch))
    return np.int64(own % np.uint64(ways))


@kernel
def _over_core(
    flow: int, spine: int, leaf: int, state: np.uint64, polarised: bool, leafs: int, ways: int, cables: Ints32,
    core_cables: Ints32, first_cable: Ints, first_core_cable: Ints, first: int, last: int, first_core: Ints,
    end_core: Ints, reaches: NDArray[np.bool_], path: Ints32,
) -> None:  # fmt: skip
    """The rest of a path from its first spine on."""
    spines = cables.shape[1]
    pick = _pick(state, leafs + spine + 1, ways, polarised)
    for core in range(first_core[spine], end_core[spine]):
        if not reaches[core]:
            continue
        if pick < core_cables[spine, core]:
            path[flow, 1] = 2 * (first_core_cable[spine, core] + pick)
            down = 0
            for below in range(first, last):
                if cables[leaf, below] > 0:
                    down += core_cables[below, core]
            pick = _pick(state, leafs + spines + core + 1, down, polarised)
            for below in range(first, last):
                if cables[leaf, below] == 0:
                    continue
                if pick < core_cables[below, core]:
                    path[flow, 2] = 2 * (first_core_cable[below, core] + pick) + 1
                    strand = _pick(state, leafs + below + 1, cables[leaf, below], polarised)
                    path[flow, 3] = 2 * (first_cable[leaf, below] + strand) + 1
                    return
                pick -= core_cables[below, core]
        pick -= core_cables[spine, core]


@kernel
def _emptiest(first: int, cables: int, down: int, load: NDArray[np.float64]) -> int:
    """Of parallel cables the link that carries least."""
    best = 2 * first + down
    for strand in range(1, cables):
        other = 2 * (first + strand) + down
        if load[other] < load[best]:
            best = other
    return best


@kernel
def least_loaded_over_cores(
    src: Ints,
    dst: Ints,
    leaf_of: Ints32,
    cables: Ints32,
    core_cables: Ints32,
    first_cable: Ints,
    first_core_cable: Ints,
    pod_of_leaf: Ints,
    first_spine: Ints,
    first_core: Ints,
    end_core: Ints,
    load: NDArray[np.float64],
) -> Ints32:
    """One flow after the other onto the path whose fullest link is emptiest; `load` is changed.

    Ties go to the path with less in all, then to the first spine, and the first core, counted from the sender's number.
    """
    cores = core_cables.shape[1]
    path = np.full((len(src), 4), -1, np.int32)
    fullest, total = np.zeros(cores), np.zeros(cores)
    drop, fall = np.zeros(cores, np.int64), np.zeros(cores, np.int64)
    for flow in range(len(src)):
        a, b = leaf_of[src[flow]], leaf_of[dst[flow]]
        here, there = pod_of_leaf[a], pod_of_leaf[b]
        fullest[:] = np.inf
        for spine in range(first_spine[there], first_spine[there + 1]):
            if cables[b, spine] == 0:
                continue
            down = _emptiest(first_cable[b, spine], cables[b, spine], 1, load)
            for core in range(first_core[spine], end_core[spine]):
                if core_cables[spine, core] == 0:
                    continue
                over = _emptiest(first_core_cable[spine, core], core_cables[spine, core], 1, load)
                most, both = max(load[over], load[down]), load[over] + load[down]
                if most < fullest[core] or (most == fullest[core] and both < total[core]):
                    fullest[core], total[core], drop[core], fall[core] = most, both, over, down
        best_most, best_sum = np.inf, np.inf
        lanes = first_spine[here + 1] - first_spine[here]
        for turn in range(lanes):
            spine = first_spine[here] + (src[flow] + turn) % lanes
            if cables[a, spine] == 0:
                continue
            rise = _emptiest(first_cable[a, spine], cables[a, spine], 0, load)
            wide = end_core[spine] - first_core[spine]
            for number in range(wide):
                core = first_core[spine] + (src[flow] // lanes + number) % wide
                if core_cables[spine, core] == 0 or fullest[core] == np.inf:
                    continue
                climb = _emptiest(first_core_cable[spine, core], core_cables[spine, core], 0, load)
                most = max(max(load[rise], load[climb]), fullest[core])
                both = load[rise] + load[climb] + total[core]
                if most < best_most or (most == best_most and both < best_sum):
                    best_most, best_sum = most, both
                    path[flow, 0], path[flow, 1] = rise, climb
                    path[flow, 2], path[flow, 3] = drop[core], fall[core]
        if path[flow, 0] >= 0:
            for hop in range(4):
                load[path[flow, hop]] += 1.0
    return path
