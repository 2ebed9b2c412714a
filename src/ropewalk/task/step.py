"""One training step as ranks see it: they compute, they meet in collectives, they send to each other.

A `Step` stands between a strategy and a `TaskGraph`. Its operations are still collectives with a group and a number of
bytes, which is what traces of other tools speak of; `expand` turns them into transfers on a fabric. Like a task graph
it is columns, and operations stand after those they wait for.

A collective is one operation for its whole group: it starts when every member has arrived (all that it waits for is
done) and ends for all members together, as NCCL's collectives do for the streams that wait for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.act import Act
from ropewalk.errors import Findings, GraphError

__all__ = ["COMPUTE_STREAM", "Act", "Step", "StepSketch"]

COMPUTE_STREAM = 0
"""The stream of kernels; communication has streams of its own, one for each purpose."""


@dataclass(frozen=True, eq=False)
class Step:
    """Columns by operation; operation i waits for `dep[dep_start[i]:dep_start[i+1]]`, all of them lower than i."""

    ranks: int
    act: NDArray[np.int8]
    rank: NDArray[np.int32]
    """The rank that computes or sends; -1 for a collective."""
    peer: NDArray[np.int32]
    """The rank that receives, otherwise -1."""
    group: NDArray[np.int32]
    """The group of a collective, otherwise -1."""
    amount: NDArray[np.float64]
    """Seconds of a computation; bytes of a send; bytes of a collective: the whole vector for all-reduce,
    reduce-scatter, broadcast and reduce, the whole *gathered* vector for all-gather, and what one rank sends in all
    (its own part included) for all-to-all."""
    stream: NDArray[np.int16]
    priority: NDArray[np.int32]
    label: NDArray[np.int32]
    labels: tuple[str, ...]
    groups: tuple[NDArray[np.int32], ...]
    """The ranks of every group, in the order of a ring."""
    dep_start: NDArray[np.int64]
    dep: NDArray[np.int32]
    streams: tuple[str, ...] = ("compute",)
    """Names of the streams, by number."""
    flops: float = 0.0
    """Arithmetic of the model in the whole step, without recomputation: what utilisation is counted with."""
    phases: dict[str, float] = field(default_factory=dict)
    """Facts about the step that cannot be read off its operations, by name, for reports."""
    repeats: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """How many like operations in a row an operation stands for, 1 unless given. The amount is that of all of them
    together; what each costs whatever its size (the start-up and the rounds of a collective) is paid this often."""
    goes_on: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    """Does a collective go on with the launch of the one it waits for, so that nothing has to start up?"""

    def __post_init__(self) -> None:
        if len(self.repeats) == 0:
            object.__setattr__(self, "repeats", np.ones(len(self.act), np.int32))
        if len(self.goes_on) == 0:
            object.__setattr__(self, "goes_on", np.zeros(len(self.act), np.bool_))

    @property
    def operations(self) -> int:
        return len(self.act)

    def check(self) -> None:
        """Columns fit, ranks and groups exist, dependencies point back."""
        findings = Findings(GraphError, "step")
        columns = (
            self.rank, self.peer, self.group, self.amount, self.stream, self.priority, self.label, self.repeats,
            self.goes_on,
        )  # fmt: skip
        if any(len(column) != self.operations for column in columns) or len(self.dep_start) != self.operations + 1:
            findings.add("the columns differ in length: give every column one entry per operation")
            findings.raise_if_any()
        owner = np.repeat(np.arange(self.operations), np.diff(self.dep_start))
        if len(self.dep) != len(owner) or (self.dep < 0).any() or (self.dep >= owner).any():
            findings.add("an operation waits for itself or for a later one: list operations after those they wait for")
        collective = self.act >= Act.ALL_REDUCE
        for wrong, text in (
            (~np.isin(self.act, [int(act) for act in Act]), "has an unknown act"),
            (~np.isfinite(self.amount) | (self.amount < 0), "has a negative or infinite amount"),
            (self.repeats < 1, "represents no operation: give repeats of 1 or more"),
            (~collective & ((self.rank < 0) | (self.rank >= self.ranks)), "has no rank"),
            ((self.act == Act.SEND) & ((self.peer < 0) | (self.peer >= self.ranks)), "has no destination rank"),
            ((self.act == Act.SEND) & (self.peer == self.rank), "is sent from a rank to itself"),
            (collective & ((self.group < 0) | (self.group >= len(self.groups))), "has no group"),
        ):
            if wrong.any():
                first = int(np.flatnonzero(wrong)[0])
                findings.add(f"operation {first} ({self.name_of(first)}) {text} ({int(wrong.sum())} such operations)")
        for number in self._odd_groups():
            findings.add(f"group {number} names a rank twice or a rank that does not exist")
        findings.raise_if_any()

    def _odd_groups(self) -> list[int]:
        """Groups that name a rank twice or one that does not exist."""
        if not self.groups:
            return []
        group = np.repeat(np.arange(len(self.groups)), [len(members) for members in self.groups])
        member = np.concatenate(self.groups).astype(np.int64)
        odd = (member < 0) | (member >= self.ranks)
        order = np.lexsort((member, group))
        again = np.flatnonzero((np.diff(group[order]) == 0) & (np.diff(member[order]) == 0))
        return [int(number) for number in np.unique(np.concatenate([group[odd], group[order[again]]]))]

    def name_of(self, operation: int) -> str:
        return self.labels[int(self.label[operation])]


@dataclass
class StepSketch:
    """A step written operation by operation.

    >>> sketch = StepSketch(2)
    >>> done = [sketch.compute(rank, 1e-3, label="backward") for rank in range(2)]
    >>> _ = sketch.collective(Act.ALL_REDUCE, [0, 1], 4e6, after=done, label="gradients")
    >>> sketch.step().operations
    3
    """

    ranks: int
    streams: tuple[str, ...] = ("compute", "communication")

    def __post_init__(self) -> None:
        self._rows: list[tuple[int, int, int, int, float, int, int, str]] = []
        self._deps: list[list[int]] = []
        self._repeats: list[int] = []
        self._groups: dict[tuple[int, ...], int] = {}

    def compute(self, rank: int, seconds: float, *, after: Sequence[int] = (), stream: int = 0, priority: int = 0,
                label: str = "compute") -> int:  # fmt: skip
        return self._add((Act.COMPUTE, rank, -1, -1, seconds, stream, priority, label), after)

    def send(self, rank: int, peer: int, size_bytes: float, *, after: Sequence[int] = (), stream: int = 1,
             priority: int = 0, label: str = "send") -> int:  # fmt: skip
        return self._add((Act.SEND, rank, peer, -1, size_bytes, stream, priority, label), after)

    def collective(self, act: Act, group: Sequence[int], size_bytes: float, *, after: Sequence[int] = (),
                   stream: int = 1, priority: int = 0, label: str = "collective", repeats: int = 1) -> int:  # fmt: skip
        number = self._groups.setdefault(tuple(group), len(self._groups))
        return self._add((act, -1, -1, number, size_bytes, stream, priority, label), after, repeats)

    def _add(self, row: tuple[int, int, int, int, float, int, int, str], after: Sequence[int], repeats: int = 1) -> int:
        self._rows.append(row)
        self._deps.append(list(after))
        self._repeats.append(repeats)
        return len(self._rows) - 1

    def step(self, flops: float = 0.0) -> Step:
        labels = tuple(dict.fromkeys(row[7] for row in self._rows))
        number = {label: index for index, label in enumerate(labels)}
        act, rank, peer, group, amount, stream, priority, label = (
            zip(*self._rows, strict=True) if self._rows else [()] * 8
        )
        step = Step(
            ranks=self.ranks,
            act=np.array(act, np.int8),
            rank=np.array(rank, np.int32),
            peer=np.array(peer, np.int32),
            group=np.array(group, np.int32),
            amount=np.array(amount, np.float64),
            stream=np.array(stream, np.int16),
            priority=np.array(priority, np.int32),
            label=np.array([number[text] for text in label], np.int32),
            labels=labels,
            groups=tuple(np.array(members, np.int32) for members in self._groups),
            dep_start=np.cumsum([0, *map(len, self._deps)]).astype(np.int64),
            dep=np.array([task for after in self._deps for task in after], np.int32),
            streams=self.streams,
            flops=flops,
            repeats=np.array(self._repeats, np.int32),
        )
        step.check()
        return step
