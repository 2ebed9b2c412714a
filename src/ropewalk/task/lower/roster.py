"""Who takes part in the copies of an operation: all that lowering knows about ranks.

Ranks of a stage are numbered by their coordinates; a `Kind` of operation says how many copies of it there are and which
of these ranks each copy has. Stages of one shape share their kinds. A send between stages of different shapes is one
message for each pair of ranks that have something in common: a replica holds a range of the samples of a micro-batch, a
tensor rank sends and receives a range of its columns (of its tokens under sequence parallelism), and a message is where
two such rectangles overlap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from ropewalk.ragged import ranges
from ropewalk.strategy.placement import AXES, Placement
from ropewalk.task.lower.moves import Scope

Ints = NDArray[np.int64]

INNER = AXES[1:]
"""Coordinates of a rank inside its stage."""
MERGED: dict[Scope, tuple[str, ...]] = {
    Scope.RANK: (),
    Scope.TENSOR: ("tp",),
    Scope.CONTEXT: ("cp",),
    Scope.EXPERT: ("ep",),
    Scope.DATA: ("dp", "ep", "cp"),
    Scope.EXPERT_DATA: ("dp", "cp"),
    Scope.TIED: (),
}
"""Coordinates in which the ranks of one operation differ."""


@dataclass(frozen=True, eq=False)
class Side:
    """Which copy has which rank of a stage: pairs of (copy, rank counted in the stage)."""

    copy: Ints
    rank: Ints


@dataclass(frozen=True, eq=False)
class Kind:
    """Operations whose copies have the same ranks, counted in their stages."""

    copies: int
    here: Side
    there: Side
    """The same for the other stage, where there is one: as `here` between stages of one shape."""
    share: NDArray[np.float64] | None = None
    """By copy, its part of the amount; None where every copy has all of it."""

    @property
    def even(self) -> bool:
        """Do both stages see the same copies?"""
        return self.here is self.there


class Roster:
    """Kinds of operations of a placement, made when they are asked for."""

    def __init__(self, placement: Placement) -> None:
        self.ranks = placement.ranks
        self.grids = placement.stage_grids
        self.parts_of_columns = placement.strategy.scatter_gather or placement.strategy.sequence_parallel
        self.flat = np.concatenate([grid.ravel() for grid in self.grids])
        self.base = np.cumsum([0, *(grid.size for grid in self.grids)])[:-1]
        """Rank r of stage s is `flat[base[s] + r]`."""
        self.kinds: list[Kind] = []
        self._known: dict[tuple[object, ...], int] = {}
        for scope in MERGED:
            self.kind_of(scope, 0, -1)  # numbered by scope where all stages are alike

    def kind_of(self, scope: Scope, stage: int, peer: int) -> int:
        """The number of the kind of an operation."""
        shape = self.grids[stage].shape
        uneven = peer >= 0 and self.grids[peer].shape != shape
        key = (scope, shape, self.grids[peer].shape) if uneven else (scope, shape)
        if key not in self._known:
            self._known[key] = len(self.kinds)
            self.kinds.append(self._made(scope, stage, peer) if uneven else _of_one_shape(scope, shape))
        return self._known[key]

    def _made(self, scope: Scope, stage: int, peer: int) -> Kind:
        here, there = self.grids[stage].shape, self.grids[peer].shape
        if scope is Scope.TIED:
            # Replicas and parts differ, so all ranks of both stages meet.
            return Kind(1, _everyone(here), _everyone(there))
        if scope is not Scope.RANK:
            # Two copies of the same weights, each with its own replicas but split over as many tensor ranks.
            both = [_of_one_shape(scope, shape) for shape in (here, there)]
            assert both[0].copies == both[1].copies, f"{scope.name} between stages that are split differently"
            return Kind(both[0].copies, both[0].here, both[1].here)
        source, target, share = messages(_replicas(here), here[-1], _replicas(there), there[-1], self.parts_of_columns)
        copies = np.arange(len(share))
        return Kind(len(share), Side(copies, source), Side(copies, target), share)

    def members(self, scope: Scope, stage: int, peer: int) -> list[NDArray[np.int32]]:
        """The ranks of every copy of a collective, ascending."""
        kind = self.kinds[self.kind_of(scope, stage, peer)]
        sides = [(stage, kind.here)] + ([(peer, kind.there)] if peer >= 0 else [])
        copy = np.concatenate([side.copy for _, side in sides])
        rank = np.concatenate([self.flat[self.base[one] + side.rank] for one, side in sides])
        order = np.lexsort((rank, copy))
        return np.split(rank[order].astype(np.int32), np.flatnonzero(np.diff(copy[order])) + 1)


def shared(waiting: Side, awaited: Side) -> tuple[Ints, Ints]:
    """Pairs of copies that have a rank in common: of the one that waits, of the one it waits for."""
    order = np.argsort(awaited.rank, kind="stable")
    sorted_rank = awaited.rank[order]
    first = np.searchsorted(sorted_rank, waiting.rank, side="left")
    count = np.searchsorted(sorted_rank, waiting.rank, side="right") - first
    others = int(awaited.copy.max(initial=0)) + 1
    pair = np.unique(np.repeat(waiting.copy, count) * others + awaited.copy[order][ranges(first, count)])
    return pair // others, pair % others


def messages(
    replicas: int, tensor: int, their_replicas: int, their_tensor: int, parts_of_columns: bool = True
) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Who sends which part of a micro-batch to whom: ranks of both stages, replica by replica, and shares.

    Replica i of m holds samples i/m to (i+1)/m, tensor rank k of t sends columns k/t to (k+1)/t; receivers with several
    tensor ranks gather them. Without parts of columns every receiver gets all of its samples from one sender each.

    >>> source, target, share = messages(3, 1, 2, 1)
    >>> source.tolist(), target.tolist(), share.round(3).tolist()
    ([0, 1, 1, 2], [0, 0, 1, 1], [0.333, 0.167, 0.167, 0.333])
    """
    samples = _overlaps(replicas, their_replicas)
    if parts_of_columns:
        columns = _overlaps(tensor, their_tensor)
    else:
        columns = [(rank % tensor, rank, 1.0) for rank in range(their_tensor)]
    found = sorted(
        (mine * tensor + left, theirs * their_tensor + right, part * width)
        for (mine, theirs, part), (left, right, width) in product(samples, columns)
    )
    source, target, share = (np.array(column) for column in zip(*found, strict=True))
    return source.astype(np.int64), target.astype(np.int64), share.astype(np.float64)


