"""Operations and what waits for what, put into an order in which everything stands after what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.errors import GraphError
from ropewalk.task.step import Act, Step

COLUMNS = ("act", "rank", "peer", "group", "amount", "stream", "priority", "label", "repeats", "goes_on")
"""Columns of a step that describe an operation by itself."""


@dataclass
class StepDraft:
    """A step being written: columns by operation, in any order, labels, and who waits for what."""

    like: Step
    """Where groups, streams and facts about the step come from."""
    columns: dict[str, NDArray[Any]]
    labels: list[str]
    waiter: list[Ints]
    awaited: list[Ints]

    @classmethod
    def of(cls, step: Step, copies: int = 1) -> StepDraft:
        """All operations of a step with what they wait for, so many times; copies do not wait for each other."""
        waiter, awaited = edges_of(step)
        first = np.arange(copies)[:, None] * step.operations
        return cls(
            step,
            {name: np.tile(getattr(step, name), copies) for name in COLUMNS},
            list(step.labels),
            [(first + waiter).ravel()],
            [(first + awaited).ravel()],
        )

    @property
    def operations(self) -> int:
        return len(self.columns["act"])

    def add(self, rows: Sequence[AddedOperation]) -> Ints:
        """More operations; gives their numbers."""
        first = self.operations
        known = {text: number for number, text in enumerate(self.labels)}
        labels = [known.setdefault(row.label, len(known)) for row in rows]
        self.labels = list(known)
        values = {name: [getattr(row, name) for row in rows] for name in COLUMNS if name != "label"}
        values["label"] = labels
        for name, column in self.columns.items():
            self.columns[name] = np.concatenate([column, np.array(values[name], column.dtype)])
        return np.arange(first, self.operations)

    def wait(self, waiter: Ints | Sequence[int], awaited: Ints | Sequence[int]) -> None:
        """Operation `waiter[i]` waits for `awaited[i]` as well."""
        self.waiter.append(np.asarray(waiter, np.int64))
        self.awaited.append(np.asarray(awaited, np.int64))

    def step(self, kept: NDArray[np.bool_] | None = None) -> tuple[Step, Ints]:
        """The step of the operations that are kept, and the number of each in it, -1 where it is left out.

        Edges to and from what is left out go with it: whoever leaves something out says what takes its place.
        """
        kept = np.ones(self.operations, bool) if kept is None else kept
        waiter, awaited = np.concatenate(self.waiter), np.concatenate(self.awaited)
        stays = kept[waiter] & kept[awaited]
        edges = np.unique(np.column_stack([waiter[stays], awaited[stays]]), axis=0)
        order = self._ordered(np.flatnonzero(kept), edges)
        number = np.full(self.operations, -1, np.int64)
        number[order] = np.arange(len(order))
        owner, dep = number[edges[:, 0]], number[edges[:, 1]]
        by_owner = np.lexsort((dep, owner))
        start = np.zeros(len(order) + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=len(order)), out=start[1:])
        listed: dict[str, Any] = {name: column[order] for name, column in self.columns.items()}
        step = replace(
            self.like,
            **listed,
            labels=tuple(self.labels),
            dep_start=start,
            dep=dep[by_owner].astype(np.int32),
        )
        step.check()
        return step, number

    def _ordered(self, kept: Ints, edges: Ints) -> Ints:
        """Lower numbers first, where what they wait for allows it."""
        left = np.bincount(edges[:, 0], minlength=self.operations)
        behind: list[list[int]] = [[] for _ in range(self.operations)]
        for waits, before in edges.tolist():
            behind[before].append(waits)
        free = [int(at) for at in kept if not left[at]]
        order = []
        while free:
            at = heappop(free)
            order.append(at)
            for waits in behind[at]:
                left[waits] -= 1
                if not left[waits]:
                    heappush(free, waits)
        if len(order) < len(kept):
            stuck = next(int(at) for at in kept if left[at])
            raise GraphError(
                f"{self.labels[int(self.columns['label'][stuck])]!r} would wait for itself: launch gradients so that "
                "none is queued behind a later one"
            )
        return np.array(order, np.int64)


@dataclass(frozen=True)
class AddedOperation:
    """One more operation."""

    act: Act
    amount: float
    stream: int
    label: str
    rank: int = -1
    group: int = -1
    peer: int = -1
    priority: int = 0
    repeats: int = 1
    goes_on: bool = False


def edges_of(step: Step) -> tuple[Ints, Ints]:
    """Every dependency of a step: who waits, and for what."""
    return np.repeat(np.arange(step.operations), np.diff(step.dep_start)), step.dep.astype(np.int64)


def ranks_of(step: Step, operation: int) -> list[int]:
    """Who takes part in an operation; of a send the one who sends."""
    group = int(step.group[operation])
    return [int(step.rank[operation])] if group < 0 else [int(rank) for rank in step.groups[group]]
