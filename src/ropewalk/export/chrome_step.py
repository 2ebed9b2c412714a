"""A training step as a file for chrome://tracing or ui.perfetto.dev.

Every rank is a process with a thread for each of its streams (compute, tensor, data, pipeline, …), on which operations
stand as ranks see them: a collective on all its members. The network is one more process: what each host sends,
under the name of the operation it is sent for, and a track of the utilisation of each hot link.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.export.chrome import NETWORK, hot_links
from ropewalk.export.trace_events import Event, counters, lanes, nanoseconds, process, thread
from ropewalk.sim.step import StepRun
from ropewalk.task import TaskKind
from ropewalk.task.step import COMPUTE_STREAM, Act

MOST_EVENTS = 200_000
HOT_LINKS = 8
LANES = 1_000
"""Threads kept for each stream: operations of one stream that run at once stand on further ones."""


def chrome_step_trace(run: StepRun, *, names: Sequence[str] | None = None, most: int = MOST_EVENTS) -> str:
    """The step as JSON in the trace-event format, names of processes and threads first, then events by time.

    `names` are those of the ranks. Of more than `most` events, those that start first are kept, operations of ranks
    before transfers; `otherData` says so.
    """
    about: dict[str, Any] = {"fabric": run.trace.routes.fabric.name, "ranks": run.step.ranks}
    about["utilisation"] = "exact" if run.trace.rate is not None else "from the mean rate of each transfer"
    notes: list[str] = []
    events = _operations(run, names or [f"gpu {rank}" for rank in range(run.step.ranks)], most, notes)
    left = max(most - sum(event["ph"] == "X" for event in events), 0)
    events += _transfers(run, left, notes)
    events += counters(run.trace, hot_links(run.trace, HOT_LINKS), NETWORK)
    if notes:
        about["notes"] = notes
    events.sort(key=lambda event: (event["ph"] != "M", event.get("ts", 0.0)))
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    return f'{{"displayTimeUnit": "ms", "otherData": {json.dumps(about)}, "traceEvents": [\n{lines}\n]}}\n'


def _operations(run: StepRun, names: Sequence[str], most: int, notes: list[str]) -> list[Event]:
    step, occupied = run.step, run.occupied
    stream = np.where(step.act == Act.COMPUTE, COMPUTE_STREAM, step.stream)[occupied.operation].astype(np.int64)
    start, end = nanoseconds(occupied.start), nanoseconds(occupied.end)
    shown = np.lexsort((occupied.operation, occupied.rank, start))[: max(most, 0)]
    if len(shown) < len(start):
        notes.append(f"only the {len(shown)} earliest operations of {len(start)} are shown")
    order = shown[np.lexsort((start[shown], stream[shown], occupied.rank[shown]))]
    key = occupied.rank[order] * len(step.streams) + stream[order]
    events: list[Event] = []
    for rank in np.unique(occupied.rank[order]).tolist():
        events += process(rank + 1, names[rank])
    for part in np.split(order, np.flatnonzero(np.diff(key)) + 1) if len(order) else []:
        rank, number = int(occupied.rank[part[0]]), int(stream[part[0]])
        lane = lanes(start[part], end[part])
        events += _threads(rank + 1, number * LANES, step.streams[number], int(lane.max()) + 1)
        for entry, place in zip(part.tolist(), lane.tolist(), strict=True):
            operation = int(occupied.operation[entry])
            events.append(
                {
                    "ph": "X", "name": step.name_of(operation), "cat": step.streams[number], "pid": rank + 1,
                    "tid": number * LANES + place, "ts": int(start[entry]) / 1000,
                    "dur": int(end[entry] - start[entry]) / 1000, "args": _arguments(run, operation),
                }
            )  # fmt: skip
    return events


def _arguments(run: StepRun, operation: int) -> Event:
    step, act = run.step, Act(int(run.step.act[operation]))
    found: Event = {"operation": operation, "act": act.name.lower()}
    if act is Act.SEND:
        found |= {"from": int(step.rank[operation]), "to": int(step.peer[operation])}
    if act is not Act.COMPUTE:
        found["bytes"] = float(step.amount[operation])
    if act.is_collective:
        found["ranks"] = len(step.groups[step.group[operation]])
    return found


def _transfers(run: StepRun, most: int, notes: list[str]) -> Iterator[Event]:
    """What each host sends; a host that sends several things at once has several threads."""
    graph, fabric = run.trace.graph, run.trace.routes.fabric
    start, end = nanoseconds(run.trace.start), nanoseconds(run.trace.end)
    task: Ints = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    shown = task[np.lexsort((task, start[task]))][:most]
    if len(shown) < len(task):
        notes.append(f"only the {len(shown)} earliest transfers of {len(task)} are shown")
    if fabric.links:
        yield from process(NETWORK, "network")
    first = 0
    by_host = shown[np.argsort(graph.place[shown], kind="stable")]
    for part in np.split(by_host, np.flatnonzero(np.diff(graph.place[by_host])) + 1) if len(by_host) else []:
        lane = lanes(start[part], end[part])
        used = int(lane.max()) + 1
        yield from _threads(NETWORK, first, f"{fabric.node_names[graph.place[part[0]]]} sends", used)
        for one, place in zip(part.tolist(), lane.tolist(), strict=True):
            operation, link = int(run.operation_of_task[one]), int(run.trace.bound_by[one])
            yield {
                "ph": "X", "name": run.step.name_of(operation) if operation >= 0 else graph.name_of(one),
                "cat": "transfer", "pid": NETWORK, "tid": first + place, "ts": int(start[one]) / 1000,
                "dur": int(end[one] - start[one]) / 1000,
                "args": {
                    "task": one, "bytes": float(graph.amount[one]), "to": fabric.node_names[graph.peer[one]],
                    "bottleneck": fabric.link_name(link) if link >= 0 else None,
                },
            }  # fmt: skip
        first += used


def _threads(pid: int, first: int, name: str, used: int) -> Iterator[Event]:
    for number in range(used):
        yield thread(pid, first + number, name if number == 0 else f"{name} ({number + 1})")
        yield {
            "ph": "M", "name": "thread_sort_index", "pid": pid, "tid": first + number,
            "args": {"sort_index": first + number},
        }  # fmt: skip