def _overlaps(mine: int, theirs: int) -> list[tuple[int, int, float]]:
    """Where the i-th of `mine` equal ranges and the j-th of `theirs` overlap, and by how much of the whole."""
    whole = math.lcm(mine, theirs)
    cuts = sorted({*range(0, whole + 1, whole // mine), *range(0, whole + 1, whole // theirs)})
    return [(start * mine // whole, start * theirs // whole, (end - start) / whole) for start, end in pairwise(cuts)]


def _everyone(shape: tuple[int, ...]) -> Side:
    """One copy with all ranks of a stage."""
    ranks = np.arange(math.prod(shape))
    return Side(np.zeros_like(ranks), ranks)


def _replicas(shape: tuple[int, ...]) -> int:
    return math.prod(shape[:-1])


def _of_one_shape(scope: Scope, shape: tuple[int, ...]) -> Kind:
    """A copy for every combination of the coordinates that are not merged."""
    number = np.zeros(shape, np.int64)
    copies = 1
    for axis, name in enumerate(INNER):
        if name not in MERGED[scope]:
            along = np.arange(shape[axis]).reshape([-1 if at == axis else 1 for at in range(len(INNER))])
            number = number * shape[axis] + along
            copies *= shape[axis]
    side = Side(number.ravel(), np.arange(number.size))
    return Kind(copies, side, side)
