"""Which leafs may hold a shape, which spines they take, and how near those came that could not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints, Words
from ropewalk.compiled import kernel
from ropewalk.tenancy._bits_kernel import common, positions


@kernel
def candidates(
    idle_servers: Ints, reached: Ints, ports: Ints, first: Ints, servers: int, spines: int, freest: bool
) -> tuple[Ints, Ints]:
    """(rows, where each pod begins): rows with enough idle servers and spines, those with fewest free cables first.

    Rows `first[p]` to `first[p + 1]` - 1 are pod p; `freest` turns the order of its candidates round.
    """
    rows = len(idle_servers)
    keys, start = np.empty(rows, np.int64), np.zeros(len(first), np.int64)
    found = 0
    for pod in range(len(first) - 1):
        for row in range(first[pod], first[pod + 1]):
            if idle_servers[row] >= servers and reached[row] >= spines:
                keys[found] = ports[row] * rows + row
                found += 1
        mine = np.sort(keys[start[pod] : found])
        keys[start[pod] : found] = mine[::-1] if freest else mine
        start[pod + 1] = found
    return keys[:found] % rows, start


@kernel
def fullest(shared: Words, ports_of_spine: Ints) -> Ints:
    """Spines of a mask, those with fewest free cables first."""
    spines = positions(shared, len(ports_of_spine))
    return np.sort(ports_of_spine[spines] * len(ports_of_spine) + spines) % len(ports_of_spine)


@kernel
def shared_by(leafs: Ints, spine_words: Words) -> Words:
    """Spines that all of these leafs reach."""
    shared: Words = spine_words[leafs[0]].copy()
    for leaf in leafs[1:]:
        shared &= spine_words[leaf]
    return shared


@kernel
def lanes_with_cores(lanes: Words, core_words: Words, first_spine: Ints, cores: int) -> Words:
    """Of these lanes, those whose spines in all pods (which begin at `first_spine`) have so many cores in common."""
    kept = lanes.copy()
    for lane in positions(lanes, 64 * len(lanes)):
        shared = core_words[first_spine[0] + lane].copy()
        for first in first_spine[1:]:
            shared &= core_words[first + lane]
        if common(shared, shared) < cores:
            kept[lane >> 6] ^= np.uint64(1) << np.uint64(lane & 63)
    return kept


@kernel
def emptied_cores(
    spines: Ints, core_words: Words, ports_of_core: Ints, first_core: Ints, end_core: Ints, cores: int
) -> Ints:
    """[lane, core]: of the cores that the spines of a lane, [pod, lane], share, those with fewest free cables."""
    pods, lanes = spines.shape
    chosen = np.empty((lanes, cores), np.int64)
    for lane in range(lanes):
        shared = core_words[spines[0, lane]].copy()
        for pod in range(1, pods):
            shared &= core_words[spines[pod, lane]]
        first, end = first_core[spines[0, lane]], end_core[spines[0, lane]]
        chosen[lane] = first + np.sort(fullest(shared, ports_of_core[first:end])[:cores])
    return chosen


@kernel
def nearest(words: Words, reached: Ints, rows: Ints, leafs: int) -> tuple[Ints, Words]:
    """(leafs, spines they share): of `rows`, the leaf that reaches most, then whichever keeps most spines in common."""
    chosen = np.zeros(len(rows), np.bool_)
    picked = np.empty(leafs, np.int64)
    best = 0
    for row in range(1, len(rows)):
        if reached[rows[row]] > reached[rows[best]]:
            best = row
    shared = words[rows[best]].copy()
    chosen[best] = True
    picked[0] = rows[best]
    for place in range(1, leafs):
        best, most = -1, -1
        for row in range(len(rows)):
            if not chosen[row]:
                overlap = common(shared, words[rows[row]])
                if overlap > most:
                    best, most = row, overlap
        shared &= words[rows[best]]
        chosen[best] = True
        picked[place] = rows[best]
    return np.sort(picked), shared


@kernel
def nearest_in_a_pod(
    words: Words, reached: Ints, fits: NDArray[np.bool_], first: Ints, leafs: int
) -> tuple[bool, Ints, Words]:
    """The same in the pod where most spines are shared; False where no pod has enough rows that fit."""
    found, most = False, -1
    picked, shared = np.zeros(leafs, np.int64), np.zeros(words.shape[1], np.uint64)
    for pod in range(len(first) - 1):
        rows = first[pod] + np.flatnonzero(fits[first[pod] : first[pod + 1]])
        if len(rows) < leafs:
            continue
        chosen, mask = nearest(words, reached, rows, leafs)
        if common(mask, mask) > most:
            found, most = True, common(mask, mask)
            picked, shared = chosen, mask
    return found, picked, shared


@kernel
def blocking(picked: Ints, shared: Words, cables: NDArray[np.int32], first: int) -> Ints:
    """Upper switches, bit 0 of `shared` is `first`, to which all of these have a cable, but not all a free one."""
    upper = min(cables.shape[1], first + 64 * len(shared))
    found = np.empty(upper - first, np.int64)
    count = 0
    for place in range(upper - first):
        if shared[place >> 6] >> np.uint64(place & 63) & np.uint64(1):
            continue
        wired = True
        for below in picked:
            if cables[below, first + place] == 0:
                wired = False
                break
        if wired:
            found[count] = first + place
            count += 1
    return found[:count]
