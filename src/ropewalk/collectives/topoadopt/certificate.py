"""The proof that a packing is nearly the best: prices of arcs under which no collective is cheap.

If every collective of one byte costs at least a at prices p, and all capacity together costs c, then no schedule
carries more than c / a: carrying X bytes/s costs at least a X, and no more than all capacity is used. Prices are
rounded to whole numbers first, so that the bound is a fraction and holds exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.collectives.topoadopt.problem import PackingProblem

_SIMPLE = (*range(1, 13), 16, 18, 20, 24, 30, 36, 42, 48, 60)
_FINE = 1 << 28
"""Whole prices that the dearest arc is given: prices at a corner of a linear program are often simple fractions, and
then the bound is the optimum itself; otherwise fine ones lose almost nothing, and their sums stay below 2^53."""


def least_bound(problem: PackingProblem[Any], prices: Iterable[Floats], achieved: Fraction) -> Fraction:
    """Bytes/s that no schedule exceeds, by the best of some prices; the search ends where that is achieved."""
    least: Fraction | None = None
    for price in prices:
        symmetric = problem.symmetric(price)
        for dearest in (_FINE, *_SIMPLE):
            bound = _bound(problem, np.rint(symmetric * (dearest / symmetric.max())))
            if bound is not None and (least is None or bound < least):
                least = bound
            if least == achieved:
                return least
    assert least is not None, "fine prices are not all zero, so that some collective has a cost"
    return least


def _bound(problem: PackingProblem[Any], price: Floats) -> Fraction | None:
    cost = problem.least_cost(price)
    if cost == 0:
        return None
    worth = sum(capacity * int(each) for capacity, each in zip(problem.network.capacity, price.tolist(), strict=True))
    return problem.network.bandwidth(worth / cost)
