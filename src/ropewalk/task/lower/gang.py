"""A gang: one rank of every pipeline stage, written down operation by operation, standing for all ranks alike.

Data, context and tensor ranks of a stage do the same, so a step is written once and copied by array operations. An
operation has a `Scope`: a computation has a copy for every rank of its stage, a tensor collective one for every group
of tensor ranks, and so on (`roster`). What waits for what is decided by who takes part: a copy waits for those copies
with which it shares a rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.ragged import ranges
from ropewalk.task.lower.moves import STREAMS, Move, Scope
from ropewalk.task.lower.roster import OperationKind, Roster, shared
from ropewalk.task.lower.server_order import GangOperations, waits_of_servers
from ropewalk.task.step import Act, Step


@dataclass(frozen=True, eq=False)
class Gang:
    """Operations of one rank of every stage, in an order in which each comes after those it waits for, as columns.

    Operation i waits for `dep[dep_start[i]:dep_start[i + 1]]`.
    """

    moves: tuple[Move, ...]
    """What there is to do; most of it is done by several operations."""
    move: Ints
    """By operation: which of the moves it is."""
    stage: Ints
    peer: Ints
    """The other stage of a send, of a tied embedding, of gradients of two copies; otherwise -1."""
    dep_start: Ints
    dep: Ints
    pace: NDArray[np.float64]
    """By stage: how much longer its computations take than their moves say."""

    @property
    def operations(self) -> int:
        return len(self.move)

    @cached_property
    def act(self) -> NDArray[np.int8]:
        return self._column([move.act for move in self.moves], np.int8)

    @cached_property
    def scope(self) -> NDArray[np.int8]:
        return self._column([move.scope for move in self.moves], np.int8)

    @cached_property
    def amount(self) -> NDArray[np.float64]:
        amount = self._column([move.amount for move in self.moves], np.float64)
        return np.where(self.act == Act.COMPUTE, amount * self.pace[self.stage], amount)

    @cached_property
    def stream(self) -> NDArray[np.int16]:
        return self._column([move.stream for move in self.moves], np.int16)

    @cached_property
    def priority(self) -> NDArray[np.int32]:
        return self._column([move.priority for move in self.moves], np.int32)

    @cached_property
    def repeats(self) -> NDArray[np.int32]:
        return self._column([move.repeats for move in self.moves], np.int32)

    @cached_property
    def goes_on(self) -> NDArray[np.bool_]:
        return self._column([move.goes_on for move in self.moves], np.bool_)

    @cached_property
    def layer(self) -> Ints:
        return self._column([move.layer for move in self.moves], np.int64)

    def _column(self, values: Sequence[float], dtype: type[np.generic]) -> NDArray[Any]:
        return np.array(values, dtype)[self.move]

    def labelled(self) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        """The labels in the order in which they come up, and which of them each operation has."""
        used, first = np.unique(self.move, return_index=True)
        in_turn = used[np.argsort(first)]
        labels = tuple(dict.fromkeys(self.moves[row].label for row in in_turn.tolist()))
        number = {text: at for at, text in enumerate(labels)}
        return labels, self._column([number.get(move.label, -1) for move in self.moves], np.int32)

    @cached_property
    def meetings(self) -> tuple[list[tuple[Scope, int, int]], Ints]:
        """Every (scope, stage, peer) that operations have, ascending, and which of them each operation has."""
        stages = int(max(self.stage.max(initial=-1), self.peer.max(initial=-1))) + 2
        key = (self.scope.astype(np.int64) * stages + self.stage) * stages + self.peer + 1
        seen = np.zeros((max(Scope) + 1) * stages**2, np.bool_)
        seen[key] = True
        known, number = np.flatnonzero(seen), (np.cumsum(seen) - 1)[key]
        ends = [(at // stages**2, at // stages % stages, at % stages - 1) for at in known.tolist()]
        return [(Scope(scope), stage, peer) for scope, stage, peer in ends], number

    def numbers(self, roster: Roster, operations: Ints) -> Ints:
        """The operations of the step of all ranks that these operations become."""
        count = self.copies(roster)
        first = np.cumsum(count) - count
        return ranges(first[operations], count[operations])

    def copies(self, roster: Roster) -> Ints:
        """How many operations of the step of all ranks each operation becomes."""
        return self._copies(roster, self._kinds(roster))

    def _kinds(self, roster: Roster) -> Ints:
        meetings, number = self.meetings
        return np.array([roster.kind_of(*one) for one in meetings], np.int64)[number]

    def _copies(self, roster: Roster, kind: Ints) -> Ints:
        return np.array([one.copies for one in roster.kinds], np.int64)[kind]

    def step(self, roster: Roster, flops: float, phases: dict[str, float]) -> Step:
        """The step of all ranks."""
        kind = self._kinds(roster)
        count = self._copies(roster, kind)
        first = np.cumsum(count) - count
        row = np.repeat(np.arange(len(kind)), count)
        copy = np.arange(len(row)) - first[row]
        start, here, there, share = roster.singles()
        single = start[kind[row]] + copy
        rank, peer_rank, group = (np.full(len(row), -1, np.int32) for _ in range(3))
        alone, sent = (self.act < Act.ALL_REDUCE)[row], (self.act == Act.SEND)[row]
        rank[alone] = roster.flat[roster.base[self.stage[row[alone]]] + here[single[alone]]]
        peer_rank[sent] = roster.flat[roster.base[self.peer[row[sent]]] + there[single[sent]]]
        first_group, groups = self._groups(roster)
        group[~alone] = first_group[row[~alone]] + copy[~alone]

        dep_start, dep = self._dependencies(roster, kind, first, len(row))
        labels, label = self.labelled()
        step = Step(
            ranks=roster.ranks,
            act=self.act[row],
            rank=rank,
            peer=peer_rank,
            group=group,
            amount=self.amount[row] * share[single],
            stream=self.stream[row],
            priority=self.priority[row],
            label=label[row],
            labels=labels,
            groups=tuple(groups),
            dep_start=dep_start,
            dep=dep,
            streams=STREAMS,
            flops=flops,
            phases=phases,
            repeats=self.repeats[row],
            goes_on=self.goes_on[row],
        )
        step.check()
        return step

    def _groups(self, roster: Roster) -> tuple[Ints, list[NDArray[np.int32]]]:
        """The groups of all collectives, and where those of every operation begin."""
        meetings, number = self.meetings
        meet = set(np.unique(number[self.act >= Act.ALL_REDUCE]).tolist())
        groups: list[NDArray[np.int32]] = []
        first = np.zeros(len(meetings), np.int64)
        for at, ends in enumerate(meetings):
            if at in meet:
                first[at] = len(groups)
                groups.extend(roster.members(*ends))
        return first[number], groups

    def _dependencies(self, roster: Roster, kind: Ints, first: Ints, total: int) -> tuple[Ints, NDArray[np.int32]]:
        """Every edge of the gang for all copies at both of its ends, as CSR."""
        owner, needed = np.repeat(np.arange(self.operations), np.diff(self.dep_start)), self.dep
        if roster.seats:
            at, dep = waits_of_servers(GangOperations(kind, first, self.act, self.stream), owner, needed, roster)
        else:
            at, dep = self._waits(roster, kind, first, owner, needed)
        order = np.argsort(at, kind="stable")
        start = np.zeros(total + 1, np.int64)
        np.cumsum(np.bincount(at, minlength=total), out=start[1:])
        return start, dep[order].astype(np.int32)

    def _waits(self, roster: Roster, kind: Ints, first: Ints, owner: Ints, needed: Ints) -> tuple[Ints, Ints]:
        """Pairs of copies: the one that waits and the one that is waited for."""
        relation = self._relations(roster, kind, owner, needed)
        kinds = len(roster.kinds)
        pair = (kind[owner] * kinds + kind[needed]) * len(SIDES) + relation
        waiting, awaited = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for key in np.unique(pair).tolist():
            edges = np.flatnonzero(pair == key)
            one, other = (roster.kinds[number] for number in divmod(key // len(SIDES), kinds))
            mine, theirs = SIDES[key % len(SIDES)](one, other)
            waiting.append((first[owner[edges]][:, None] + mine).ravel())
            awaited.append((first[needed[edges]][:, None] + theirs).ravel())
        return np.concatenate(waiting), np.concatenate(awaited)

    def _relations(self, roster: Roster, kind: Ints, owner: Ints, needed: Ints) -> Ints:
        """By edge, at which ends its operations have the stage in common: an index into `SIDES`."""
        relation = np.zeros(len(owner), np.int64)
        uneven = np.array([not one.even for one in roster.kinds])
        edge = np.flatnonzero(uneven[kind[owner]] | uneven[kind[needed]])
        here, there = ((self.stage[at], self.peer[at]) for at in (owner[edge], needed[edge]))
        relation[edge] = relations(*here, *there)
        return relation


def relations(stage: Ints, peer: Ints, their_stage: Ints, their_peer: Ints) -> Ints:
    """At which ends operations meet others that they wait for, where stages differ in shape: indices into `SIDES`."""
    meets = stage == their_stage, stage == their_peer, peer == their_stage, peer == their_peer
    found = np.select([meets[0] & meets[3], *meets], [SAME, HERE_HERE, HERE_THERE, THERE_HERE, THERE_THERE], -1)
    assert (found >= 0).all(), "operations of different stages wait for each other"
    return found


def _copy_by_copy(one: OperationKind, other: OperationKind) -> tuple[Ints, Ints]:
    """Messages between the same two stages follow each other one by one."""
    if one is other:
        return np.arange(one.copies), np.arange(one.copies)
    return shared(one.here, other.here)


SIDES: tuple[Callable[[OperationKind, OperationKind], tuple[Ints, Ints]], ...] = (
    lambda one, other: shared(one.here, other.here),
    lambda one, other: shared(one.here, other.there),
    lambda one, other: shared(one.there, other.here),
    lambda one, other: shared(one.there, other.there),
    _copy_by_copy,
)
"""Pairs of copies of two kinds that have a rank in common, by the stages in which they meet."""
HERE_HERE, HERE_THERE, THERE_HERE, THERE_THERE, SAME = range(len(SIDES))
