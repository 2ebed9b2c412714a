"""Task graphs as people write them: rows with names, units and `after`, in any order."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ropewalk import units
from ropewalk.errors import Findings, GraphError, UnitError
from ropewalk.fabric import Fabric
from ropewalk.task.graph import Sketch, TaskGraph, TaskKind
from ropewalk.task.plausibility import unit_slips

KEYS = {
    TaskKind.COMPUTE: ("name", "compute", "gpu", "stream", "priority", "after"),
    TaskKind.TRANSFER: ("name", "transfer", "from", "to", "priority", "start_up", "rate_cap", "after"),
    TaskKind.MARKER: ("name", "marker", "after"),
}
"""The keys of a row of each kind; the kind is the one whose own key is there."""

MOST_HOSTS = 2**31
"""Host and gpu numbers are 32-bit."""

KIND_OF = {"compute": TaskKind.COMPUTE, "transfer": TaskKind.TRANSFER, "marker": TaskKind.MARKER}


@dataclass
class TaskRow:
    """One task as read; what could not be read has its default and a finding."""

    where: str
    kind: TaskKind
    name: str | None
    after: list[str]
    place: int = -1
    peer: int = -1
    stream: int = 0
    amount: float = 0.0
    priority: int = 0
    start_up: float = 0.0
    rate_cap: float = float("inf")


def graph_of(document: object, subject: str, fabric: Fabric | None = None) -> TaskGraph:
    """Turn what a YAML or JSON parser returned into a task graph; all mistakes are raised together.

    >>> rows = [{"transfer": "1MB", "from": 0, "to": 1, "after": "f"}, {"name": "f", "compute": "2ms", "gpu": 0}]
    >>> graph_of({"tasks": rows}, "example").amount.tolist()
    [0.002, 1000000.0]
    """
    findings = Findings(GraphError, subject)
    rows = [
        row
        for number, entry in enumerate(_entries(document, findings))
        if (row := _row(entry, f"tasks[{number}]", fabric, findings)) is not None
    ]
    waits = _resolved(rows, findings)
    order = _sorted(rows, waits, findings)
    findings.raise_if_any()
    graph = _assembled([rows[number] for number in order], [waits[number] for number in order], order)
    for slip in unit_slips(graph, fabric, lambda task: f"{rows[order[task]].where}:"):
        findings.add(slip)
    findings.raise_if_any()
    return graph


def _entries(document: object, findings: Findings) -> list[Any]:
    if not isinstance(document, dict):
        findings.add("is not a mapping: begin with the key tasks")
    elif not isinstance(document.get("tasks"), list) or not document["tasks"]:
        findings.add("has no tasks: list them under the key tasks")
    else:
        for key in document.keys() - {"tasks", "description"}:
            findings.add(f"{key}: unknown key: use tasks, description")
        return list(document["tasks"])
    return []


@dataclass
class _Reader:
    """Reads the values of one row."""

    entry: dict[str, Any]
    where: str
    fabric: Fabric | None
    findings: Findings

    def fault(self, text: str) -> None:
        self.findings.add(f"{self.where}: {text}")

    def quantity(self, key: str, read: Callable[[str], float], default: float) -> float:
        value = self.entry.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            self.fault(f"{key} is {value!r}: write a number with its unit")
            return default
        try:
            return float(read(str(value)))
        except UnitError as problem:
            self.fault(f"{key}: {problem}")
        except OverflowError:
            self.fault(f"{key} is larger than any number: check its exponent")
        return default

    def whole(self, key: str, least: int, most: int, default: int) -> int:
        value = self.entry.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.fault(f"{key} is {value!r}: write a whole number from {least} to {most}")
            return default
        return value

    def host(self, key: str, remedy: str, numbers: int) -> int:
        """A host by its number, or by its name on the fabric."""
        value = self.entry.get(key)
        if value is None:
            self.fault(f"has no {key}: {remedy}")
        elif isinstance(value, int) and not isinstance(value, bool):
            if 0 <= value < numbers:
                return value
            where = f" on {self.fabric.name}" if self.fabric is not None else ""
            self.fault(f"{key} is {value}: write a number from 0 to {numbers - 1}{where}")
        elif self.fabric is None:
            self.fault(f"{key} is {value!r}: give the fabric that has this host, or write the number of the host")
        elif value in self.fabric.node_names[: self.fabric.hosts]:
            return self.fabric.node_names.index(str(value))
        else:
            self.fault(f"{key} is {value!r}, which is not a host of {self.fabric.name}: use its names or numbers")
        return -1

    def name(self) -> str | None:
        value = self.entry.get("name")
        return None if value is None else self.text("name", value)

    def after(self) -> list[str]:
        value = self.entry.get("after", [])
        names = value if isinstance(value, list) else [value]
        return list(dict.fromkeys(name for item in names if (name := self.text("after", item)) is not None))

    def text(self, key: str, value: object) -> str | None:
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or not value:
            self.fault(f"{key} has {value!r}, which is not a name: write it in quotes")
            return None
        return value


def _row(entry: object, where: str, fabric: Fabric | None, findings: Findings) -> TaskRow | None:
    if not isinstance(entry, dict):
        findings.add(f"{where}: is not a mapping: write keys such as name, compute, gpu, after")
        return None
    label = entry.get("name")
    reader = _Reader(entry, where if label is None else f"{where} ({label})", fabric, findings)
    kinds = [key for key in KIND_OF if key in entry]
    if len(kinds) != 1:
        given = " and ".join(kinds) or "neither compute, transfer nor marker"
        reader.fault(f"has {given}: a task is exactly one of these")
        # Its name is kept, so that the tasks that wait for it are not reported as well.
        return TaskRow(reader.where, TaskKind.MARKER, reader.name(), [])
    kind = KIND_OF[kinds[0]]
    for key in entry:
        if key not in KEYS[kind]:
            reader.fault(f"{key}: unknown key of a {kinds[0]} task: use {', '.join(KEYS[kind])}")
    row = TaskRow(reader.where, kind, reader.name(), reader.after())
    _READ[kind](reader, row)
    return row


def _read_compute(reader: _Reader, row: TaskRow) -> None:
    row.amount = _required(reader, "compute", units.seconds, "2ms")
    # A host may hold several GPUs, so the fabric does not bound their numbers.
    row.place = reader.host("gpu", "name the gpu", MOST_HOSTS)
    row.stream = reader.whole("stream", 0, 2**15 - 1, 0)
    row.priority = reader.whole("priority", -(2**31), 2**31 - 1, 0)


def _read_transfer(reader: _Reader, row: TaskRow) -> None:
    row.amount = _required(reader, "transfer", units.size, "25MB")
    hosts = MOST_HOSTS if reader.fabric is None else reader.fabric.hosts
    row.place = reader.host("from", "name the sending host", hosts)
    row.peer = reader.host("to", "name the receiving host", hosts)
    if row.place == row.peer >= 0:
        reader.fault(f"goes from host {row.place} to itself: drop it, or make it a marker")
    row.priority = reader.whole("priority", -(2**31), 2**31 - 1, 0)
    row.start_up = reader.quantity("start_up", units.seconds, 0.0)
    row.rate_cap = reader.quantity("rate_cap", units.bandwidth, float("inf"))


def _read_marker(reader: _Reader, row: TaskRow) -> None:
    if reader.entry["marker"] is not True:
        reader.fault(f"marker is {reader.entry['marker']!r}: write marker: true")


_READ: dict[TaskKind, Callable[[_Reader, TaskRow], None]] = {
    TaskKind.COMPUTE: _read_compute,
    TaskKind.TRANSFER: _read_transfer,
    TaskKind.MARKER: _read_marker,
}


def _required(reader: _Reader, key: str, read: Callable[[str], float], example: str) -> float:
    if reader.entry[key] is None:
        reader.fault(f"{key} is empty: write an amount such as {example}")
    return reader.quantity(key, read, 0.0)


def _resolved(rows: list[TaskRow], findings: Findings) -> list[list[int]]:
    """The rows that each row waits for."""
    number: dict[str, int] = {}
    for at, row in enumerate(rows):
        if row.name is not None and row.name in number:
            first = rows[number[row.name]].where.split(" ")[0]
            findings.add(f"{row.where}: has the same name as {first}: give every task its own name")
        elif row.name is not None:
            number[row.name] = at
    waits: list[list[int]] = []
    for row in rows:
        for name in row.after:
            if name not in number:
                findings.add(f"{row.where}: waits for {name!r}, which is not a task: correct the name or add the task")
        waits.append([number[name] for name in row.after if name in number])
    return waits


def _sorted(rows: list[TaskRow], waits: list[list[int]], findings: Findings) -> list[int]:
    """The rows so that each comes after those it waits for, and otherwise as written; circles are findings."""
    followers: list[list[int]] = [[] for _ in rows]
    for at, waited in enumerate(waits):
        for before in waited:
            followers[before].append(at)
    missing = [len(waited) for waited in waits]
    ready = [at for at, count in enumerate(missing) if count == 0]
    order: list[int] = []
    placed = [False] * len(rows)
    while len(order) < len(rows):
        if not ready:
            circle = _circle(waits, placed)
            steps = " -> ".join(rows[at].name or rows[at].where for at in [*circle, circle[0]])
            findings.add(f"tasks form a dependency cycle: {steps}: remove one of these from its after")
            ready = [circle[0]]  # as if it were ready, so that other circles are found as well
        at = heapq.heappop(ready)
        if placed[at]:
            continue
        placed[at] = True
        order.append(at)
        for follower in followers[at]:
            missing[follower] -= 1
            if missing[follower] == 0:
                heapq.heappush(ready, follower)
    return order


def _circle(waits: list[list[int]], placed: list[bool]) -> list[int]:
    """Follow what tasks wait for until one comes up again; every task left waits for another one left."""
    at = placed.index(False)
    seen: dict[int, int] = {}
    while at not in seen:
        seen[at] = len(seen)
        at = next(before for before in waits[at] if not placed[before])
    return list(seen)[seen[at] :][::-1]


def _assembled(rows: list[TaskRow], waits: list[list[int]], order: list[int]) -> TaskGraph:
    task = {number: at for at, number in enumerate(order)}
    sketch = Sketch()
    for row, waited in zip(rows, waits, strict=True):
        after = sorted(task[number] for number in waited)
        label = row.name or row.kind.name.lower()
        if row.kind is TaskKind.COMPUTE:
            sketch.compute(
                row.place, row.amount, after=after, stream=row.stream, priority=row.priority, label=label
            )  # fmt: skip
        elif row.kind is TaskKind.TRANSFER:
            sketch.transfer(
                row.place, row.peer, row.amount, after=after, priority=row.priority, start_up=row.start_up,
                rate_cap=row.rate_cap, label=label,
            )  # fmt: skip
        else:
            sketch.marker(after=after, label=label)
    return sketch.graph()
