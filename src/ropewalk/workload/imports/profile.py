"""Profiles of pipeline planners (DAPPLE, PipeDream) as workloads.

A profile is a text file with a line for every layer and one for every edge, in any order:

    node1 -- Conv2d -- forward_compute_time=3.4, backward_compute_time=6.8, activation_size=384.0, parameter_size=68.0
            node1 -- node2

Times are milliseconds, sizes bytes; an activation may be a list, `[384; 128]`. An edge begins with a space or a tab.
PipeDream writes ` -- stage_id=0` behind layers it has placed, which is not read. As both planners do, layers called
`Input…` that read nothing are left out (they are the loading of data), and so are `__getitem__…` that nothing reads.
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from ropewalk.documents import read_text
from ropewalk.documents.numbers import finite
from ropewalk.errors import Findings, WorkloadError
from ropewalk.workload.opaque import Measured
from ropewalk.workload.workload import Layer, Workload

FLOAT_BYTES = 4
"""Profiles give bytes of float32 tensors; layers count elements."""

BATCH_IN_NAME = re.compile("pbs-([0-9]{1,9})")
EDGE = re.compile(r"\s+(\S+) -- (\S+)\s*")
FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
NUMBER = r"[0-9.eE+-]+"


@dataclass
class ProfiledLayer:
    """A layer as the profile has it."""

    key: str
    name: str
    forward_ms: float
    backward_ms: float
    activation_bytes: float
    parameter_bytes: float
    reads: dict[str, int] = field(default_factory=dict)
    """The layers that it reads, and the line that says so."""


def from_profile(path: str | Path, *, batch: int | None = None, name: str | None = None) -> Workload:
    """The workload of a profile, its layers `Measured`.

    `batch` is the micro-batch that was profiled; it is read from a name such as `vgg-19-pbs-32.txt`. `at_batch` scales
    times and activations in proportion to the micro-batch: a simple assumption, which is generous to small ones.
    """
    file = Path(path)
    subject = f"profile {path}"
    text = read_text(file, subject, WorkloadError)
    return workload_of(text, subject, name or file.stem, _batch(file, batch, subject))


def workload_of(text: str, subject: str, name: str, batch: int) -> Workload:
    """The workload that the text of a profile describes."""
    records = _ordered(_kept(_records(text, subject)), subject)
    numbers = {record.key: number for number, record in enumerate(records)}
    layers = tuple(
        Layer(
            record.name,
            (
                Measured(
                    record.forward_ms / 1e3, record.backward_ms / 1e3, round(record.parameter_bytes / FLOAT_BYTES),
                    record.activation_bytes,
                ),
            ),
            round(record.activation_bytes / FLOAT_BYTES),
            tuple(sorted(numbers[key] for key in record.reads)),
        )
        for record in records
    )  # fmt: skip
    return _scaled(Workload(name, layers, batch, source=subject), batch)


def _scaled(workload: Workload, to: int) -> Workload:
    """Times and activations in proportion to the micro-batch, parameters as they are."""
    ratio = to / workload.batch
    layers = [
        replace(
            layer,
            operators=tuple(
                replace(op, forward_s=op.forward_s * ratio, backward_s=op.backward_s * ratio, saved=op.saved * ratio)
                for op in layer.operators
                if isinstance(op, Measured)
            ),
            output_elements=round(layer.output_elements * ratio),
        )
        for layer in workload.layers
    ]
    return replace(workload, layers=tuple(layers), batch=to, resize=lambda other: _scaled(workload, other))


def _batch(file: Path, batch: int | None, subject: str) -> int:
    told = BATCH_IN_NAME.search(file.stem)
    if told and batch is not None and int(told[1]) != batch:
        raise WorkloadError(
            f"{subject} was measured with {told[1]} samples according to its name, not {batch}: read it as is, then "
            "scale it "
            f"with at_batch({batch})"
        )
    if batch is None and not told:
        raise WorkloadError(f"{subject} does not contain its batch size: give batch, or name the file …-pbs-32.txt")
    samples = batch if batch is not None else int(told[1]) if told else 0
    if samples < 1:
        raise WorkloadError(f"{subject} was measured with {samples} samples: give 1 or more")
    return samples


def _records(text: str, subject: str) -> dict[str, ProfiledLayer]:
    findings = Findings(WorkloadError, subject)
    records: dict[str, ProfiledLayer] = {}
    edges: list[tuple[int, str, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        edge = EDGE.fullmatch(line)
        if edge:
            edges.append((number, edge[1], edge[2]))
            continue
        record = _record(line, number, findings)
        if record is not None and record.key in records:
            findings.add(f"line {number}: {record.key} is listed twice: remove one of the two")
        elif record is not None:
            records[record.key] = record
    for number, source, target in edges:
        strangers = [key for key in (source, target) if key not in records]
        if not strangers:
            records[target].reads.setdefault(source, number)
        elif not findings:
            findings.add(f"line {number}: edge to or from {strangers[0]}, which has no line: add the layer")
    if not records and not findings:
        findings.add("it has no layers: write lines such as node1 -- name -- forward_compute_time=1.0, …")
    findings.raise_if_any()
    return records


def _record(line: str, number: int, findings: Findings) -> ProfiledLayer | None:
    parts = re.split(r"\s+--\s+", line.strip())
    figures = next((part for part in parts if part.startswith("forward_compute_time")), None)
    if figures is None or len(parts) < 3:
        findings.add(f"line {number}: neither a layer nor an edge: write node1 -- name -- forward_compute_time=1.0, …")
        return None
    values: list[float] = []
    for key in FIELDS:
        found = re.search(rf"{key}=({NUMBER}|\[[^\]]*\])", figures)
        value = _sum(found[1]) if found else None
        if value is None or not 0 <= value < float("inf"):
            findings.add(f"line {number}: {key} is missing or not positive: write {key}=1.0")
        else:
            values.append(value)
    if len(values) < len(FIELDS):
        return None
    name = " -- ".join(parts[1 : parts.index(figures)])
    forward_ms, backward_ms, activation, parameters = values
    return ProfiledLayer(parts[0], " ".join(name.split()), forward_ms, backward_ms, activation, parameters)


def _sum(text: str) -> float | None:
    """A number, or the sum of a list of numbers."""
    try:
        return sum(finite(part.strip()) for part in re.split(r"[;,]", text.strip("[]")) if part.strip())
    except ValueError:
        return None


def _kept(records: dict[str, ProfiledLayer]) -> dict[str, ProfiledLayer]:
    """Without the loading of data, and without results that nothing reads."""
    read = {key for record in records.values() for key in record.reads}
    gone = {
        key
        for key, record in records.items()
        if (record.name.startswith("Input") and not record.reads)
        or (record.name.startswith("__getitem__") and key not in read)
    }
    left = {key: record for key, record in records.items() if key not in gone}
    for record in left.values():
        record.reads = {key: line for key, line in record.reads.items() if key not in gone}
    return left or records


def _ordered(records: dict[str, ProfiledLayer], subject: str) -> list[ProfiledLayer]:
    """Layers behind those they read, otherwise by the number in their key, which is the order in which they run."""
    waiting = {key: len(record.reads) for key, record in records.items()}
    readers: dict[str, list[str]] = {key: [] for key in records}
    for key, record in records.items():
        for source in record.reads:
            readers[source].append(key)
    ready = [(_number(key), key) for key, count in waiting.items() if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, key = heapq.heappop(ready)
        order.append(records[key])
        for reader in readers[key]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (_number(reader), reader))
    if len(order) < len(records):
        source, target, layers = _circle(records, {key for key, count in waiting.items() if count})
        who = f"{layers} layers form a dependency cycle" if layers > 1 else "a layer waits for itself"
        raise WorkloadError(
            f"{subject}: line {records[target].reads[source]}: with the edge {source} -- {target} {who}: remove an edge"
        )
    return order


def _circle(records: dict[str, ProfiledLayer], stuck: set[str]) -> tuple[str, str, int]:
    """The edge of a circle that leads furthest back, and how many layers the circle has.

    Whoever is stuck reads somebody who is, so going from reader to read ends in a circle.
    """
    seen: dict[str, None] = {}
    at = min(stuck, key=_number)
    while at not in seen:
        seen[at] = None
        at = next(key for key in records[at].reads if key in stuck)
    walked = list(seen)
    circle = walked[walked.index(at) :][::-1]
    edges = list(zip(circle, [*circle[1:], circle[0]], strict=True))
    source, target = max(edges, key=lambda edge: _number(edge[0]) - _number(edge[1]))
    return source, target, len(circle)


def _number(key: str) -> int:
    digits = re.search("[0-9]{1,18}$", key)
    return int(digits[0]) if digits else 0
