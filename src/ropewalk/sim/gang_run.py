"""A gang that ran over the classes of its layout, read copy by copy: when which rank did what, what links carried.

Nothing is written out for all ranks: one rank of every class stands for those that do the same at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.ragged import ranges
from ropewalk.sim.flow.layout import GangLayout
from ropewalk.sim.flow.system import System, Times
from ropewalk.sim.flow.written_out import WrittenOut
from ropewalk.task.graph import TaskKind
from ropewalk.task.lower.gang import Gang
from ropewalk.task.lower.moves import Scope
from ropewalk.task.step import Act


@dataclass(frozen=True, eq=False)
class GangRun:
    """The run of a gang: a task of its system for each class of each operation, and the copies that they stand for."""

    gang: Gang
    kind: Ints
    """By operation: its kind in the layout."""
    written: WrittenOut
    layout: GangLayout
    system: System
    times: Times

    @property
    def makespan(self) -> float:
        return float(self.times.end.max(initial=0.0))

    @cached_property
    def first(self) -> Ints:
        """By operation: its first task in the system."""
        size = np.diff(self.layout.task_start)[self.kind]
        return np.cumsum(size) - size

    @cached_property
    def local(self) -> Ints:
        """By task of a copy: the task of its operation that has its times; -1 for meetings that nobody waits at."""
        found = np.full(self.written.routed.graph.tasks, -1)
        for first, last, kind in zip(self.written.first, self.written.last, self.written.kinds, strict=True):
            tasks = ranges(first, last - first + 1)
            mine = self.written.folding.task_class[tasks]
            at = np.minimum(np.searchsorted(kind.classes, mine), len(kind.classes) - 1)
            found[tasks] = np.where(kind.classes[at] == mine, at, -1)
        return found

    @cached_property
    def operations_of(self) -> list[Ints]:
        """By kind: its operations, ascending."""
        order = np.argsort(self.kind, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.kind, minlength=len(self.layout.keys)))[:-1])

    @cached_property
    def stage_of_rank(self) -> Ints:
        """-1 where a rank has nothing to do."""
        found = np.full(self.written.roster.ranks, -1)
        for stage, grid in enumerate(self.written.roster.grids):
            found[grid.ravel()] = stage
        return found

    @cached_property
    def stands_for(self) -> Ints:
        """By rank: the first rank that does the same at the same time."""
        roster, folding = self.written.roster, self.written.folding
        found = np.arange(roster.ranks)
        for (act, _, stage, *_), first in zip(self.written.keys, self.written.first, strict=True):
            if act != Act.COMPUTE:
                continue
            ranks = roster.grids[stage].ravel().astype(np.int64)
            _, which = np.unique(folding.quotient.place[folding.task_class[first]], return_inverse=True)
            lowest = np.full(int(which.max(initial=-1)) + 1, roster.ranks)
            np.minimum.at(lowest, which, ranks)
            found[ranks] = lowest[which]
        return found

    def members(self, kind: int, ranks: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Copies of a kind in which some of these ranks take part, and who: pairs of copy and rank."""
        _, scope, stage, peer, *_ = self.written.keys[kind]
        roster = self.written.roster
        found = roster.kinds[roster.kind_of(Scope(scope), stage, peer)]
        sides = [(stage, found.here)] + ([(peer, found.there)] if peer >= 0 else [])
        copy = np.concatenate([side.copy for _, side in sides])
        rank = np.concatenate([roster.flat[roster.base[one] + side.rank] for one, side in sides]).astype(np.int64)
        mine = ranks[rank]
        return copy[mine], rank[mine]

    def spans(self, kind: int, copies: Ints) -> tuple[Floats, Floats]:
        """When these copies of all operations of a kind were in flight: a row for each operation."""
        operations, works = self.operations_of[kind], self.written.routed.graph.kind != TaskKind.MARKER
        start, end = np.zeros((2, len(operations), len(copies)))
        for at, copy in enumerate(copies.tolist()):
            tasks = np.arange(self.written.first[kind][copy], self.written.last[kind][copy] + 1)
            local = np.unique(self.local[tasks[works[tasks]]])
            if len(local):
                task = self.first[operations][:, None] + local
                start[:, at], end[:, at] = self.times.start[task].min(1), self.times.end[task].max(1)
        return start, end

    @cached_property
    def link_bytes(self) -> Floats:
        """Bytes that each link of the network carried."""
        graph, routes = self.written.routed.graph, self.written.routes
        total = np.bincount(self.kind, self.gang.amount, minlength=len(self.layout.keys))
        amount = np.zeros(graph.tasks)
        for kind, (first, last) in enumerate(zip(self.written.first, self.written.last, strict=True)):
            tasks = ranges(first, last - first + 1)
            amount[tasks] = graph.amount[tasks] * total[kind]
        transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
        return routes.link_bytes(routes.rows_of(graph, transfer), amount[transfer])

    @property
    def copies(self) -> int:
        """Operations of all ranks."""
        return int(self.gang.copies(self.written.roster).sum())

    @property
    def tasks(self) -> int:
        """Tasks of all ranks."""
        each = [(last - first + 1).sum() for first, last in zip(self.written.first, self.written.last, strict=True)]
        return int(np.array(each)[self.kind].sum())
