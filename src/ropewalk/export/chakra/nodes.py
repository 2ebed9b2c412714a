"""Who takes part in which operation, and which of its waits each rank can see: operations cut up by rank.

A trace has one file a rank, and a node waits only for nodes of its own file. An operation of several ranks is a node
in each of their files; it waits there for those of its predecessors that have a node in the same file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.errors import Findings, GraphError
from ropewalk.ragged import ranges
from ropewalk.task.step import Act, Step

MOST_LISTED = 20
"""Findings of one sort that are worth listing."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Node n is operation `operation[n]` on rank `rank[n]`, sorted by operation; it waits for operations `dep`."""

    operation: Ints
    rank: Ints
    start: Ints
    """Nodes `start[i]:start[i+1]` are those of operation i."""
    dep_start: Ints
    dep: Ints


def nodes_of(step: Step) -> Nodes:
    """Cut a step up by rank; a wait that no rank can see is an error."""
    operation, rank, start = _participants(step)
    key = np.sort(operation * step.ranks + rank)  # ranks of an operation in ascending order, for looking up
    node, dep, unseen = _visible_waits(step, rank, start, key)
    _refuse_unseen(step, unseen)
    order = np.lexsort((dep, node))
    dep_start = np.zeros(len(operation) + 1, np.int64)
    np.cumsum(np.bincount(node, minlength=len(operation)), out=dep_start[1:])
    return Nodes(operation, rank, start, dep_start, dep[order])


def _participants(step: Step) -> tuple[Ints, Ints, Ints]:
    """Nodes by operation: the sender before the receiver, members in the order of their rank."""
    size = np.array([len(members) for members in step.groups], np.int64)
    members = np.concatenate([*(np.sort(group) for group in step.groups), np.zeros(0, np.int32)]).astype(np.int64)
    first_member = np.cumsum(size) - size
    collective, send = step.act >= Act.ALL_REDUCE, step.act == Act.SEND
    count = np.where(send, 2, 1).astype(np.int64)
    count[collective] = size[step.group[collective]]
    start = np.concatenate([[0], np.cumsum(count)])
    rank = np.zeros(int(start[-1]), np.int64)
    alone = np.flatnonzero(~collective)
    rank[start[alone]] = step.rank[alone]
    rank[start[:-1][send] + 1] = step.peer[send]
    group = step.group[collective]
    rank[ranges(start[:-1][collective], size[group])] = members[ranges(first_member[group], size[group])]
    return np.repeat(np.arange(step.operations), count), rank, start


def _visible_waits(step: Step, rank: Ints, start: Ints, key: Ints) -> tuple[Ints, Ints, Ints]:
    """(node, operation it waits for) of every wait on every rank that has both; and the waits that no rank has."""
    waiter = np.repeat(np.arange(step.operations), np.diff(step.dep_start))
    waited = step.dep.astype(np.int64)
    count = np.diff(start)
    # The smaller of the two operations is looked through, so that a sum over all ranks costs one look per rank.
    smaller = np.where(count[waited] <= count[waiter], waited, waiter)
    edge = np.repeat(np.arange(len(waiter)), count[smaller])
    where = rank[ranges(start[smaller], count[smaller])]
    other = np.where(smaller == waited, waiter, waited)[edge]
    wanted = other * step.ranks + where
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1) if len(key) else np.zeros(0, np.int64)
    seen = key[at] == wanted
    edge, where = edge[seen], where[seen]
    unseen = np.setdiff1d(np.arange(len(waiter)), edge)
    # Nodes of an operation are in ascending order of their rank, save a send, whose sender comes first.
    mine = np.searchsorted(key, waiter[edge] * step.ranks + where)
    is_send = step.act[waiter[edge]] == Act.SEND
    mine[is_send] = start[waiter[edge]][is_send] + (where != step.rank[waiter[edge]])[is_send]
    return mine, waited[edge], unseen


def _refuse_unseen(step: Step, unseen: Ints) -> None:
    if not len(unseen):
        return
    findings = Findings(GraphError, "step as a Chakra trace")
    waiter = np.searchsorted(step.dep_start, unseen, side="right") - 1
    for operation, waited in zip(waiter[:MOST_LISTED].tolist(), step.dep[unseen[:MOST_LISTED]].tolist(), strict=True):
        findings.add(
            f"operation {operation} ({step.name_of(operation)}) waits for operation {waited} ({step.name_of(waited)}), "
            "which happens on other ranks: in a trace, ranks wait for each other only through sends and collectives; "
            "add one"
        )
    if len(unseen) > MOST_LISTED:
        findings.add(f"… and {len(unseen) - MOST_LISTED} more")
    findings.raise_if_any()
