"""CASSINI's circles (Rajasekaran, Ghobadi and Akella, NSDI 2024): how well jobs that share a link can take turns.

An iteration is a circle, and a job's demand of the link lies round it. Jobs of different iterations are rolled onto one
circle whose perimeter is the least common multiple of theirs, each as often as it fits. Rotating a job shifts it in
time. Where demands add up to more than the link has, there is excess; the score of a rotation is 1 less the mean excess
over the link's capacity, so 1 where jobs interleave perfectly.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.tenancy.pacing._circle_kernel import all_turns, one_after_the_other

MOST_STEPS = 5040
"""Of a unified circle; beyond it jobs are taken not to be in step."""
EXHAUSTIVE = 6000
"""Rotations that are all tried; of more, one job after the other is turned until nothing gets better."""


def perimeter(demands: Sequence[Floats]) -> int | None:
    """Steps of the unified circle; None where it would be too long.

    A demand is a part of a link's capacity in equal steps around an iteration.
    """
    steps = lcm(*(len(demand) for demand in demands))
    return steps if steps <= MOST_STEPS else None


def mean_score(demands: Sequence[Floats]) -> float:
    """The score of jobs that are not in step: the mean over all their rotations, by what is on the link at a moment."""
    spread = {0.0: 1.0}
    for demand in demands:
        values, counts = np.unique(np.round(demand, 6), return_counts=True)
        after: dict[float, float] = {}
        for load, chance in spread.items():
            for value, count in zip(values.tolist(), counts.tolist(), strict=True):
                after[load + value] = after.get(load + value, 0.0) + chance * count / len(demand)
        spread = after
    return 1.0 - sum(max(load - 1.0, 0.0) * chance for load, chance in spread.items())


def best_turns(demands: Sequence[Floats]) -> tuple[tuple[int, ...], float]:
    """Rotations with the best score, the first job standing still; ties go to the smallest rotation.

    >>> thirds = [np.array([1.0, 0.0, 0.0])] * 3
    >>> best_turns(thirds)
    ((0, 1, 2), 1.0)
    """
    lengths = [len(demand) for demand in demands]
    steps = perimeter(demands)
    assert steps is not None, "there is a unified circle"
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    search = all_turns if prod(lengths[1:]) <= EXHAUSTIVE else one_after_the_other
    turns, found = search(np.concatenate(demands), start, steps)
    return tuple(turns.tolist()), float(found)
