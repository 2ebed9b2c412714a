"""One training step, or any part of it, as a graph of tasks in columns.

A task computes on a stream of a GPU, transfers bytes between two hosts, or marks a point that others wait for. Tasks
stand in an order in which every task comes after those it waits for; that makes a cycle impossible to write down.
There is no object per task: ten million tasks are a handful of arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.errors import Findings, GraphError


class TaskKind(IntEnum):
    COMPUTE = 0
    TRANSFER = 1
    MARKER = 2


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """Columns by task; task i waits for `dep[dep_start[i]:dep_start[i+1]]`, all of them lower than i."""

    kind: NDArray[np.int8]
    place: NDArray[np.int32]
    """The GPU of a compute task, the source host of a transfer, -1 for a marker."""
    peer: NDArray[np.int32]
    """The destination host of a transfer, otherwise -1."""
    stream: NDArray[np.int16]
    """Compute tasks of one GPU and stream run one at a time."""
    amount: NDArray[np.float64]
    """Seconds of a compute task, bytes of a transfer."""
    start_up: NDArray[np.float64]
    """Seconds that a transfer waits before its first byte, on top of the latency of its path."""
    priority: NDArray[np.int32]
    """Lower is more urgent: strictly, for transfers on a link and for compute tasks on a stream."""
    rate_cap: NDArray[np.float64]
    """Bytes/s that a transfer never exceeds."""
    label: NDArray[np.int32]
    labels: tuple[str, ...]
    dep_start: NDArray[np.int64]
    dep: NDArray[np.int32]
    route: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """The row of the routes that a transfer takes; -1, as everywhere unless given, for the usual one of its pair."""

    def __post_init__(self) -> None:
        if len(self.route) == 0:
            object.__setattr__(self, "route", np.broadcast_to(np.int32(-1), len(self.kind)))

    @property
    def tasks(self) -> int:
        return len(self.kind)

    def check(self) -> None:
        """Every column fits, every amount is possible, every dependency points back."""
        findings = Findings(GraphError, "task graph")
        columns = (self.place, self.peer, self.stream, self.amount, self.start_up, self.priority, self.rate_cap)
        if (
            any(len(column) != self.tasks for column in (*columns, self.label, self.route))
            or len(self.dep_start) != self.tasks + 1
        ):
            findings.add("the columns differ in length: give every column one entry per task")
            findings.raise_if_any()
        if self.dep_start[0] != 0 or self.dep_start[-1] != len(self.dep) or (np.diff(self.dep_start) < 0).any():
            findings.add("the ranges of the dependencies are not contiguous from 0 to the last one")
            findings.raise_if_any()
        owner = np.repeat(np.arange(self.tasks), np.diff(self.dep_start))
        if (self.dep < 0).any() or (self.dep >= owner).any():
            findings.add("a task waits for itself or for a later task: list tasks after those they wait for")
        for wrong, text in (
            (
                ~np.isin(self.kind, [int(kind) for kind in TaskKind]),
                "has an unknown kind: use compute, transfer or marker",
            ),
            (~np.isfinite(self.amount) | (self.amount < 0), "has a negative or infinite amount"),
            (~np.isfinite(self.start_up) | (self.start_up < 0), "has a negative or infinite start-up time"),
            (~(self.rate_cap > 0), "has a rate cap that is not positive: leave it out for no cap"),
            ((self.kind == TaskKind.TRANSFER) & (self.place == self.peer), "is a transfer from a host to itself"),
            (
                (self.kind == TaskKind.TRANSFER) & ((self.place < 0) | (self.peer < 0)),
                "is a transfer without both ends",
            ),
            ((self.kind == TaskKind.COMPUTE) & (self.place < 0), "computes on no gpu"),
        ):
            if wrong.any():
                first = int(np.flatnonzero(wrong)[0])
                findings.add(f"task {first} ({self.name_of(first)}) {text} ({int(wrong.sum())} such tasks)")
        findings.raise_if_any()

    def name_of(self, task: int) -> str:
        label = int(self.label[task])
        return self.labels[label] if 0 <= label < len(self.labels) else f"task {task}"

    def sinks(self) -> NDArray[np.int64]:
        """Tasks that nobody waits for."""
        waited = np.zeros(self.tasks, bool)
        waited[self.dep] = True
        return np.flatnonzero(~waited)

    def sources(self) -> NDArray[np.int64]:
        """Tasks that wait for nobody."""
        return np.flatnonzero(np.diff(self.dep_start) == 0)


class OtherColumns(TypedDict, total=False):
    """Columns that most graphs leave as they are everywhere."""

    stream: ArrayLike
    start_up: ArrayLike
    priority: ArrayLike
    rate_cap: ArrayLike
    label: ArrayLike
    route: ArrayLike


USUAL: OtherColumns = {
    "stream": 0, "start_up": 0.0, "priority": 0, "rate_cap": np.inf, "label": 0, "route": -1
}  # fmt: skip


def make_graph(
    kind: ArrayLike,
    place: ArrayLike,
    peer: ArrayLike,
    amount: ArrayLike,
    dep_start: ArrayLike,
    dep: ArrayLike,
    *,
    labels: Sequence[str] = ("task",),
    **others: Unpack[OtherColumns],
) -> TaskGraph:
    """A TaskGraph from columns; scalars are spread over all tasks."""
    tasks = len(np.atleast_1d(kind))
    given = USUAL | others

    def column(values: ArrayLike, dtype: type) -> NDArray[np.generic]:
        return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype), (tasks,)))

    return TaskGraph(
        kind=column(kind, np.int8),  # type: ignore[arg-type]
        place=column(place, np.int32),  # type: ignore[arg-type]
        peer=column(peer, np.int32),  # type: ignore[arg-type]
        stream=column(given["stream"], np.int16),  # type: ignore[arg-type]
        amount=column(amount, np.float64),  # type: ignore[arg-type]
        start_up=column(given["start_up"], np.float64),  # type: ignore[arg-type]
        priority=column(given["priority"], np.int32),  # type: ignore[arg-type]
        rate_cap=column(given["rate_cap"], np.float64),  # type: ignore[arg-type]
        label=column(given["label"], np.int32),  # type: ignore[arg-type]
        labels=tuple(labels),
        dep_start=np.asarray(dep_start, np.int64),
        dep=np.asarray(dep, np.int32),
        route=np.broadcast_to(np.asarray(given["route"], np.int32), (tasks,)),
    )


@dataclass
class Sketch:
    """A small graph written task by task, for tests, examples and hand-made studies.

    >>> sketch = Sketch()
    >>> forward = sketch.compute(0, 2e-3, label="forward")
    >>> _ = sketch.transfer(0, 1, 1e6, after=[forward])
    >>> sketch.graph().tasks
    2
    """

    def __post_init__(self) -> None:
        self._rows: list[tuple[int, int, int, int, float, float, int, float, str]] = []
        self._deps: list[list[int]] = []

    def compute(self, gpu: int, seconds: float, *, after: Sequence[int] = (), stream: int = 0, priority: int = 0,
                label: str = "compute") -> int:  # fmt: skip
        return self._add((TaskKind.COMPUTE, gpu, -1, stream, seconds, 0.0, priority, np.inf, label), after)

    def transfer(self, src: int, dst: int, size_bytes: float, *, after: Sequence[int] = (), priority: int = 0,
                 start_up: float = 0.0, rate_cap: float = np.inf, label: str = "transfer") -> int:  # fmt: skip
        return self._add((TaskKind.TRANSFER, src, dst, 0, size_bytes, start_up, priority, rate_cap, label), after)

    def marker(self, *, after: Sequence[int] = (), label: str = "marker") -> int:
        return self._add((TaskKind.MARKER, -1, -1, 0, 0.0, 0.0, 0, np.inf, label), after)

    def _add(self, row: tuple[int, int, int, int, float, float, int, float, str], after: Sequence[int]) -> int:
        self._rows.append(row)
        self._deps.append(list(after))
        return len(self._rows) - 1

    def graph(self) -> TaskGraph:
        labels = tuple(dict.fromkeys(row[8] for row in self._rows))
        number = {label: index for index, label in enumerate(labels)}
        columns = list(zip(*self._rows, strict=True)) or [()] * 9
        graph = make_graph(
            columns[0], columns[1], columns[2], columns[4],
            np.cumsum([0, *map(len, self._deps)]),
            [task for after in self._deps for task in after],
            stream=columns[3], start_up=columns[5], priority=columns[6], rate_cap=columns[7],
            label=[number[label] for label in columns[8]], labels=labels,
        )  # fmt: skip
        graph.check()
        return graph
