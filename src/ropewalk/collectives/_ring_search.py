"""Looking for rings, the kernels: the best single one by branch and bound, several by threshold accepting.

What a hop from rank a to rank b puts on links stands in rows of a CSR array, row a*ranks + b: (link, how long the link
is busy with one unit). `both` counts every ring in both directions. The peak is what the busiest link has to do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.compiled import kernel

_STEEP = 8
"""Loads enter the sum that is made small with this power, so that the highest ones count most."""


@kernel
def _put(
    ranks: int, a: int, b: int, sign: float, both: bool, start: Ints, link: Ints, busy: Floats, load: Floats
) -> float:
    """Add (or take off) a hop; the largest load among the links that it touches."""
    peak = 0.0
    for turn in range(2 if both else 1):
        row = a * ranks + b if turn == 0 else b * ranks + a
        for at in range(start[row], start[row + 1]):
            load[link[at]] += sign * busy[at]
            peak = max(peak, load[link[at]])
    return peak


@kernel
def exact_ring(
    ranks: int, links: int, both: bool, start: Ints, link: Ints, busy: Floats, order: Ints, best_peak: float
) -> float:
    """The order with the lowest peak, if one is below `best_peak`: it is written to `order`."""
    load = np.zeros(links)
    path = np.zeros(ranks, np.int64)
    used = np.zeros(ranks, np.bool_)
    used[0] = True
    peak = np.zeros(ranks + 1)
    depth = 1
    path[1] = 0  # the last rank tried at this depth
    while depth >= 1:
        if used[path[depth]] and path[depth] != 0:
            used[path[depth]] = False
            _put(ranks, path[depth - 1], path[depth], -1.0, both, start, link, busy, load)
        moved = False
        for rank in range(path[depth] + 1, ranks):
            if used[rank]:
                continue
            reached = max(peak[depth - 1], _put(ranks, path[depth - 1], rank, 1.0, both, start, link, busy, load))
            if reached < best_peak - 1e-12:
                path[depth] = rank
                used[rank] = True
                peak[depth] = reached
                moved = True
                break
            _put(ranks, path[depth - 1], rank, -1.0, both, start, link, busy, load)
        if not moved:
            depth -= 1
            continue
        if depth == ranks - 1:
            closed = max(peak[depth], _put(ranks, path[depth], 0, 1.0, both, start, link, busy, load))
            _put(ranks, path[depth], 0, -1.0, both, start, link, busy, load)
            if closed < best_peak - 1e-12:
                best_peak = closed
                order[:] = path
            continue
        depth += 1
        path[depth] = 0
    return best_peak


@kernel
def _random(state: NDArray[np.uint64], below: int) -> np.int64:
    """The next number of a xorshift generator (Marsaglia, 2003)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return np.int64((x >> np.uint64(11)) % np.uint64(below))


@kernel
def _change(order: Ints, state: NDArray[np.uint64]) -> None:
    """Turn a stretch round, swap two ranks, or move one somewhere else; rank order[0] may move too."""
    n = len(order)
    i = _random(state, n)
    j = _random(state, n)
    if i > j:
        i, j = j, i
    kind = _random(state, 4)
    if kind <= 1:
        while i < j:
            order[i], order[j] = order[j], order[i]
            i += 1
            j -= 1
    elif kind == 2:
        order[i], order[j] = order[j], order[i]
    else:
        moved = order[i]
        for at in range(i, j):
            order[at] = order[at + 1]
        order[j] = moved


@kernel
def _lay(order: Ints, sign: float, both: bool, start: Ints, link: Ints, busy: Floats, load: Floats) -> None:
    n = len(order)
    for at in range(n):
        _put(n, order[at], order[(at + 1) % n], sign, both, start, link, busy, load)


@kernel
def peak_of(orders: Ints, links: int, both: bool, start: Ints, link: Ints, busy: Floats) -> float:
    """What the busiest link has to do for all rings together."""
    load = np.zeros(links)
    for lane in range(len(orders)):
        _lay(orders[lane], 1.0, both, start, link, busy, load)
    return float(load.max())


@kernel
def improve(
    orders: Ints, links: int, both: bool, start: Ints, link: Ints, busy: Floats, moves: int, seed: int, enough: float
) -> float:
    """Change rings at random and keep what is better, or at first only a little worse; `orders` ends as the best seen.

    Ends early when the peak is as low as `enough`. Dueck and Scheuer, "Threshold accepting", 1990.
    """
    state = np.array([seed * 2 + 1], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    load = np.zeros(links)
    for lane in range(len(orders)):
        _lay(orders[lane], 1.0, both, start, link, busy, load)
    best_peak = float(load.max())
    best = orders.copy()
    now = orders.copy()
    steep = float(np.sum((load / best_peak) ** _STEEP))
    scale = best_peak
    trial = np.empty_like(now[0])
    trial_load = np.empty_like(load)
    for move in range(moves):
        if best_peak <= enough * (1 + 1e-12):
            break
        lane = _random(state, len(now))
        trial[:] = now[lane]
        _change(trial, state)
        trial_load[:] = load
        _lay(now[lane], -1.0, both, start, link, busy, trial_load)
        _lay(trial, 1.0, both, start, link, busy, trial_load)
        total = 0.0
        peak = 0.0
        for at in range(links):
            peak = max(peak, trial_load[at])
            ratio = trial_load[at] / scale
            square = ratio * ratio
            total += square * square * square * square
        if total <= steep * (1.0 + 0.3 * (1.0 - move / moves) ** 2):
            now[lane] = trial
            load[:] = trial_load
            steep = total
            if peak < best_peak - 1e-12:
                best_peak = peak
                best[:] = now
    orders[:] = best
    return best_peak
