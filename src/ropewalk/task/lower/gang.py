"""A gang: one rank of every pipeline stage, written down operation by operation, standing for all ranks alike.

Data, context and tensor ranks of a stage do the same, so a step is written once and copied by array operations. An
operation has a `Scope`: a computation has a copy for every rank of its stage, a tensor collective one for every group
of tensor ranks, and so on (`roster`). What waits for what is decided by who takes part: a copy waits for those copies
with which it shares a rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.task.lower.moves import STREAMS, Move, Scope
from ropewalk.task.lower.roster import Kind, Roster, shared
from ropewalk.task.step import Act, Step

Ints = NDArray[np.int64]


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

    def numbers(self, roster: Roster, moves: Sequence[int]) -> Ints:
        """The operations of the step of all ranks that these moves become."""
        count = self._copies(roster, self._kinds(roster))
        end = np.cumsum(count)
        return np.concatenate([np.arange(end[at] - count[at], end[at]) for at in moves])

    def _kinds(self, roster: Roster) -> Ints:
        ends = zip(self.moves, self.stage, self.peer, strict=True)
        return np.array([roster.kind_of(move.scope, stage, peer) for move, stage, peer in ends], np.int64)

    def _copies(self, roster: Roster, kind: Ints) -> Ints:
        return np.array([one.copies for one in roster.kinds], np.int64)[kind]

    def step(self, roster: Roster, flops: float, phases: dict[str, float]) -> Step:
        """The step of all ranks."""
        stage, peer = np.array(self.stage, np.int64), np.array(self.peer, np.int64)
        kind = self._kinds(roster)
        count = self._copies(roster, kind)
        first = np.cumsum(count) - count
        row = np.repeat(np.arange(len(kind)), count)
        copy = np.arange(len(row)) - first[row]
        act = np.array([move.act for move in self.moves], np.int8)
        amount = np.array([move.amount for move in self.moves], np.float64)[row]

        here, there = copy, copy  # ranks of an operation of one rank, counted in their stages
        for number, one in enumerate(roster.kinds):
            if one.share is not None:
                mine = (kind == number)[row]
                here, there = (np.where(mine, side.rank[np.where(mine, copy, 0)], ranks)
                               for side, ranks in ((one.here, here), (one.there, there)))  # fmt: skip
                amount[mine] *= one.share[copy[mine]]
        rank, peer_rank, group = (np.full(len(row), -1, np.int32) for _ in range(3))
        alone, sent = (act < Act.ALL_REDUCE)[row], (act == Act.SEND)[row]
        rank[alone] = roster.flat[roster.base[stage[row[alone]]] + here[alone]]
        peer_rank[sent] = roster.flat[roster.base[peer[row[sent]]] + there[sent]]
        first_group, groups = self._groups(roster, act, stage, peer)
        group[~alone] = first_group[row[~alone]] + copy[~alone]

        dep_start, dep = self._dependencies(roster, kind, first, len(row))
        labels = tuple(dict.fromkeys(move.label for move in self.moves))
        number_of = {text: at for at, text in enumerate(labels)}
        step = Step(
            ranks=roster.ranks,
            act=act[row],
            rank=rank,
            peer=peer_rank,
            group=group,
            amount=amount,
            stream=np.array([move.stream for move in self.moves], np.int16)[row],
            priority=np.array([move.priority for move in self.moves], np.int32)[row],
            label=np.array([number_of[move.label] for move in self.moves], np.int32)[row],
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

    def _groups(
        self, roster: Roster, act: NDArray[np.int8], stage: Ints, peer: Ints
    ) -> tuple[Ints, list[NDArray[np.int32]]]:
        """The groups of all collectives, and where those of every operation begin."""
        scope = np.array([move.scope for move in self.moves], np.int8)
        groups: list[NDArray[np.int32]] = []
        first = np.zeros(len(scope), np.int64)
        meets = np.flatnonzero(act >= Act.ALL_REDUCE)
        for key in sorted({(int(scope[at]), int(stage[at]), int(peer[at])) for at in meets}):
            first[(scope == key[0]) & (stage == key[1]) & (peer == key[2])] = len(groups)
            groups.extend(roster.members(Scope(key[0]), key[1], key[2]))
        return first, groups

    def _dependencies(self, roster: Roster, kind: Ints, first: Ints, total: int) -> tuple[Ints, NDArray[np.int32]]:
        """Every edge of the gang for all copies at both of its ends, as CSR."""
        owner = np.repeat(np.arange(len(self.after)), [len(after) for after in self.after])
        needed = np.array([at for after in self.after for at in after], np.int64)
        relation = self._relations(roster, kind, owner, needed)
        kinds = len(roster.kinds)
        pair = (kind[owner] * kinds + kind[needed]) * len(SIDES) + relation
        waiting, awaited = [], []
        for key in np.unique(pair).tolist():
            edges = np.flatnonzero(pair == key)
            one, other = (roster.kinds[number] for number in divmod(key // len(SIDES), kinds))
            mine, theirs = SIDES[key % len(SIDES)](one, other)
            waiting.append((first[owner[edges]][:, None] + mine).ravel())
            awaited.append((first[needed[edges]][:, None] + theirs).ravel())
        if not waiting:
            return np.zeros(total + 1, np.int64), np.zeros(0, np.int32)
        at, dep = np.concatenate(waiting), np.concatenate(awaited)
        order = np.argsort(at, kind="stable")
        start = np.zeros(total + 1, np.int64)
        np.cumsum(np.bincount(at, minlength=total), out=start[1:])
        return start, dep[order].astype(np.int32)

    def _relations(self, roster: Roster, kind: Ints, owner: Ints, needed: Ints) -> Ints:
        """By edge, at which ends its operations have the stage in common: an index into `SIDES`."""
        relation = np.zeros(len(owner), np.int64)
        uneven = np.array([not one.even for one in roster.kinds])
        for edge in np.flatnonzero(uneven[kind[owner]] | uneven[kind[needed]]).tolist():
            one, other = int(owner[edge]), int(needed[edge])
            ends = (self.stage[one], self.peer[one]), (self.stage[other], self.peer[other])
            if ends[0] == ends[1]:
                relation[edge] = SAME
            elif ends[0][0] == ends[1][0]:
                relation[edge] = HERE_HERE
            elif ends[0][0] == ends[1][1]:
                relation[edge] = HERE_THERE
            elif ends[0][1] == ends[1][0]:
                relation[edge] = THERE_HERE
            else:
                assert ends[0][1] == ends[1][1], "operations of different stages wait for each other"
                relation[edge] = THERE_THERE
        return relation


def _copy_by_copy(one: Kind, other: Kind) -> tuple[Ints, Ints]:
    """Messages between the same two stages follow each other one by one."""
    if one is other:
        return np.arange(one.copies), np.arange(one.copies)
    return shared(one.here, other.here)


SIDES: tuple[Callable[[Kind, Kind], tuple[Ints, Ints]], ...] = (
    lambda one, other: shared(one.here, other.here),
    lambda one, other: shared(one.here, other.there),
    lambda one, other: shared(one.there, other.here),
    lambda one, other: shared(one.there, other.there),
    _copy_by_copy,
)
"""Pairs of copies of two kinds that have a rank in common, by the stages in which they meet."""
HERE_HERE, HERE_THERE, THERE_HERE, THERE_THERE, SAME = range(len(SIDES))
