"""Maximum flows in whole numbers: how much can get from a source to a sink, and the cut that says why not more.

Capacities whose sum fits 64 bits run compiled. Larger ones run through the very same kernel, uncompiled, on Python's
integers, so that an awkward capacity costs time and never correctness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.optimum._push_relabel import first_short_sink, push_relabel

_LARGEST = 1 << 62
"""Sums of capacities stay below this in compiled code, so that no excess overflows."""


class Shortfall(NamedTuple):
    """The first sink that cannot get what it needs."""

    position: int
    """Position of the sink among those asked for."""
    flow: int
    source_side: NDArray[np.bool_]
    """A narrowest cut between the source and that sink: the largest side the source can keep."""


@dataclass(frozen=True, eq=False)
class FlowNetwork:
    """Arcs between vertices, ready for any number of flows with changing capacities.

    >>> diamond = FlowNetwork(4, np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]))
    >>> diamond.flow([3, 2, 1, 5], 0, 3)
    3
    """

    vertices: int
    tail: Ints
    head: Ints

    @cached_property
    def _residual_arcs(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Forward and backward arcs by tail: first of each vertex, head, the opposite arc, and where each arc went."""
        arcs = len(self.tail)
        tails = np.concatenate([self.tail, self.head])
        order = np.argsort(tails, kind="stable")
        place = np.empty(2 * arcs, np.int64)
        place[order] = np.arange(2 * arcs)
        first = np.zeros(self.vertices + 1, np.int64)
        np.cumsum(np.bincount(tails, minlength=self.vertices), out=first[1:])
        head = np.concatenate([self.head, self.tail])[order].astype(np.int64)
        mate = place[(order + arcs) % (2 * arcs)]
        return first, head, mate, place[:arcs]

    def flow(self, capacity: Sequence[int] | Ints, source: int, sink: int) -> int:
        """The value of a maximum flow."""
        return self.cut(capacity, source, sink).flow

    def cut(self, capacity: Sequence[int] | Ints, source: int, sink: int) -> Shortfall:
        """A narrowest cut and its value."""
        shortfall = self.first_shortfall(capacity, source, np.array([sink]), None)
        assert shortfall is not None
        return shortfall

    def first_shortfall(
        self, capacity: Sequence[int] | Ints, source: int, sinks: Ints, need: int | None
    ) -> Shortfall | None:
        """The first sink whose maximum flow from the source is below `need` (None: any); None if all get it."""
        first, head, mate, place = self._residual_arcs
        total = _sum(capacity)
        need = total + 1 if need is None else need
        side = np.zeros(self.vertices, np.bool_)
        if max(total, need) < _LARGEST:
            residual = np.zeros(len(head), np.int64)
            residual[place] = capacity
            index, flow = first_short_sink(first, head, mate, residual, source, sinks, need, side)
            return None if index < 0 else Shortfall(int(index), int(flow), ~side)
        exact: Any = push_relabel.py_func
        for index, sink in enumerate(sinks):
            residual = np.zeros(len(head), object)
            residual[place] = capacity
            flow = exact(first, head, mate, residual, source, sink, need, side)
            if flow < need:
                return Shortfall(index, int(flow), ~side)
        return None


def _sum(capacity: Sequence[int] | Ints) -> int:
    """The sum without overflow; NumPy's own where it cannot overflow."""
    if isinstance(capacity, np.ndarray) and capacity.sum(dtype=np.float64) < _LARGEST / 2:
        return int(capacity.sum())
    return sum(map(int, capacity))
