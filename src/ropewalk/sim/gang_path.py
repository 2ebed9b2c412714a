"""The critical path of a gang that ran over classes, from copy to copy, as it is where all ranks are written out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.sim.gang_run import GangRun
from ropewalk.sim.trace import TOUCHING
from ropewalk.task.graph import TaskKind

At = tuple[int, int]
"""An operation of the gang, and a task of one of its copies."""


@dataclass(frozen=True, eq=False)
class GangPath:
    """The tasks of the critical path, first to last."""

    operation: Ints
    task: Ints
    """Of a copy, numbered where one operation of each kind is written out."""
    start: Floats
    end: Floats
    link: Ints
    """What held a transfer back, -1 where nothing did."""


def gang_path(run: GangRun) -> GangPath:
    """From the first task to the last: each task started when the one before it ended."""
    kind = run.written.routed.graph.kind
    found = [at for at in reversed(_Walk(run).back()) if kind[at[1]] != TaskKind.MARKER]
    operation, task = np.array(found, np.int64).reshape(-1, 2).T
    at = run.first[operation] + run.local[task]
    return GangPath(operation, task, run.times.start[at], run.times.end[at], _links(run, task, run.times.bound_by[at]))


def _links(run: GangRun, task: Ints, bound_by: NDArray[np.int32]) -> Ints:
    """Of classes of links those that are on the path of each task."""
    system, link_class = run.written.system, run.written.folding.link_class
    found = np.full(len(task), -1)
    for at in np.flatnonzero(bound_by >= 0).tolist():
        row = system.place[task[at]]
        links = system.use_link[system.use_start[row] : system.use_start[row + 1]]
        mine = links[link_class[links] == bound_by[at]]
        found[at] = mine[0] if len(mine) else -1
    return found


class _Walk:
    """Steps from a task to the one that it waited for."""

    def __init__(self, run: GangRun) -> None:
        self.run, self.graph = run, run.written.routed.graph
        self._meetings: dict[tuple[int, int], tuple[Ints, Ints]] = {}
        self._before: dict[tuple[int, int], dict[int, int]] = {}

    @cached_property
    def slack(self) -> float:
        return TOUCHING * max(self.run.makespan, 1e-300)

    def back(self) -> list[At]:
        """The path from its end."""
        if not len(self.run.times.end):
            return []
        path = [self.last()]
        while True:
            operation, task = path[-1]
            waited = self.waits_for(operation, task)
            if not waited:
                return path
            ends = [self.end_of(*one) for one in waited]
            latest = max(ends)
            local = int(self.run.local[task])
            began = float(self.run.times.start[self.run.first[operation] + local]) if local >= 0 else latest
            if latest < began - self.slack:
                return path
            path.append(min(one for one, end in zip(waited, ends, strict=True) if end == latest))

    def last(self) -> At:
        """The first of the tasks that end last."""
        run = self.run
        ends = np.flatnonzero(run.times.end == run.times.end.max())
        operation = int(np.searchsorted(run.first, ends[0], side="right")) - 1
        local = ends[ends < (run.first[operation + 1] if operation + 1 < len(run.first) else len(run.times.end))]
        first, last = run.written.first[run.kind[operation]], run.written.last[run.kind[operation]]
        tasks = np.concatenate([np.arange(*ends) for ends in zip(first, last + 1, strict=True)])
        return operation, int(tasks[np.isin(run.local[tasks], local - run.first[operation])].min())

    def waits_for(self, operation: int, task: int) -> list[At]:
        """What a task waits for: tasks of its copy, or the ends of other operations, or what its rank computed."""
        run, kind = self.run, int(self.run.kind[operation])
        copy = int(np.searchsorted(run.written.first[kind], task, side="right")) - 1
        if task != run.written.first[kind][copy]:
            row = self.graph.dep[self.graph.dep_start[task] : self.graph.dep_start[task + 1]]
            return [(operation, one) for one in row.tolist()]
        gang, found = run.gang, []
        for other in gang.dep[gang.dep_start[operation] : gang.dep_start[operation + 1]].tolist():
            theirs = int(run.kind[other])
            start, copies = self._met(kind, theirs)
            ends = run.written.last[theirs][copies[start[copy] : start[copy + 1]]]
            found += [(other, one) for one in ends.tolist()]
        if self.graph.kind[task] == TaskKind.COMPUTE:
            before = self._computed_before(kind, task).get(operation)
            if before is not None:
                found.append((before, task))
        return found

    def end_of(self, operation: int, task: int) -> float:
        """When a task ended; a meeting ends with the last that arrives."""
        local = int(self.run.local[task])
        if local >= 0:
            return float(self.run.times.end[self.run.first[operation] + local])
        return max((self.end_of(*one) for one in self.waits_for(operation, task)), default=0.0)

    def _met(self, waiting: int, awaited: int) -> tuple[Ints, Ints]:
        """By copy of a kind the copies of another one that it meets, as CSR."""
        key = waiting, awaited
        if key not in self._meetings:
            one, other = self.run.layout.meeting(waiting, awaited)
            copies = len(self.run.written.first[waiting])
            self._meetings[key] = np.searchsorted(one, np.arange(copies + 1)), other
        return self._meetings[key]

    def _computed_before(self, kind: int, task: int) -> dict[int, int]:
        """By operation what ranks like this one computed just before it."""
        run, local = self.run, int(self.run.local[task])
        key = kind, local
        if key not in self._before:
            mine = run.operations_of[kind]
            order = mine[np.argsort(run.times.start[run.first[mine] + local], kind="stable")].tolist()
            self._before[key] = dict(zip(order[1:], order, strict=False))
        return self._before[key]
