"""Turning circles of demands against each other: the loops over rotations and steps; see `circle.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel

BETTER = 1e-12
"""A rotation is taken instead of an earlier one where its score is higher by more than this."""
MOVED = 1e-9
"""A job moves where that takes away more excess than this."""


@kernel
def _put(total: NDArray[np.float64], demand: NDArray[np.float64], turn: int, sign: float) -> None:
    """Add a demand that is turned by so many steps, as often as it fits."""
    length, place = len(demand), -turn % len(demand)
    for at in range(len(total)):
        total[at] += sign * demand[place]
        place = place + 1 if place + 1 < length else 0


@kernel
def _excess(others: NDArray[np.float64], demand: NDArray[np.float64], turn: int) -> float:
    """What is asked for beyond the link with one more demand, summed over all steps."""
    length, place, over = len(demand), -turn % len(demand), 0.0
    for at in range(len(others)):
        asked = others[at] + demand[place]
        if asked > 1.0:
            over += asked - 1.0
        place = place + 1 if place + 1 < length else 0
    return over


@kernel
def all_turns(demand: NDArray[np.float64], start: NDArray[np.int64], steps: int) -> tuple[NDArray[np.int64], float]:
    """The best of all rotations, the first job standing still; the first of equally good ones.

    Demands are laid end to end: job j has `demand[start[j]:start[j + 1]]`. Rotations are tried in the order of an
    odometer whose last wheel turns fastest, with what all but the last put on the link kept from try to try.
    """
    jobs = len(start) - 1
    turns, best, found = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64), -np.inf
    below = np.zeros((jobs, steps))
    for job in range(jobs - 1):
        below[job + 1] = below[job]
        _put(below[job + 1], demand[start[job] : start[job + 1]], 0, 1.0)
    last = jobs - 1
    mine = demand[start[last] : start[jobs]]
    while True:
        for turn in range(len(mine) if last > 0 else 1):
            reached = 1.0 - _excess(below[last], mine, turn) / steps
            if reached > found + BETTER:
                found, best[:] = reached, turns
                best[last] = turn
                if found >= 1.0 - BETTER:
                    return best, found
        wheel = last - 1
        while wheel > 0 and turns[wheel] == start[wheel + 1] - start[wheel] - 1:
            turns[wheel] = 0
            wheel -= 1
        if wheel <= 0:
            return best, found
        turns[wheel] += 1
        for job in range(wheel, last):
            below[job + 1] = below[job]
            _put(below[job + 1], demand[start[job] : start[job + 1]], turns[job], 1.0)


@kernel
def _best_turn(others: NDArray[np.float64], mine: NDArray[np.float64], stays: int) -> int:
    """The rotation with the least excess beside others; the present one where none is better."""
    least, best = _excess(others, mine, stays), stays
    for turn in range(len(mine)):
        over = _excess(others, mine, turn)
        if over < least - MOVED:
            least, best = over, turn
    return best


@kernel
def one_after_the_other(
    demand: NDArray[np.float64], start: NDArray[np.int64], steps: int
) -> tuple[NDArray[np.int64], float]:
    """Each job in turn to where it fits best among the others, until nobody moves."""
    jobs = len(start) - 1
    turns, placed = np.zeros(jobs, np.int64), np.zeros(steps)
    _put(placed, demand[start[0] : start[1]], 0, 1.0)
    for job in range(1, jobs):
        mine = demand[start[job] : start[job + 1]]
        turns[job] = _best_turn(placed, mine, 0)
        _put(placed, mine, turns[job], 1.0)
    for _ in range(jobs):
        moved = False
        for job in range(1, jobs):
            mine = demand[start[job] : start[job + 1]]
            _put(placed, mine, turns[job], -1.0)
            turn = _best_turn(placed, mine, turns[job])
            moved = moved or turn != turns[job]
            turns[job] = turn
            _put(placed, mine, turn, 1.0)
        if not moved:
            break
    over = 0.0
    for at in range(steps):
        over += max(placed[at] - 1.0, 0.0)
    return turns, 1.0 - over / steps
