"""Rates as whole numbers of one unit, so that a buffer can be cut into equal chunks and loads are counted exactly."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.topoadopt._evening import even_out
from ropewalk.collectives.topoadopt.problem import PackingProblem
from ropewalk.errors import PhysicsError

_MOST_CHUNKS = 4096
"""Numbers that lose nothing are looked for up to this many chunks of a buffer."""
_NOTHING = 1e-7
_MOST_UNITS = 1 << 40


def simplest_whole(problem: PackingProblem[Any], rate: Floats, total: float, loss: float) -> tuple[Ints, Fraction]:
    """Numbers for all trees and the bytes/s of one unit, with which the fullest arc is exactly full.

    The simplest numbers that lose nothing of the total rate (in parts of the largest capacity) are taken if they are
    simple enough; otherwise the simplest that lose no more than a part of it.
    """
    evened = _Evened(problem, rate)
    nearly: Ints | None = None
    for units in _numbers():
        counts, fullest = evened(problem.counts(rate, units))
        chunks = problem.total(counts)
        lost = 1 - chunks / (fullest * total)
        if lost <= _NOTHING and (nearly is None or chunks <= _MOST_CHUNKS):
            return counts, _unit(problem, counts)
        if nearly is None and lost <= loss:
            nearly = counts
        if nearly is not None and chunks > _MOST_CHUNKS:
            return nearly, _unit(problem, nearly)
    raise PhysicsError(f"trees on {problem.network.fabric.name}: rates cannot be written as whole numbers")


def _numbers() -> Iterator[int]:
    """Every number while they are small, then steps in proportion."""
    units = 1
    while units < _MOST_UNITS:
        yield units
        units += max(1, units // 32)


class _Evened:
    """Whole numbers after units have moved from trees over the fullest arc to others."""

    def __init__(self, problem: PackingProblem[Any], rate: Floats) -> None:
        depths = problem.depths()
        used = (rate > 0) | (problem.counts(rate, 1) > 0)
        # Trees that are deeper than all that have a rate would only take longer.
        group = np.where(depths <= depths[used].max(), problem.groups(), -1)
        self.order = np.argsort(group, kind="stable")[np.count_nonzero(group < 0) :]
        group = group[self.order]
        self.start = np.searchsorted(group, group, "left")
        self.end = np.searchsorted(group, group, "right")
        use = problem.use().tocsc()[:, self.order]
        self.first, self.arc = use.indptr.astype(np.int64), use.indices.astype(np.int64)
        self.times = use.data.astype(np.int64)
        self.capacity = problem.graph.capacity

    def __call__(self, counts: Ints) -> tuple[Ints, float]:
        """The numbers, and how full the fullest arc is."""
        ordered = counts[self.order]
        fullest = even_out(self.first, self.arc, self.times, self.start, self.end, self.capacity, ordered)
        evened = np.zeros_like(counts)
        evened[self.order] = ordered
        return evened, float(fullest)


def _unit(problem: PackingProblem[Any], counts: Ints) -> Fraction:
    """Bytes/s of one, exactly."""
    load: Ints = problem.use().astype(np.int64) @ counts
    capacities = zip(problem.network.capacity, load.tolist(), strict=True)
    return problem.network.bandwidth(min(Fraction(capacity, each) for capacity, each in capacities if each))
