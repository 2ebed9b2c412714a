"""Kernel: what a pair puts on each link, over all of its paths. Nothing here knows fabrics or routes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel


@kernel
def merge_paths(
    path_start: NDArray[np.int64],
    link_start: NDArray[np.int64],
    link: NDArray[np.int32],
    share: NDArray[np.float64],
    links: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """CSR by pair (start, link, share): its links in order, each once, with the shares of all paths over it."""
    pairs = len(path_start) - 1
    start = np.zeros(pairs + 1, np.int64)
    seen = np.full(links, -1, np.int64)
    for pair in range(pairs):
        count = 0
        for at in range(link_start[path_start[pair]], link_start[path_start[pair + 1]]):
            if seen[link[at]] != pair:
                seen[link[at]] = pair
                count += 1
        start[pair + 1] = start[pair] + count
    used = np.empty(start[-1], np.int32)
    parts = np.empty(start[-1], np.float64)
    on_link = np.zeros(links)
    seen[:] = -1
    for pair in range(pairs):
        end = start[pair]
        for path in range(path_start[pair], path_start[pair + 1]):
            for at in range(link_start[path], link_start[path + 1]):
                one = link[at]
                if seen[one] != pair:
                    seen[one] = pair
                    on_link[one] = 0.0
                    used[end] = one
                    end += 1
                on_link[one] += share[path]
        used[start[pair] : end].sort()
        for at in range(start[pair], end):
            parts[at] = on_link[used[at]]
    return start, used, parts
