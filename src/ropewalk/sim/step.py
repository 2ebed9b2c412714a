"""A training step that ran: where its time went, and which link held it up."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats
from ropewalk.errors import GraphError
from ropewalk.fabric import Fabric
from ropewalk.sim.level import LevelRun
from ropewalk.sim.occupancy import (
    OperationTimes,
    RankOccupancy,
    RankTimes,
    TimedOperations,
    occupancy,
    operation_times,
    rank_times,
)
from ropewalk.sim.trace import Trace
from ropewalk.task.step import Act, Step

NUMBER = re.compile("[0-9]+")
ROUNDED = 12
"""Digits that count where parts of a whole are compared."""


class Ran(Protocol):
    """A step that ran, as charts and tables ask about it; of ranks that do the same, one may stand for all."""

    @property
    def step(self) -> TimedOperations: ...
    @property
    def occupied(self) -> RankOccupancy: ...
    @property
    def on_path(self) -> NDArray[np.bool_]:
        """By operation: is it on the critical path?"""

    @property
    def makespan(self) -> float: ...
    @property
    def operations(self) -> int:
        """Of all ranks, as are tasks."""

    @property
    def tasks(self) -> int: ...
    @property
    def simulated_tasks(self) -> int: ...
    @property
    def network(self) -> LevelRun | None: ...


@dataclass(frozen=True, eq=False)
class StepRun:
    """A step, the run of the tasks it was expanded to, and which task belongs to which operation."""

    step: Step
    trace: Trace
    operation_of_task: NDArray[np.int32]
    """-1 where a task belongs to no operation."""
    network: LevelRun | None = None
    """At which level the network was simulated, and what packets met there; None where nobody asked."""

    def __post_init__(self) -> None:
        tasks, named = self.trace.graph.tasks, len(self.operation_of_task)
        if tasks != named:
            raise GraphError(f"the run has {tasks} tasks, but operations are named for {named}: give one for each task")

    @cached_property
    def times(self) -> OperationTimes:
        return operation_times(self.step, self.trace, self.operation_of_task)

    @cached_property
    def occupied(self) -> RankOccupancy:
        return occupancy(self.step, self.times)

    @cached_property
    def on_path(self) -> NDArray[np.bool_]:
        """By operation: is it on the critical path?"""
        found = np.zeros(self.step.operations, np.bool_)
        operations = [self.operation_of_task[entry.task] for entry in self.trace.critical_path()]
        found[[operation for operation in operations if operation >= 0]] = True
        return found

    @property
    def makespan(self) -> float:
        return self.trace.makespan

    @property
    def operations(self) -> int:
        return self.step.operations

    @property
    def tasks(self) -> int:
        return self.trace.graph.tasks

    @property
    def simulated_tasks(self) -> int:
        return self.trace.classes

    def named(self, task: int) -> tuple[str, str]:
        """Label and purpose of a task."""
        operation = int(self.operation_of_task[task])
        if operation < 0:
            return self.trace.graph.name_of(task), "other"
        return self.step.name_of(operation), self.purpose_of(operation)

    def purpose_of(self, operation: int) -> str:
        """What an operation is for: `compute`, or the name of the stream that it communicates on."""
        return self.step.streams[int(self.step.stream[operation]) if self.step.act[operation] != Act.COMPUTE else 0]


@dataclass(frozen=True)
class Window:
    """One of several steps that ran in a row: from when to when, and how many there were."""

    begin_s: float
    end_s: float
    steps: int

    def clip(self, start: Floats, end: Floats) -> tuple[Floats, Floats]:
        """Times from the begin of the window on; what lies outside has no length."""
        length = self.end_s - self.begin_s
        return np.clip(start - self.begin_s, 0.0, length), np.clip(end - self.begin_s, 0.0, length)


@dataclass(frozen=True)
class PathPart:
    """Time that the critical path spends on operations of one label and purpose."""

    label: str
    purpose: str
    seconds: float
    tasks: int


@dataclass(frozen=True)
class Bottleneck:
    """The link that the step would gain most from, as far as one run can tell."""

    link: int
    name: str
    held_s: float
    """Seconds of the critical path in which it held a transfer back; 0 where it is only the most utilised link."""
    utilisation: float


@dataclass(frozen=True, eq=False)
class StepStatistics:
    """The step in numbers; times of ranks by rank, and their means under the same names."""

    step_time_s: float
    times: RankTimes
    path: tuple[PathPart, ...]
    """The critical path, longest part first."""
    link_utilisation: NDArray[np.float64]
    bottleneck: Bottleneck | None
    """None where nothing crossed a link."""
    flops: float
    peak_flops: float | None = None
    """Of one rank; None where it is not known."""
    samples: float | None = None
    tokens: float | None = None

    @property
    def compute_s(self) -> float:
        return _mean(self.times.compute_s)

    @property
    def communication_s(self) -> float:
        return _mean(self.times.communication_s)

    @property
    def exposed_communication_s(self) -> float:
        return _mean(self.times.exposed_communication_s)

    @property
    def bubble_s(self) -> float:
        return _mean(self.times.bubble_s)

    @property
    def exposed_by_purpose_s(self) -> dict[str, float]:
        """Mean over the ranks, largest first."""
        means = {purpose: _mean(seconds) for purpose, seconds in self.times.exposed_by_purpose_s.items()}
        return dict(sorted(means.items(), key=lambda entry: (-entry[1], entry[0])))

    @cached_property
    def path_by_sort(self) -> tuple[PathPart, ...]:
        """The critical path by label, where labels that differ in numbers alone are one: `block … forward`."""
        merged: dict[tuple[str, str], list[PathPart]] = {}
        for part in self.path:
            merged.setdefault((NUMBER.sub("…", part.label), part.purpose), []).append(part)
        parts = (
            PathPart(
                parts[0].label if len(parts) == 1 else label,
                purpose,
                sum(part.seconds for part in parts),
                sum(part.tasks for part in parts),
            )
            for (label, purpose), parts in merged.items()
        )
        return _longest_first(parts)

    @property
    def path_by_purpose_s(self) -> dict[str, float]:
        """Seconds of the critical path by purpose, largest first."""
        total: dict[str, float] = {}
        for part in self.path:
            total[part.purpose] = total.get(part.purpose, 0.0) + part.seconds
        return dict(sorted(total.items(), key=lambda entry: (-entry[1], entry[0])))

    @property
    def mfu(self) -> float | None:
        """Model flops utilisation: the arithmetic of the model over what the GPUs could have done in the time."""
        if not self.peak_flops or not self.flops or self.step_time_s <= 0:
            return None
        return self.flops / (len(self.times.compute_s) * self.peak_flops * self.step_time_s)

    @property
    def samples_per_s(self) -> float | None:
        return self.samples / self.step_time_s if self.samples and self.step_time_s > 0 else None

    @property
    def tokens_per_s(self) -> float | None:
        return self.tokens / self.step_time_s if self.tokens and self.step_time_s > 0 else None


def statistics(
    run: StepRun,
    *,
    peak_flops: float | None = None,
    samples: float | None = None,
    tokens: float | None = None,
    window: Window | None = None,
) -> StepStatistics:
    """Where the time of a step went; where several ran in a row, that of the one in the `window`.

    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.routing import shortest
    >>> from ropewalk.sim import simulate
    >>> from ropewalk.task import Sketch
    >>> from ropewalk.task.step import StepSketch
    >>> step, tasks = StepSketch(2), Sketch()
    >>> forward = step.compute(0, 1e-3), tasks.compute(0, 1e-3)
    >>> sent = step.send(0, 1, 12.5e6, after=forward[:1]), tasks.transfer(0, 1, 12.5e6, after=forward[1:])
    >>> routes = shortest(IdealSwitch(2).build(), np.array([0]), np.array([1]))
    >>> run = StepRun(step.step(), simulate(tasks.graph(), routes), np.array([0, 1], np.int32))
    >>> found = statistics(run)
    >>> [round(seconds * 1e3, 6) for seconds in (found.step_time_s, found.compute_s, found.exposed_communication_s)]
    [2.0, 0.5, 1.0]
    """
    trace = run.trace
    window = window or Window(0.0, trace.makespan, 1)
    seconds = window.end_s - window.begin_s
    path = np.array([entry.task for entry in trace.critical_path()], np.int64)
    start, end = window.clip(trace.start[path], trace.end[path])
    path, spent = path[end > start], (end - start)[end > start]
    occupied = occupancy(run.step, OperationTimes(*window.clip(run.times.start, run.times.end)))
    # All steps carry the same bytes, so that one has its part of the whole.
    use = trace.link_utilisation * (trace.makespan / (window.steps * seconds) if seconds else 1.0)
    return StepStatistics(
        seconds,
        rank_times(run.step, occupied, seconds),
        path_parts((*run.named(task), took) for task, took in zip(path.tolist(), spent.tolist(), strict=True)),
        use,
        bottleneck(trace.routes.fabric, trace.bound_by[path].astype(np.int64), spent, use),
        run.step.flops,
        peak_flops,
        samples,
        tokens,
    )


def path_parts(path: Iterable[tuple[str, str, float]]) -> tuple[PathPart, ...]:
    """The critical path by label and purpose, from the label, the purpose and the seconds of its tasks."""
    total: dict[tuple[str, str], tuple[float, int]] = {}
    for label, purpose, took in path:
        seconds, tasks = total.get((label, purpose), (0.0, 0))
        total[label, purpose] = (seconds + took, tasks + 1)
    return _longest_first(PathPart(label, purpose, *sums) for (label, purpose), sums in total.items())


def _longest_first(parts: Iterable[PathPart]) -> tuple[PathPart, ...]:
    """Parts that are as long as each other to rounding are ordered by name."""
    found = tuple(parts)
    whole = max(sum(part.seconds for part in found), 1e-300)
    return tuple(sorted(found, key=lambda part: (-round(part.seconds / whole, ROUNDED), part.purpose, part.label)))


def bottleneck(fabric: Fabric, bound_by: NDArray[np.int64], spent: Floats, use: Floats) -> Bottleneck | None:
    """The link that held transfers of the critical path back longest; without any, the most utilised one.

    `bound_by` and `spent` say by task of the path which link held it back, or -1, and how long it took.
    """
    if not len(use):
        return None
    held = bound_by >= 0
    seconds = np.bincount(bound_by[held], spent[held], minlength=len(use))
    link = int(np.argmax(seconds)) if seconds.any() else int(np.argmax(use))
    if use[link] <= 0:
        return None
    return Bottleneck(link, fabric.link_name(link), float(seconds[link]), float(use[link]))


def _mean(seconds: Floats) -> float:
    return float(seconds.mean()) if len(seconds) else 0.0
