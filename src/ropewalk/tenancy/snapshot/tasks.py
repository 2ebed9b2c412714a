"""Iterations of running jobs as one task graph: every round of every exchange, with its barrier.

A job computes, then runs its exchanges one after the other, each beside the computing that hides it. Rounds are those
of the model that the replay uses (`footprint.py`), so both speak of the same flows: of a long all-to-all some rounds
stand for their neighbours, and all bytes are sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.routing import Routes
from ropewalk.task import TaskGraph, TaskKind, make_graph
from ropewalk.task.compose import parallel, sequence
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.relays import relayed
from ropewalk.tenancy.rounds import patterns_of
from ropewalk.tenancy.snapshot.tenant import Tenant
from ropewalk.tenancy.snapshot.wires import PathRows, Wires

LABELS = ("wait", "compute", "compute beside an exchange", "send", "end of a round", "end of an exchange")
WAIT, COMPUTE, BESIDE, SEND, ROUND, EXCHANGE = range(len(LABELS))
HIDING = 1
"""The stream of computing that runs beside an exchange."""


@dataclass(frozen=True, eq=False)
class Together:
    """Jobs side by side in one graph, and where to read their times."""

    graph: TaskGraph
    routes: Routes
    job: NDArray[np.int32]
    """Of every task: which of the jobs it belongs to."""
    marks: tuple[Ints, ...]
    """Of every job: the task with which it begins, then the last task of each iteration."""

    @property
    def transfers(self) -> int:
        return int(np.count_nonzero(self.graph.kind == TaskKind.TRANSFER))

    def ends_s(self, end: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Of every job: when it begins, then the end of each iteration."""
        return [end[mark] for mark in self.marks]


@dataclass(frozen=True, eq=False)
class Phase:
    """Rounds of an exchange in which the same GPUs send to the same GPUs."""

    exchange: int
    src: Ints
    dst: Ints
    size_bytes: NDArray[np.float64]
    """Of every flow in one round."""
    rounds: int
    path: Ints
    """[flow, hop]: cables of the flows that cross leafs."""
    enter: Ints
    """The GPU at which every flow enters the network: another one of the sender's server where it changes rails."""
    leave: Ints
    """The GPU at which it leaves the network."""

    @property
    def transfers(self) -> int:
        return len(self.src) * self.rounds


