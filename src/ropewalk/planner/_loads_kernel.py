"""Loads that operations put on links, added up over all hops of all transfers: kernels without any sorting.

Hops stand in runs: those of one operation, or of one sort of operations, follow each other.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.sim.flow.kernel import kernel


@kernel
def largest_sums(run_of: Ints, link: Ints, load: Floats, links: int, runs: int) -> Floats:
    """By run the largest load that it puts on any link."""
    found, on_link = np.zeros(runs), np.zeros(links)
    first = 0
    while first < len(run_of):
        run, last = run_of[first], first
        while last < len(run_of) and run_of[last] == run:
            on_link[link[last]] += load[last]
            last += 1
        for hop in range(first, last):
            found[run] = max(found[run], on_link[link[hop]])
        for hop in range(first, last):
            on_link[link[hop]] = 0.0
        first = last
    return found


@kernel
def sums_by_link(run_of: Ints, link: Ints, load: Floats, links: int) -> tuple[Ints, Ints, Floats]:
    """By link, as CSR, the runs that put a load on it, in their order, and how much."""
    start, last_run = np.zeros(links + 1, np.int64), np.full(links, -1)
    for hop in range(len(run_of)):
        if last_run[link[hop]] != run_of[hop]:
            last_run[link[hop]] = run_of[hop]
            start[link[hop] + 1] += 1
    for one in range(links):
        start[one + 1] += start[one]
    filled = start[:-1].copy()
    run, total = np.empty(start[-1], np.int64), np.zeros(start[-1])
    last_run[:] = -1
    for hop in range(len(run_of)):
        one = link[hop]
        if last_run[one] != run_of[hop]:
            last_run[one] = run_of[hop]
            run[filled[one]] = run_of[hop]
            filled[one] += 1
        total[filled[one] - 1] += load[hop]
    return start, run, total
