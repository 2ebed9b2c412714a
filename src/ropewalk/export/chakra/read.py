"""A Chakra execution trace as a step: traces that we wrote, exactly, and those of other tools.

Metadata nodes are passed through: who waits for one waits for what it waits for. Both sorts of dependencies delay a
node. A broadcast or reduce starts or ends at the first rank of its group, as the format names no root. Work on the CPU
has a stream of its own. Anything that a simulator would have to guess is a finding, and all findings come in one error.
"""

from __future__ import annotations

import heapq
from pathlib import Path

import numpy as np

from ropewalk.export.chakra import names
from ropewalk.export.chakra.load import Loaded, TraceFindings, load
from ropewalk.export.chakra.match import Matched, MatchedOperation, Matcher, Place
from ropewalk.export.chakra.price import NodeSpeeds
from ropewalk.export.chakra.schema import NodeType
from ropewalk.task.step import Act, Step

FOREIGN_STREAMS = ("compute", "communication", "cpu")


def read_chakra(prefix: str | Path, *, peak_flops: float | None = None, memory_bandwidth: float | None = None) -> Step:
    """The step that PREFIX.<rank>.et and PREFIX.json describe.

    Traces with numbers of operations instead of durations need the speeds of a device: `peak_flops` per second and
    `memory_bandwidth` in bytes/s.
    """
    target = Path(prefix)
    findings = TraceFindings(target)
    loaded = load(target, findings)
    findings.raise_if_any()  # what is missing from files would be reported once more by everyone who waits for it
    matched = Matcher(loaded, NodeSpeeds(peak_flops, memory_bandwidth), findings).match()
    waits = _waits(loaded, matched, findings)
    order = _sorted(matched.operations, waits, findings)
    findings.raise_if_any()
    step = _step(loaded, matched, waits, order)
    step.check()
    return step


def _waits(loaded: Loaded, matched: Matched, findings: TraceFindings) -> list[list[int]]:
    """What every operation waits for, as operations."""
    resolved = _Resolver(loaded, matched, findings)
    found = []
    for number, operation in enumerate(matched.operations):
        waits = {waited for place in operation.places for waited in resolved.behind(place)}
        found.append(sorted(waits - {number}))
    return found


class _Resolver:
    """Follows waits through nodes that are no operations of their own: metadata and receives."""

    def __init__(self, loaded: Loaded, matched: Matched, findings: TraceFindings) -> None:
        self.nodes, self.of_node, self.findings = loaded.nodes, matched.of_node, findings

    def behind(self, place: Place) -> set[int]:
        """The operations that a node waits for."""
        waits: set[int] = set()
        stack, seen = [place], {place}
        while stack:
            rank, number = stack.pop()
            node = self.nodes[rank][number]
            for waited in (*node.data_deps, *node.ctrl_deps):
                if waited not in self.nodes[rank]:
                    self.findings.add(
                        f"rank {rank}: node {number} ({node.name}) waits for node {waited}, which is not there"
                    )
                    continue
                if (rank, waited) in self.of_node:
                    waits.add(self.of_node[rank, waited])
                if self._is_passed_through(rank, waited) and (rank, waited) not in seen:
                    seen.add((rank, waited))
                    stack.append((rank, waited))
        return waits

    def _is_passed_through(self, rank: int, number: int) -> bool:
        node = self.nodes[rank][number]
        if node.type == NodeType.COMM_RECV:
            return not (node.attributes.get(names.RENDEZVOUS) or node.attributes.get(names.IMPLIED))
        return node.type == NodeType.METADATA


def _sorted(operations: list[MatchedOperation], waits: list[list[int]], findings: TraceFindings) -> list[int]:
    """An order in which every operation comes after those it waits for; otherwise as written, or by number."""
    following: list[list[int]] = [[] for _ in operations]
    left = [len(waited) for waited in waits]
    for number, waited in enumerate(waits):
        for before in waited:
            following[before].append(number)
    key = [_place_in_step(operation) for operation in operations]
    ready = [(key[number], number) for number, count in enumerate(left) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        number = heapq.heappop(ready)[1]
        order.append(number)
        for later in following[number]:
            left[later] -= 1
            if not left[later]:
                heapq.heappush(ready, (key[later], later))
    if len(order) < len(operations):
        stuck = [operations[number] for number, count in enumerate(left) if count]
        shown = ", ".join(f"node {one.first.id} of rank {one.places[0][0]} ({one.first.name})" for one in stuck[:4])
        findings.add(f"{len(stuck)} operations form a dependency cycle, or wait for one: {shown}")
    return order


def _place_in_step(operation: MatchedOperation) -> tuple[int, int, int]:
    said = operation.first.attributes.get(names.OPERATION)
    return (said if isinstance(said, int) else -1, operation.first.id, operation.places[0][0])


def _step(loaded: Loaded, matched: Matched, waits: list[list[int]], order: list[int]) -> Step:
    operations = [matched.operations[number] for number in order]
    place = np.zeros(len(order), np.int32)
    place[order] = np.arange(len(order))
    deps = [np.sort(place[waits[number]]) for number in order]
    labels = tuple(dict.fromkeys(operation.first.name for operation in operations))
    label = {text: number for number, text in enumerate(labels)}
    streams = loaded.about.get(names.STREAMS)
    flops = loaded.about.get(names.FLOPS)
    return Step(
        ranks=loaded.ranks,
        act=np.array([operation.act for operation in operations], np.int8),
        rank=np.array([operation.rank for operation in operations], np.int32),
        peer=np.array([operation.peer for operation in operations], np.int32),
        group=np.array([operation.group for operation in operations], np.int32),
        amount=np.array([operation.amount for operation in operations], np.float64),
        stream=np.array([_stream(operation) for operation in operations], np.int16),
        priority=np.array([operation.first.whole(names.PRIORITY) for operation in operations], np.int32),
        label=np.array([label[operation.first.name] for operation in operations], np.int32),
        labels=labels,
        groups=tuple(matched.groups),
        dep_start=np.cumsum([0, *map(len, deps)]).astype(np.int64),
        dep=np.concatenate([*deps, np.zeros(0, np.int32)]).astype(np.int32),
        streams=tuple(map(str, streams)) if isinstance(streams, list) else FOREIGN_STREAMS,
        flops=flops if isinstance(flops, float) else 0.0,
        phases={
            name.removeprefix(names.PHASE): value
            for name, value in loaded.about.items()
            if name.startswith(names.PHASE) and isinstance(value, float)
        },
        repeats=np.array([operation.first.whole(names.REPEATS, 1) for operation in operations], np.int32),
    )


def _stream(operation: MatchedOperation) -> int:
    on_cpu = operation.act is Act.COMPUTE and bool(operation.first.attributes.get("is_cpu_op"))
    usual = 0 if operation.act is Act.COMPUTE else 1
    return operation.first.whole(names.STREAM, 2 if on_cpu else usual)
