"""Kernel: shares of paths that load links equally. Nothing here knows fabrics or routes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel


@kernel
def move_shares(
    pairs: NDArray[np.int64],
    amount: NDArray[np.float64],
    path_start: NDArray[np.int64],
    link_start: NDArray[np.int64],
    link: NDArray[np.int32],
    slowness: NDArray[np.float64],
    load: NDArray[np.float64],
    share: NDArray[np.float64],
) -> float:
    """For each of the pairs move share from its dearest to its cheapest path; return the sum of squared loads then.

    The price of a path is what the sum of squares gains by a unit on it. The move goes as far as it helps, or until the
    dear path has nothing left. `load` (time of each link: bytes times slowness) and `share` are updated in place.
    """
    change = np.zeros(len(load))
    for pair in pairs:
        cheap, dear = -1, -1
        least, most = np.inf, -np.inf
        for path in range(path_start[pair], path_start[pair + 1]):
            price = 0.0
            for at in range(link_start[path], link_start[path + 1]):
                price += load[link[at]] * slowness[link[at]]
            if price < least:
                least, cheap = price, path
            if share[path] > 0 and price > most:
                most, dear = price, path
        if cheap == dear or least >= most:
            continue
        for at in range(link_start[cheap], link_start[cheap + 1]):
            change[link[at]] += amount[pair] * slowness[link[at]]
        for at in range(link_start[dear], link_start[dear + 1]):
            change[link[at]] -= amount[pair] * slowness[link[at]]
        curve = 0.0
        for path in (cheap, dear):
            for at in range(link_start[path], link_start[path + 1]):
                # A link on both paths has no change; every other link is on one of them.
                curve += change[link[at]] ** 2
        moved = min((most - least) * amount[pair] / curve, share[dear])
        share[cheap] += moved
        share[dear] -= moved
        for path in (cheap, dear):
            for at in range(link_start[path], link_start[path + 1]):
                load[link[at]] += moved * change[link[at]]
                change[link[at]] = 0.0
    total = 0.0
    for value in load:
        total += value * value
    return total