def phases_of(plant: Plant, tenant: Tenant) -> Iterator[Phase]:
    """What a job sends in an iteration, in order."""
    footprint, held = tenant.footprint, tenant.allocation
    gpus, leaf = np.array(held.gpus, np.int64), np.array(held.leaf_of_gpu, np.int64)
    server, number = gpus // plant.gpus_per_server, 0
    for which, exchange in enumerate(footprint.work.exchanges):
        number += bool(exchange.after_s)
        if not exchange.size_bytes:
            continue
        for src, dst, pattern in patterns_of(exchange, len(gpus), leaf // plant.rails, server):
            flows = slice(footprint.flow_start[number], footprint.flow_start[number + 1])
            number += 1
            rounds = math.ceil(pattern.repeat)
            enter, leave = relayed(gpus, plant.rails, src, dst)
            yield Phase(
                which,
                gpus[src],
                gpus[dst],
                exchange.size_bytes * pattern.share * pattern.repeat / rounds * pattern.weights(len(src)),
                rounds,
                footprint.path[flows].astype(np.int64),
                gpus[enter],
                gpus[leave],
            )


def transfers_of(plant: Plant, tenant: Tenant) -> int:
    """How many transfers one iteration of a job is."""
    return sum(phase.transfers for phase in phases_of(plant, tenant))


def written_together(wires: Wires, tenants: Sequence[Tenant], iterations: Sequence[int]) -> Together:
    """All iterations of all jobs; nothing of one job waits for another one."""
    paths = PathRows(wires)
    graphs, marks, job, first = [], [], [], 0
    for number, (tenant, count) in enumerate(zip(tenants, iterations, strict=True)):
        one = _iteration(paths, tenant)
        graphs.append(sequence(_wait(tenant), *[one] * count))
        # A sequence has a marker between its parts.
        marks.append(first + np.arange(count + 1) * (one.tasks + 1))
        job.append(np.full(graphs[-1].tasks, number, np.int32))
        first += graphs[-1].tasks
    return Together(parallel(*graphs), paths.routes(), np.concatenate(job), tuple(marks))


def _wait(tenant: Tenant) -> TaskGraph:
    return make_graph([TaskKind.COMPUTE], tenant.allocation.gpus[:1], -1, [tenant.start_s], [0, 0], [], labels=LABELS)


def _iteration(paths: PathRows, tenant: Tenant) -> TaskGraph:
    """One iteration; its last task is its only end."""
    gpu, work, tasks = tenant.allocation.gpus[0], tenant.footprint.work, _Columns()
    placed = sum(exchange.overlap_s + exchange.after_s for exchange in work.exchanges)
    ready = tasks.compute(gpu, max(work.compute_s - placed, 0.0), COMPUTE)
    phases = list(phases_of(paths.wires.plant, tenant))
    for which, exchange in enumerate(work.exchanges):
        if exchange.after_s:
            ready = tasks.compute(gpu, exchange.after_s, COMPUTE, after=ready)
        beside = tasks.compute(gpu, exchange.overlap_s, BESIDE, after=ready)
        for phase in phases:
            if phase.exchange == which:
                ready = tasks.rounds(
                    phase, paths.rows(phase.src, phase.dst, phase.path, phase.enter, phase.leave), ready
                )
        ready = tasks.join(beside, ready)
    return tasks.graph()


class _Columns:
    """The columns of a graph while it is written, many tasks at a time."""

    def __init__(self) -> None:
        self.tasks = 0
        self._parts: list[tuple[Ints, Ints, Ints, NDArray[np.float64], Ints, Ints, Ints]] = []
        self._waits: list[Ints] = []
        self._dep: list[Ints] = []

    def compute(self, gpu: int, seconds: float, label: int, after: int | None = None) -> int:
        stream = HIDING if label == BESIDE else 0
        self._add([TaskKind.COMPUTE], [gpu], [-1], [seconds], [stream], [label], [-1])
        self._wait_for([0 if after is None else 1], [] if after is None else [after])
        return self.tasks - 1

    def join(self, *after: int) -> int:
        self._add([TaskKind.MARKER], [-1], [-1], [0.0], [0], [EXCHANGE], [-1])
        self._wait_for([len(after)], list(after))
        return self.tasks - 1

    def rounds(self, phase: Phase, rows: NDArray[np.int32], after: int) -> int:
        """All rounds of a phase, each with a barrier at its end; answers the last barrier."""
        flows, times, first = len(phase.src), phase.rounds, self.tasks

        def every(sends: Ints | int, barrier: int) -> Ints:
            return np.tile(np.append(np.broadcast_to(sends, flows), barrier), times)

        self._add(
            every(int(TaskKind.TRANSFER), int(TaskKind.MARKER)),
            every(phase.src, -1),
            every(phase.dst, -1),
            np.tile(np.append(phase.size_bytes, 0.0), times),
            every(0, 0),
            every(SEND, ROUND),
            every(rows.astype(np.int64), -1),
        )
        begin = first + np.arange(times) * (flows + 1)
        before = np.concatenate([[after], begin[1:] - 1])
        sent = begin[:, None] + np.arange(flows)
        dep = np.concatenate([np.broadcast_to(before[:, None], (times, flows)), sent], axis=1)
        self._wait_for(every(1, flows), dep.ravel())
        return self.tasks - 1

    def graph(self) -> TaskGraph:
        kind, place, peer, amount, stream, label, route = map(np.concatenate, zip(*self._parts, strict=True))
        start = np.concatenate([[0], np.cumsum(np.concatenate(self._waits))])
        return make_graph(
            kind, place, peer, amount, start, np.concatenate(self._dep), stream=stream, label=label, labels=LABELS,
            route=route,
        )  # fmt: skip

    def _add(self, *columns: Sequence[float] | NDArray[np.generic]) -> None:
        kind, place, peer, amount, stream, label, route = (np.asarray(column) for column in columns)
        self._parts.append((kind, place, peer, amount, stream, label, route))
        self.tasks += len(kind)

    def _wait_for(self, counts: Sequence[int] | Ints, tasks: Sequence[int] | Ints) -> None:
        self._waits.append(np.asarray(counts, np.int64))
        self._dep.append(np.asarray(tasks, np.int64))
