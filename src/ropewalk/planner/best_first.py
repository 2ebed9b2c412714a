"""Find the fastest candidate without simulating the others: best bound first, until no bound is below the best time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.interrupts import unwrapped_interrupts

AT_ONCE = 32
"""Candidates that are replayed together."""
FLOOR, REPLAY = 0, 1


@dataclass(eq=False)
class PlannerSearch:
    """What was found on the way."""

    replay_s: Floats
    """Bounds by replay, not a number where the floor was enough."""
    seconds: Floats
    """Simulated step times, not a number where the bound was enough."""
    best: int = -1
    bound_s: float = np.inf
    """No candidate that was not simulated can take less."""
    complete: bool = False
    """Is the best one proved to be it?"""
    order: list[int] = field(default_factory=list)
    """Candidates in the order in which they were simulated."""


def best_first(
    floor_s: Floats,
    replay: Callable[[Ints], Floats],
    simulate: Callable[[int], float],
    most: int,
    say: Callable[[PlannerSearch], None] = lambda found: None,
    ahead: Callable[[list[int]], None] = lambda next_ones: None,
    width: int = 1,
) -> PlannerSearch:
    """Candidates are looked at in the order of what is known to be below their time: floor, replay, simulation.

    A candidate is replayed when its floor is the lowest of all that is known, and simulated when its replay is. When
    the best simulated time is no higher than the lowest bound left, no other candidate can be faster. Stops after
    `most` simulations, or when interrupted; the best so far is kept. `ahead` is told the `width` candidates that are
    likely to be simulated next, whose times somebody may find out side by side; the search itself is the same.
    """
    found = PlannerSearch(np.full(len(floor_s), np.nan), np.full(len(floor_s), np.nan))
    # Ties go to the candidate that stands first, so the same space gives the same answer.
    waiting = [(float(seconds), FLOOR, at) for at, seconds in enumerate(floor_s) if np.isfinite(seconds)]
    heapq.heapify(waiting)
    best = np.inf
    try:
        with unwrapped_interrupts():
            while waiting:
                bound, sort, at = waiting[0]
                found.bound_s = min(bound, best)
                if bound >= best:
                    found.complete = True
                    break
                if len(found.order) >= most:
                    break
                if sort == REPLAY:
                    if width > 1:
                        ahead([one for _, sort, one in heapq.nsmallest(width, waiting) if sort == REPLAY])
                    heapq.heappop(waiting)
                    found.seconds[at] = simulate(at)
                    found.order.append(at)
                    if found.seconds[at] < best:
                        best, found.best = found.seconds[at], at
                    say(found)
                    continue
                _replay_some(waiting, found, replay)
            else:
                found.bound_s, found.complete = best, True
    except KeyboardInterrupt:
        if found.best < 0:
            raise
    return found


def _replay_some(waiting: list[tuple[float, int, int]], found: PlannerSearch, replay: Callable[[Ints], Floats]) -> None:
    """Replay the candidates with the lowest floors."""
    some: list[tuple[float, int]] = []
    while waiting and waiting[0][1] == FLOOR and len(some) < AT_ONCE:
        floor, _, at = heapq.heappop(waiting)
        some.append((floor, at))
    which = np.array([at for _, at in some], np.int64)
    found.replay_s[which] = replay(which)
    for floor, at in some:
        heapq.heappush(waiting, (max(floor, float(found.replay_s[at])), REPLAY, at))
