"""A gang: one rank of every pipeline stage, written down operation by operation, standing for all ranks alike.

Data, context and tensor ranks of a stage do the same, so a step is written once and copied by array operations. An
operation has a `Scope`: a computation has a copy for every rank of its stage, a tensor collective one for every group
of tensor ranks, and so on. What waits for what is decided by who takes part: a copy waits for those copies with which
it shares a rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.strategy.placement import AXES, Placement
from ropewalk.task.lower.moves import STREAMS, Move, Scope
from ropewalk.task.step import Act, Step

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


@dataclass
class Gang:
    """Operations of one rank of every stage, in an order in which each comes after those it waits for."""

    moves: list[Move] = field(default_factory=list)
    stage: list[int] = field(default_factory=list)
    peer: list[int] = field(default_factory=list)
    """The other stage of a send, of a tied embedding, of gradients of two copies; otherwise -1."""
    after: list[tuple[int, ...]] = field(default_factory=list)

    def add(self, move: Move, stage: int, after: Iterable[int], peer: int = -1) -> int:
        self.moves.append(move)
        self.stage.append(stage)
        self.peer.append(peer)
        self.after.append(tuple(dict.fromkeys(after)))
        return len(self.moves) - 1

    def numbers(self, placement: Placement, moves: Sequence[int]) -> NDArray[np.int64]:
        """The operations of the step of all ranks that these moves become."""
        count = _Copies(placement).count[np.array([move.scope for move in self.moves], np.int8)]
        end = np.cumsum(count)
        return np.concatenate([np.arange(end[at] - count[at], end[at]) for at in moves])

    def step(self, placement: Placement, flops: float, phases: dict[str, float]) -> Step:
        """The step of all ranks."""
        copies = _Copies(placement)
        scope = np.array([move.scope for move in self.moves], np.int8)
        stage, peer = np.array(self.stage, np.int64), np.array(self.peer, np.int64)
        count = copies.count[scope]
        first = np.cumsum(count) - count
        row = np.repeat(np.arange(len(scope)), count)
        copy = np.arange(len(row)) - first[row]

        act = np.array([move.act for move in self.moves], np.int8)
        alone = act < Act.ALL_REDUCE
        rank, peer_rank, group = (np.full(len(row), -1, np.int32) for _ in range(3))
        mine = alone[row]
        rank[mine] = copies.rank[stage[row[mine]], copy[mine]]
        sent = (act == Act.SEND)[row]
        peer_rank[sent] = copies.rank[peer[row[sent]], copy[sent]]
        groups: list[NDArray[np.int32]] = []
        first_group = np.zeros(len(scope), np.int64)
        for key in sorted({(int(scope[at]), int(stage[at]), int(peer[at])) for at in np.flatnonzero(~alone)}):
            first_group[(scope == key[0]) & (stage == key[1]) & (peer == key[2])] = len(groups)
            groups.extend(copies.members(Scope(key[0]), key[1], key[2]))
        group[~mine] = first_group[row[~mine]] + copy[~mine]

        dep_start, dep = self._dependencies(copies, scope, first, len(row))
        labels = tuple(dict.fromkeys(move.label for move in self.moves))
        number = {text: at for at, text in enumerate(labels)}
        step = Step(
            ranks=placement.ranks,
            act=act[row],
            rank=rank,
            peer=peer_rank,
            group=group,
            amount=np.array([move.amount for move in self.moves], np.float64)[row],
            stream=np.array([move.stream for move in self.moves], np.int16)[row],
            priority=np.array([move.priority for move in self.moves], np.int32)[row],
            label=np.array([number[move.label] for move in self.moves], np.int32)[row],
            labels=labels,
            groups=tuple(groups),
            dep_start=dep_start,
            dep=dep,
            streams=STREAMS,
            flops=flops,
            phases=phases,
            repeats=np.array([move.repeats for move in self.moves], np.int32)[row],
            goes_on=np.array([move.goes_on for move in self.moves], np.bool_)[row],
        )
        step.check()
        return step

    def _dependencies(
        self, copies: _Copies, scope: NDArray[np.int8], first: NDArray[np.int64], total: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Every edge of the gang for all copies at both of its ends, as CSR."""
        owner = np.repeat(np.arange(len(self.after)), [len(after) for after in self.after])
        needed = np.array([at for after in self.after for at in after], np.int64)
        pair = scope[owner].astype(np.int64) * len(Scope) + scope[needed]
        waiting, awaited = [], []
        for key in np.unique(pair).tolist():
            edges = np.flatnonzero(pair == key)
            table = copies.shared(Scope(key // len(Scope)), Scope(key % len(Scope)))
            shape = len(edges), *table.shape
            at = first[owner[edges]][:, None, None] + np.arange(len(table))[None, :, None]
            waiting.append(np.broadcast_to(at, shape).ravel())
            awaited.append((first[needed[edges]][:, None, None] + table[None]).ravel())
        if not waiting:
            return np.zeros(total + 1, np.int64), np.zeros(0, np.int32)
        at, dep = np.concatenate(waiting), np.concatenate(awaited)
        order = np.argsort(at, kind="stable")
        start = np.zeros(total + 1, np.int64)
        np.cumsum(np.bincount(at, minlength=total), out=start[1:])
        return start, dep[order].astype(np.int32)


class _Copies:
    """Copies of an operation of each scope, numbered by the coordinates in which they differ."""

    def __init__(self, placement: Placement) -> None:
        self.sizes = placement.sizes
        self.shape = [self.sizes[name] for name in INNER]
        self.grid = placement.grid
        self.rank = placement.grid.reshape(self.sizes["pp"], -1)
        """The rank of every copy of a computation, by stage."""
        self.count = np.array(
            [math.prod(self.sizes[name] for name in INNER if name not in MERGED[scope]) for scope in Scope], np.int64
        )

    def of_rank(self, scope: Scope) -> NDArray[np.int64]:
        """Which copy of an operation of this scope each rank of a stage takes part in."""
        number = np.zeros(self.shape, np.int64)
        for axis, name in enumerate(INNER):
            if name not in MERGED[scope]:
                along = np.arange(self.sizes[name]).reshape([-1 if at == axis else 1 for at in range(len(INNER))])
                number = number * self.sizes[name] + along
        return number.ravel()

    def members(self, scope: Scope, stage: int, peer: int) -> list[NDArray[np.int32]]:
        """The ranks of every copy of a collective."""
        if scope is Scope.TIED:
            return list(np.sort(np.column_stack([self.rank[stage], self.rank[peer]]), axis=1))
        order = np.argsort(self.of_rank(scope), kind="stable")
        both = (stage,) if peer < 0 else (stage, peer)
        rows = [self.rank[one][order].reshape(int(self.count[scope]), -1) for one in both]
        return list(np.sort(np.concatenate(rows, axis=1), axis=1))

    def shared(self, waiting: Scope, awaited: Scope) -> NDArray[np.int64]:
        """For every copy of the one that waits, the copies of the other with which it shares a rank, a row each."""
        mine, other = self.of_rank(waiting), self.of_rank(awaited)
        pairs = np.unique(np.column_stack([mine, other]), axis=0)
        return pairs[:, 1].reshape(int(self.count[waiting]), -1)
