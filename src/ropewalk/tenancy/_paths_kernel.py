"""Which cables a flow between two leafs takes, by hash or by load: the loops over flows and spines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@kernel
def mix(state: np.uint64, word: np.uint64) -> np.uint64:
    """One round of SplitMix64 (Steele, Lea and Flood, 2014) over a further word."""
    state = (state ^ word) + _GOLDEN
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    return state ^ (state >> np.uint64(31))


@kernel
def hashed(
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    leaf: NDArray[np.int32],
    cables: NDArray[np.int32],
    first_cable: NDArray[np.int64],
    seed: int,
    polarised: bool,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """ECMP: the leaf hashes a flow onto one of its up links that lead on, the spine onto one of its cables down.

    Polarised: every switch has the same hash, so the spine repeats the choice of the leaf. A flow that no spine can
    carry gets -1.
    """
    spines = cables.shape[1]
    up = np.full(len(src), -1, np.int32)
    down = np.full(len(src), -1, np.int32)
    for flow in range(len(src)):
        a, b = leaf[src[flow]], leaf[dst[flow]]
        ways = 0
        for spine in range(spines):
            if cables[b, spine] > 0:
                ways += cables[a, spine]
        if ways == 0:
            continue
        state = mix(mix(np.uint64(seed), np.uint64(src[flow])), np.uint64(dst[flow]))
        at_leaf = state if polarised else mix(state, np.uint64(a + 1))
        pick = np.int64(at_leaf % np.uint64(ways))
        for spine in range(spines):
            if cables[b, spine] == 0:
                continue
            if pick < cables[a, spine]:
                at_spine = state if polarised else mix(state, np.uint64(cables.shape[0] + spine + 1))
                strand = np.int64(at_spine % np.uint64(cables[b, spine]))
                up[flow] = 2 * (first_cable[a, spine] + pick)
                down[flow] = 2 * (first_cable[b, spine] + strand) + 1
                break
            pick -= cables[a, spine]
    return up, down


@kernel
def least_loaded(
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    leaf: NDArray[np.int32],
    cables: NDArray[np.int32],
    first_cable: NDArray[np.int64],
    load: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """One flow after the other onto the way whose fuller link is emptiest; `load` is changed.

    Ties go to the way with less in all, then to the first spine counted from the sender's own number, so that an empty
    network is filled evenly.
    """
    spines = cables.shape[1]
    up = np.full(len(src), -1, np.int32)
    down = np.full(len(src), -1, np.int32)
    for flow in range(len(src)):
        a, b = leaf[src[flow]], leaf[dst[flow]]
        best_most, best_sum = np.inf, np.inf
        for turn in range(spines):
            spine = (src[flow] + turn) % spines
            if cables[a, spine] == 0 or cables[b, spine] == 0:
                continue
            rise = 2 * first_cable[a, spine]
            for strand in range(1, cables[a, spine]):
                other = 2 * (first_cable[a, spine] + strand)
                if load[other] < load[rise]:
                    rise = other
            fall = 2 * first_cable[b, spine] + 1
            for strand in range(1, cables[b, spine]):
                other = 2 * (first_cable[b, spine] + strand) + 1
                if load[other] < load[fall]:
                    fall = other
            most, total = max(load[rise], load[fall]), load[rise] + load[fall]
            if most < best_most or (most == best_most and total < best_sum):
                best_most, best_sum = most, total
                up[flow], down[flow] = rise, fall
        if up[flow] >= 0:
            load[up[flow]] += 1.0
            load[down[flow]] += 1.0
    return up, down
