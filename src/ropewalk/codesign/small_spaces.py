"""Small spaces whole: every strategy that could be best, on every wiring that is made for one of those.

A strategy cannot be faster on a wiring than on a switch that gives every server all its ports at once, so one that is
slower there than something already known need not be tried on any wiring, nor need a wiring be made for it. All times
here are estimates; which of the best pairs is the best is left to the simulation.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from ropewalk.codesign.alternate import Candidate, Rewire
from ropewalk.fabric.wiring import Wiring
from ropewalk.strategy.seating import Seating

Cost = Callable[[Seating], float]
CostOn = Callable[[Wiring, Seating], Cost]
"""From a wiring, and the strategy it was made for, to the times of strategies on it."""
FIRST = 20
"""Strategies that are timed on wirings of their own first, so that others can be ruled out."""


def best_pairs(
    seatings: Sequence[Seating],
    *,
    rewire: Rewire,
    cost_on: CostOn,
    bound: Cost,
    keep: int,
    most: int,
) -> list[Candidate] | None:
    """The `keep` fastest pairs of strategy and wiring, fastest first; None where more than `most` pairs remain.

    `bound` is a time that a strategy cannot beat on any wiring.
    """
    least = {seating: bound(seating) for seating in seatings}
    promising = sorted(seatings, key=lambda one: least[one])
    found = []
    for seating in promising[:FIRST]:
        wiring = rewire(seating)
        found.append(Candidate(seating, wiring, cost_on(wiring, seating)(seating)))
    # Among the pairs that are kept only the best is sure: ruling out goes by that one.
    limit = min(one.seconds for one in found)
    left = [seating for seating in promising if least[seating] < limit]
    if len(left) > most:
        return None
    made_for: dict[Wiring, Seating] = {}
    for seating in left:
        made_for.setdefault(rewire(seating), seating)
    if len(left) * len(made_for) > most:
        return None
    for wiring, first in made_for.items():
        cost = cost_on(wiring, first)
        for seating in left:
            if least[seating] >= limit:
                break  # sorted by their bounds: those behind it are ruled out as well
            found.append(Candidate(seating, wiring, cost(seating)))
            limit = min(limit, found[-1].seconds)
    unique = {(one.seating, one.wiring): one for one in found}
    return heapq.nsmallest(keep, unique.values(), key=lambda one: one.seconds)
