"""A training step simulated by its gang: where its time went, as if all ranks had been written out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.sim.gang_path import GangPath, gang_path
from ropewalk.sim.gang_run import GangRun
from ropewalk.sim.occupancy import RankOccupancy, RankTimes, rank_times
from ropewalk.sim.step import StepStatistics, bottleneck, path_parts
from ropewalk.task.lower.moves import STREAMS
from ropewalk.task.step import Act


@dataclass(frozen=True, eq=False)
class SomeOperations:
    """Operations of the ranks that stand for all others."""

    ranks: int
    """All of them."""
    act: NDArray[np.int8]
    stream: NDArray[np.int16]
    label: NDArray[np.int32]
    labels: tuple[str, ...]
    streams: tuple[str, ...] = STREAMS


@dataclass(frozen=True, eq=False)
class GangStep:
    """The run of a step, seen by some ranks: one of each class, and of every stage the one with most of the path."""

    step: SomeOperations
    occupied: RankOccupancy
    on_path: NDArray[np.bool_]
    makespan: float
    operations: int
    tasks: int
    simulated_tasks: int
    network: None = None


class GangReader:
    """Reads the run of a gang: the part of it that is drawn, and its statistics."""

    def __init__(self, run: GangRun, flops: float) -> None:
        self.run, self.flops = run, flops
        self.labels, self.label = run.gang.labelled()

    @cached_property
    def path(self) -> GangPath:
        return gang_path(self.run)

    @cached_property
    def seen(self) -> GangStep:
        """What the ranks that stand for all others did, operations of all of them in the order of the step."""
        run, ranks = self.run, self._chosen()
        row: list[Ints] = []  # an operation and a copy of it
        held: list[tuple[Ints, Ints]] = []  # which of these a rank has
        spans: list[tuple[Floats, Floats]] = []
        many = 0
        for kind, operations in enumerate(run.operations_of):
            copy, rank = run.members(kind, ranks)
            if not len(operations) or not len(copy):
                continue
            copies, which = np.unique(copy, return_inverse=True)
            start, end = run.spans(kind, copies)
            row.append(np.column_stack([np.repeat(operations, len(copies)), np.tile(copies, len(operations))]))
            spans.append((start.ravel(), end.ravel()))
            at = many + np.arange(len(operations))[:, None] * len(copies) + which
            held.append((at.ravel(), np.tile(rank, len(operations))))
            many += len(operations) * len(copies)
        return self._in_order(np.concatenate(row), spans, held)

    def _in_order(self, row: Ints, spans: list[tuple[Floats, Floats]], held: list[tuple[Ints, Ints]]) -> GangStep:
        run = self.run
        start, end = (np.concatenate([span[side] for span in spans]) for side in (0, 1))
        order = np.lexsort((row[:, 1], row[:, 0]))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        at, rank = (np.concatenate([one[side] for one in held]) for side in (0, 1))
        lasting = end[at] > start[at]
        at, rank = at[lasting], rank[lasting]
        operation = row[order, 0]
        gang = run.gang
        return GangStep(
            SomeOperations(
                run.written.roster.ranks,
                gang.act[operation],
                gang.stream[operation],
                self.label[operation],
                self.labels,
            ),
            RankOccupancy(rank, place[at], start[at], end[at]),
            self._on_path(row[order]),
            run.makespan,
            run.copies,
            run.tasks,
            run.system.tasks,
        )

    def _on_path(self, row: Ints) -> NDArray[np.bool_]:
        """By operation and copy: is it on the critical path?"""
        path, run = self.path, self.run
        copy = [
            int(np.searchsorted(run.written.first[run.kind[operation]], task, side="right")) - 1
            for operation, task in zip(path.operation.tolist(), path.task.tolist(), strict=True)
        ]
        most = run.written.roster.ranks + 1
        return np.isin(row[:, 0] * most + row[:, 1], path.operation * most + np.array(copy, np.int64))

    def _chosen(self) -> NDArray[np.bool_]:
        """By rank: is it one that stands for others?"""
        run = self.run
        chosen = np.zeros(run.written.roster.ranks, np.bool_)
        chosen[run.stands_for] = True
        graph, path = run.written.routed.graph, self.path
        computes = run.gang.act[path.operation] == Act.COMPUTE
        weight = np.bincount(graph.place[path.task[computes]], (path.end - path.start)[computes], minlength=len(chosen))
        for stage in range(len(run.written.roster.grids)):
            ranks = np.flatnonzero(run.stage_of_rank == stage)
            chosen[ranks[np.argmax(weight[ranks])]] = True
        return chosen

    def rank_times(self) -> RankTimes:
        """How every rank spent the step: as the one that stands for it."""
        found, stands = rank_times(self.seen.step, self.seen.occupied, self.run.makespan), self.run.stands_for
        return RankTimes(
            found.compute_s[stands],
            found.communication_s[stands],
            found.exposed_communication_s[stands],
            found.bubble_s[stands],
            {purpose: seconds[stands] for purpose, seconds in found.exposed_by_purpose_s.items()},
        )

    def statistics(
        self, *, peak_flops: float | None = None, samples: float | None = None, tokens: float | None = None
    ) -> StepStatistics:
        """The step in numbers."""
        run, path, fabric = self.run, self.path, self.run.written.routes.fabric
        lasting = path.end > path.start
        operation, spent = path.operation[lasting], (path.end - path.start)[lasting]
        use = run.link_bytes / (fabric.bandwidth * max(run.makespan, 1e-300))
        named = (
            (self.labels[self.label[one]], self._purpose(one), took)
            for one, took in zip(operation.tolist(), spent.tolist(), strict=True)
        )
        return StepStatistics(
            run.makespan,
            self.rank_times(),
            path_parts(named),
            use,
            bottleneck(fabric, path.link[lasting], spent, use),
            self.flops,
            peak_flops,
            samples,
            tokens,
        )

    def _purpose(self, operation: int) -> str:
        gang = self.run.gang
        return STREAMS[gang.stream[operation] if gang.act[operation] != Act.COMPUTE else 0]
