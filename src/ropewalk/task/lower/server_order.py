"""Who waits for whom where ranks are servers that are in several stages: each goes by its own order.

Three things are waited for: the last operation that a server could not go on without, sends where they arrive, and
collectives that run beside the computation (gradients) by those who name them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.ragged import ranges
from ropewalk.task.lower.moves import STREAM
from ropewalk.task.lower.roster import Roster
from ropewalk.task.step import Act


class GangOperations(NamedTuple):
    """Operations of a gang, and where their copies for all ranks begin."""

    kind: Ints
    first: Ints
    act: NDArray[np.int8]
    stream: NDArray[np.int16]


def waits_of_servers(operations: GangOperations, owner: Ints, needed: Ints, roster: Roster) -> tuple[Ints, Ints]:
    """Pairs of copies, the one that waits and the one that is waited for; `owner` waits for `needed` in the gang."""
    ahead = operations.stream < STREAM["data"]
    beside = ~ahead[needed]
    pairs = _in_order(operations, ahead, roster), _beside(operations, owner[beside], needed[beside], roster)
    waiting, awaited = (np.concatenate(column) for column in zip(*pairs, strict=True))
    total = int(max(waiting.max(initial=0), awaited.max(initial=0))) + 1
    each = np.divmod(np.unique(waiting * total + awaited), total)
    return each[0], each[1]


def _in_order(operations: GangOperations, ahead: NDArray[np.bool_], roster: Roster) -> tuple[Ints, Ints]:
    """Each operation, and the last one before it that each of its ranks could not go on without."""
    number, copy, rank = _taking_part(operations, np.arange(len(operations.kind)), roster, "here")
    operation = operations.first[number] + copy
    order = np.lexsort((operation, rank))
    operation, rank, stops = operation[order], rank[order], ahead[number[order]]
    last = np.maximum.accumulate(np.where(stops, np.arange(len(order)), -1))
    before = np.concatenate([[-1], last[:-1]])
    known = before >= np.searchsorted(rank, rank)
    return operation[known], operation[before[known]]


def _beside(operations: GangOperations, owner: Ints, needed: Ints, roster: Roster) -> tuple[Ints, Ints]:
    """Who waits for sends and gradients: a send is waited for where it arrives."""
    copy_at = np.full((len(roster.kinds), roster.ranks), -1)
    for kind in np.unique(operations.kind[owner]).tolist():
        copy_at[kind, roster.kinds[kind].here.rank] = roster.kinds[kind].here.copy
    pairs = []
    sent = operations.act[needed] == Act.SEND
    for side, edges in (("there", np.flatnonzero(sent)), ("here", np.flatnonzero(~sent))):
        edge, copy, rank = _taking_part(operations, needed[edges], roster, side)
        mine = copy_at[operations.kind[owner[edges[edge]]], rank]
        there = mine >= 0
        waiting = operations.first[owner[edges[edge]]] + mine
        pairs.append((waiting[there], (operations.first[needed[edges[edge]]] + copy)[there]))
    return np.concatenate([one[0] for one in pairs]), np.concatenate([one[1] for one in pairs])


def _taking_part(operations: GangOperations, numbers: Ints, roster: Roster, side: str) -> tuple[Ints, Ints, Ints]:
    """Who takes part in these operations on one side: place in `numbers`, copy, rank."""
    sides = [getattr(one, side) for one in roster.kinds]
    many = np.array([len(one.rank) for one in sides])
    kind = operations.kind[numbers]
    at = ranges((np.cumsum(many) - many)[kind], many[kind])
    copy, rank = (np.concatenate([getattr(one, name) for one in sides])[at] for name in ("copy", "rank"))
    return np.repeat(np.arange(len(numbers)), many[kind]), copy, rank
