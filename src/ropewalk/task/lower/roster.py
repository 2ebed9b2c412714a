"""Who takes part in the copies of an operation: all that lowering knows about ranks.

Ranks of a stage are numbered by their coordinates; an `OperationKind` says how many copies there are and which of
these ranks each copy has. Stages of one shape share their kinds. A send between stages of different shapes is one
message for each pair of ranks that have something in common: a replica holds a range of the samples of a micro-batch, a
tensor rank sends and receives a range of its columns (of its tokens under sequence parallelism), and a message is where
two such rectangles overlap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.ragged import ranges
from ropewalk.strategy.between import TensorSpread, gradients_between, moved, parts_between
from ropewalk.strategy.placement import AXES, Placement
from ropewalk.strategy.seating import Seat, seat_of
from ropewalk.strategy.strategy import SERVER
from ropewalk.task.lower.moves import Scope

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
    Scope.BACK: (),
}
"""Coordinates in which the ranks of one operation differ."""


@dataclass(frozen=True, eq=False)
class Side:
    """Which copy has which rank of a stage: pairs of (copy, rank counted in the stage)."""

    copy: Ints
    rank: Ints


@dataclass(frozen=True, eq=False)
class OperationKind:
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

    def of_copies(self, side: str) -> Ints:
        """The rank of every copy, where each has one."""
        ranks: Ints = getattr(self, side).rank
        return ranks if len(ranks) == self.copies else np.zeros(self.copies, np.int64)


class Roster:
    """Kinds of operations of a placement, made when they are asked for."""

    def __init__(self, placement: Placement) -> None:
        self.ranks = placement.ranks
        self.grids = placement.stage_grids
        self.parts_of_columns = placement.strategy.scatter_gather or placement.strategy.sequence_parallel
        self.folded = placement.strategy.expert if placement.strategy.fold_experts else 0
        """Ranks over which folded experts are spread; 0 where experts are not folded."""
        self.flat = np.concatenate([grid.ravel() for grid in self.grids])
        self.base = np.cumsum([0, *(grid.size for grid in self.grids)])[:-1]
        """Rank r of stage s is `flat[base[s] + r]`."""
        self.seats: tuple[Seat, ...] = ()
        """By stage, where ranks are servers: stages may share some, so ranks are counted over all of them."""
        if placement.strategy.grain == SERVER:
            self.seats = tuple(map(seat_of, placement.strategy.stage_parts))
            self.flat, self.base = np.arange(self.ranks, dtype=np.int32), np.zeros(len(self.grids), np.int64)
        self.kinds: list[OperationKind] = []
        self._known: dict[tuple[object, ...], int] = {}
        for scope in () if self.seats else MERGED:
            self.kind_of(scope, 0, -1)  # numbered by scope where all stages are alike

    def kind_of(self, scope: Scope, stage: int, peer: int) -> int:
        """The number of the kind of an operation."""
        shape = self.grids[stage].shape
        uneven = peer >= 0 and self.grids[peer].shape != shape
        key: tuple[object, ...] = (scope, shape, self.grids[peer].shape) if uneven else (scope, shape)
        key = (scope, stage, peer) if self.seats else key
        if key not in self._known:
            self._known[key] = len(self.kinds)
            make = self._of_seats if self.seats else self._made if uneven else self._alike
            self.kinds.append(make(scope, stage, peer))
        return self._known[key]

    def _alike(self, scope: Scope, stage: int, peer: int) -> OperationKind:
        return _of_one_shape(scope, self.grids[stage].shape, self.folded)

    def _of_seats(self, scope: Scope, stage: int, peer: int) -> OperationKind:
        """Between seats only tensors and their gradients move; everything else is of one seat."""
        if peer < 0:
            alone, ranks = self._alike(scope, stage, peer), self.grids[stage].ravel().astype(np.int64)
            side = Side(alone.here.copy, ranks[alone.here.rank])
            return OperationKind(alone.copies, side, side)
        between = gradients_between if scope is Scope.BACK else parts_between
        parts = between(self.seats[stage], self.seats[peer])
        copies, src, dst = np.arange(len(parts.src)), parts.src.astype(np.int64), parts.dst.astype(np.int64)
        return OperationKind(len(copies), Side(copies, src), Side(copies, dst), parts.bytes_of(1.0))

    def _made(self, scope: Scope, stage: int, peer: int) -> OperationKind:
        here, there = self.grids[stage].shape, self.grids[peer].shape
        if scope is Scope.TIED:
            # Replicas and parts differ, so all ranks of both stages meet.
            return OperationKind(1, _everyone(here), _everyone(there))
        if scope is not Scope.RANK:
            # Two copies of the same weights, each with its own replicas but split over as many tensor ranks.
            both = [_of_one_shape(scope, shape, self.folded) for shape in (here, there)]
            assert both[0].copies == both[1].copies, f"{scope.name} between stages that are split differently"
            return OperationKind(both[0].copies, both[0].here, both[1].here)
        source, target, share = messages(_replicas(here), here[-1], _replicas(there), there[-1], self.parts_of_columns)
        copies = np.arange(len(share))
        return OperationKind(len(share), Side(copies, source), Side(copies, target), share)

    def singles(self) -> tuple[Ints, Ints, Ints, NDArray[np.float64]]:
        """Ranks of operations of one rank, and their parts of the amount: of copy c of kind k at `start[k] + c`.

        Ranks are counted in their stages; where operations have several, what stands here means nothing.
        """
        start = np.cumsum([0, *(one.copies for one in self.kinds)])[:-1]
        sides = [[one.of_copies(side) for one in self.kinds] for side in ("here", "there")]
        share = [np.ones(one.copies) if one.share is None else one.share for one in self.kinds]
        return start, np.concatenate(sides[0]), np.concatenate(sides[1]), np.concatenate(share)

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
    ours, theirs = replicas * tensor, their_replicas * their_tensor
    if parts_of_columns:
        has, needs = (
            TensorSpread(_row(0, ours), replicas, tensor),
            TensorSpread(_row(ours, theirs), their_replicas, their_tensor),
        )
        found = moved(has, needs)
        source, target, share = found.src, found.dst - ours, found.bytes_of(1.0)
    else:
        found = moved(
            TensorSpread(_row(0, replicas), replicas), TensorSpread(_row(replicas, their_replicas), their_replicas)
        )
        rank = np.arange(their_tensor)
        source = (found.src[:, None] * tensor + rank % tensor).ravel()
        target = ((found.dst - replicas)[:, None] * their_tensor + rank).ravel()
        share = np.repeat(found.bytes_of(1.0), their_tensor)
    order = np.lexsort((target, source))
    return source[order].astype(np.int64), target[order].astype(np.int64), share[order]


def _row(first: int, count: int) -> tuple[int, ...]:
    return tuple(range(first, first + count))


def _everyone(shape: tuple[int, ...]) -> Side:
    """One copy with all ranks of a stage."""
    ranks = np.arange(math.prod(shape))
    return Side(np.zeros_like(ranks), ranks)


def _replicas(shape: tuple[int, ...]) -> int:
    return math.prod(shape[:-1])


@lru_cache(maxsize=64)
def _of_one_shape(scope: Scope, shape: tuple[int, ...], folded: int) -> OperationKind:
    """A copy for every combination of the coordinates that are not merged.

    Folded experts are spread over `folded` ranks in a row, whichever coordinates these differ in.
    """
    if folded and scope in (Scope.EXPERT, Scope.EXPERT_DATA):
        ranks = np.arange(math.prod(shape))
        apart = scope is Scope.EXPERT
        side = Side(ranks // folded if apart else ranks % folded, ranks)
        return OperationKind(len(ranks) // folded if apart else folded, side, side)
    number = np.zeros(shape, np.int64)
    copies = 1
    for axis, name in enumerate(INNER):
        if name not in MERGED[scope]:
            along = np.arange(shape[axis]).reshape([-1 if at == axis else 1 for at in range(len(INNER))])
            number = number * shape[axis] + along
            copies *= shape[axis]
    side = Side(number.ravel(), np.arange(number.size))
    return OperationKind(copies, side, side)
