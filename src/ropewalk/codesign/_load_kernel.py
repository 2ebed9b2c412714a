"""Kernel: what transfers put on the links of a network. Nothing here knows seats or sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel


class PairUsage(NamedTuple):
    """Routed pairs in the order of (source, destination): their links, shares and latencies."""

    of_source: NDArray[np.int64]
    """Where the pairs of each source begin."""
    destination: NDArray[np.int32]
    start: NDArray[np.int64]
    link: NDArray[np.int32]
    share: NDArray[np.float64]
    latency: NDArray[np.float64]


@kernel
def _row_of(usage, source, destination):  # type: ignore[no-untyped-def]
    """The row of a pair, -1 where it has none."""
    first, last = usage.of_source[source], usage.of_source[source + 1]
    # Where a source has all others, its pair stands at its own place.
    guess = first + destination - (destination > source)
    if guess < last and usage.destination[guess] == destination:
        return guess
    while first < last:
        middle = (first + last) // 2
        if usage.destination[middle] < destination:
            first = middle + 1
        else:
            last = middle
    return first if first < usage.of_source[source + 1] and usage.destination[first] == destination else -1


@kernel
def link_load(
    usage: PairUsage,
    source: NDArray[np.integer],
    destination: NDArray[np.integer],
    size: NDArray[np.float64],
    bandwidth: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64], float]:
    """(links in use, seconds on each, transfers on each, the longest latency); a latency of -1: a pair has no route."""
    carried, flows = np.zeros(len(bandwidth)), np.zeros(len(bandwidth))
    latency = 0.0
    for one in range(len(source)):
        row = _row_of(usage, source[one], destination[one])
        if row < 0:
            return np.zeros(0, np.int32), np.zeros(0), np.zeros(0), -1.0
        latency = max(latency, usage.latency[row])
        for at in range(usage.start[row], usage.start[row + 1]):
            carried[usage.link[at]] += usage.share[at] * size[one]
            flows[usage.link[at]] += usage.share[at]
    used = np.flatnonzero(flows).astype(np.int32)
    return used, carried[used] / bandwidth[used], flows[used], latency
