"""What happened: start and end of every task, what each link carried, and why the last task ended when it did."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.routing import Routes
from ropewalk.sim.tax import tax
from ropewalk.task import TaskGraph, TaskKind

TOUCHING = 1e-9
"""A task that starts within this part of the makespan after another one ended may have waited for it."""


@dataclass(frozen=True)
class CriticalTask:
    """One task of the critical path."""

    task: int
    label: str
    kind: str
    where: str
    start_s: float
    end_s: float
    bottleneck: str | None


@dataclass(frozen=True, eq=False)
class Trace:
    """The run of a task graph over routes; enough to draw every figure without running anything again."""

    graph: TaskGraph
    routes: Routes
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    bound_by: NDArray[np.int32]
    """The link that held a transfer back when it finished, -1 where none did."""
    classes: int
    """Task classes that were simulated: fewer than tasks where symmetry was found."""
    steps: int
    """Distinct points in time at which something happened."""
    rate_time: NDArray[np.float64] | None = None
    rate_pair: NDArray[np.int64] | None = None
    rate: NDArray[np.float64] | None = None
    """Where asked: from `rate_time[i]` on, pair `rate_pair[i]` of the routes sends `rate[i]` bytes/s (per priority
    and cap class; later entries of a class replace earlier ones)."""
    rate_class: NDArray[np.int32] | None = None

    @property
    def makespan(self) -> float:
        return float(self.end.max(initial=0.0))

    @cached_property
    def link_bytes(self) -> NDArray[np.float64]:
        """Bytes that each link carried."""
        transfer = np.flatnonzero(self.graph.kind == TaskKind.TRANSFER)
        pair = self.routes.rows_of(self.graph, transfer)
        return self.routes.link_bytes(pair, self.graph.amount[transfer])

    @cached_property
    def asked_bytes(self) -> float:
        """Bytes that hosts had for each other."""
        return float(self.graph.amount[self.graph.kind == TaskKind.TRANSFER].sum())

    @property
    def tax(self) -> float:
        """Bytes carried by links over bytes asked for."""
        return tax(float(self.link_bytes.sum()), self.asked_bytes)

    @property
    def link_utilisation(self) -> NDArray[np.float64]:
        """Part of its capacity that each link carried over the whole run."""
        return self.link_bytes / (self.routes.fabric.bandwidth * max(self.makespan, 1e-300))

    def busy_seconds(self) -> dict[str, float]:
        """Seconds of work by kind of task, summed over all tasks."""
        duration = self.end - self.start
        return {kind.name.lower(): float(duration[self.graph.kind == kind].sum()) for kind in TaskKind}

    def critical_path(self) -> list[CriticalTask]:
        """From the first task to the last: each task started when the one before it ended.

        A task starts late because of a predecessor, or because its stream was busy; the latter shows as the task that
        ran on the stream just before.
        """
        if not self.graph.tasks:
            return []
        path = [int(np.argmax(self.end))]
        before = _task_before_on_stream(self.graph, self.start)
        slack = TOUCHING * max(self.makespan, 1e-300)
        while True:
            task = path[-1]
            row = self.graph.dep[self.graph.dep_start[task] : self.graph.dep_start[task + 1]]
            candidates = [int(dep) for dep in row]
            if before[task] >= 0:
                candidates.append(int(before[task]))
            if not candidates:
                break
            latest = max(candidates, key=lambda candidate: (self.end[candidate], -candidate))
            if self.end[latest] < self.start[task] - slack:
                break
            path.append(latest)
        return [self._step(task) for task in reversed(path) if self.graph.kind[task] != TaskKind.MARKER]

    def _step(self, task: int) -> CriticalTask:
        graph, fabric = self.graph, self.routes.fabric
        kind = TaskKind(int(graph.kind[task]))
        where = f"gpu {int(graph.place[task])} stream {int(graph.stream[task])}"
        if kind is TaskKind.TRANSFER:
            where = f"{fabric.node_names[graph.place[task]]}->{fabric.node_names[graph.peer[task]]}"
        link = int(self.bound_by[task])
        return CriticalTask(
            task,
            graph.name_of(task),
            kind.name.lower(),
            where,
            float(self.start[task]),
            float(self.end[task]),
            fabric.link_name(link) if link >= 0 else None,
        )

    def throughput(self, host: int, *, sending: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bytes/s that a host receives (or sends) over time, as a step curve (time, bytes/s from then on)."""
        if self.rate is None or self.rate_pair is None or self.rate_time is None or self.rate_class is None:
            raise ValueError("rates were not recorded: simulate with record_rates=True")
        ends = self.routes.pair_src if sending else self.routes.pair_dst
        mine = np.flatnonzero(ends[self.rate_pair] == host)
        time, flow, rate = self.rate_time[mine], self.rate_class[mine], self.rate[mine]
        order = np.lexsort((np.arange(len(mine)), flow))
        change = np.zeros(len(mine))
        previous = np.where(np.diff(flow[order], prepend=-1) == 0, np.concatenate([[0.0], rate[order][:-1]]), 0.0)
        change[order] = rate[order] - previous
        instants, index = np.unique(time, return_inverse=True)
        level = np.cumsum(np.bincount(index, weights=change, minlength=len(instants)))
        return instants, np.maximum(level, 0.0)

    def hottest_links(self, most: int = 5) -> list[tuple[str, float]]:
        """The links with the highest utilisation: (name, utilisation)."""
        use = self.link_utilisation
        order = np.argsort(-use, kind="stable")[:most]
        return [(self.routes.fabric.link_name(int(link)), float(use[link])) for link in order]

    def summary(self) -> dict[str, object]:
        """The run in a few numbers."""
        kinds = {kind.name.lower(): int((self.graph.kind == kind).sum()) for kind in TaskKind}
        return {
            "makespan_s": self.makespan,
            "tasks": self.graph.tasks,
            **{f"{name}_tasks": count for name, count in kinds.items()},
            "classes": self.classes,
            "time_steps": self.steps,
            "bytes": self.asked_bytes,
            "tax": self.tax,
            "busy_s": self.busy_seconds(),
            "hottest_links": [{"link": name, "utilisation": use} for name, use in self.hottest_links()],
        }


def _task_before_on_stream(graph: TaskGraph, start: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each compute task the one that ran on its stream just before, or -1."""
    before = np.full(graph.tasks, -1, np.int64)
    compute = np.flatnonzero(graph.kind == TaskKind.COMPUTE)
    order = compute[np.lexsort((start[compute], graph.stream[compute], graph.place[compute]))]
    same = (np.diff(graph.place[order]) == 0) & (np.diff(graph.stream[order]) == 0)
    before[order[1:][same]] = order[:-1][same]
    return before
