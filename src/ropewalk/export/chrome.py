"""A trace as a file for chrome://tracing or ui.perfetto.dev: what ran where and when, and how full the hot links were.

GPUs are processes with a thread for each stream. The network is one process: a thread for each host that sends, and
further ones where several of its transfers run at once, because what stands on one thread must not overlap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.export.trace_events import Event, counters, lanes, nanoseconds, process, thread
from ropewalk.sim.trace import Trace
from ropewalk.task import TaskKind

NETWORK = 0
"""Process number of the network; GPU g is process g + 1."""

MARKS = 2**31 - 1
"""Process number of the markers, behind all GPUs."""

HOT_LINKS = 5
"""Links that get a track of their utilisation, where rates were recorded."""


def chrome_trace(trace: Trace, most: int = 100_000) -> str:
    """The trace as JSON in the trace-event format; of more than `most` tasks only those that start first.

    >>> import numpy as np
    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.routing import shortest
    >>> from ropewalk.task import Sketch
    >>> sketch = Sketch()
    >>> _ = sketch.transfer(0, 1, 12.5e6, label="gradient")
    >>> routes = shortest(IdealSwitch(2).build(), np.array([0]), np.array([1]))
    >>> trace = Trace(sketch.graph(), routes, np.zeros(1), np.array([1e-3]), np.zeros(1, np.int32), 1, 2)
    >>> [event["dur"] for event in json.loads(chrome_trace(trace))["traceEvents"] if event["ph"] == "X"]
    [1000.0]
    """
    start, end = nanoseconds(trace.start), nanoseconds(trace.end)
    shown = np.lexsort((np.arange(trace.graph.tasks), start))[: max(most, 0)]
    kind = trace.graph.kind[shown]
    events = [
        *_streams(trace, shown[kind == TaskKind.COMPUTE], start, end),
        *_transfers(trace, shown[kind == TaskKind.TRANSFER], start, end),
        *_markers(trace, shown[kind == TaskKind.MARKER], start),
    ]
    about: dict[str, Any] = {"fabric": trace.routes.fabric.name, "tasks": trace.graph.tasks, "shown": len(shown)}
    last = None
    if len(shown) < trace.graph.tasks:
        last = int(end[shown].max(initial=0))
        about["note"] = f"only the {len(shown)} earliest tasks of {trace.graph.tasks} are shown"
        events.append(
            {"ph": "i", "s": "g", "name": about["note"], "pid": NETWORK, "tid": 0, "ts": last / 1000}
        )  # fmt: skip
    if trace.rate is not None:
        events += counters(trace, hot_links(trace), NETWORK, last)
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    return f'{{"displayTimeUnit": "ms", "otherData": {json.dumps(about)}, "traceEvents": [\n{lines}\n]}}\n'


def hot_links(trace: Trace, most: int = HOT_LINKS) -> list[int]:
    """The most utilised links, leaving out those that nothing crossed."""
    use = trace.link_utilisation
    return [link for link in np.argsort(-use, kind="stable")[:most].tolist() if use[link] > 0]


def _streams(trace: Trace, tasks: Ints, start: Ints, end: Ints) -> Iterator[Event]:
    graph = trace.graph
    for gpu in np.unique(graph.place[tasks]).tolist():
        yield from process(gpu + 1, f"gpu {gpu}")
    threads = np.unique(np.column_stack([graph.place[tasks], graph.stream[tasks]]), axis=0)
    for gpu, stream in threads.tolist():
        yield thread(gpu + 1, stream, f"stream {stream}")
    for task in tasks.tolist():
        args = {"task": task, "priority": int(graph.priority[task])}
        yield _slice(trace, task, int(graph.place[task]) + 1, int(graph.stream[task]), start, end, args)


def _transfers(trace: Trace, tasks: Ints, start: Ints, end: Ints) -> Iterator[Event]:
    graph, fabric = trace.graph, trace.routes.fabric
    if len(tasks):
        yield from process(NETWORK, "network")
    first = 0
    for host in np.unique(graph.place[tasks]).tolist():
        mine = tasks[graph.place[tasks] == host]
        lane = lanes(start[mine], end[mine])
        for number in range(int(lane.max()) + 1):
            name = fabric.node_names[host]
            yield thread(NETWORK, first + number, name if number == 0 else f"{name} ({number + 1})")
        for task, place in zip(mine.tolist(), lane.tolist(), strict=True):
            link = int(trace.bound_by[task])
            args = {
                "task": task,
                "bytes": float(graph.amount[task]),
                "to": fabric.node_names[graph.peer[task]],
                "bottleneck": fabric.link_name(link) if link >= 0 else None,
                "priority": int(graph.priority[task]),
            }
            yield _slice(trace, task, NETWORK, first + place, start, end, args)
        first += int(lane.max()) + 1


def _markers(trace: Trace, tasks: Ints, start: Ints) -> Iterator[Event]:
    if len(tasks):
        yield from process(MARKS, "markers")
        yield thread(MARKS, 0, "markers")
    for task in tasks.tolist():
        yield {
            "ph": "i", "s": "t", "name": trace.graph.name_of(task), "cat": "marker", "pid": MARKS, "tid": 0,
            "ts": int(start[task]) / 1000, "args": {"task": task},
        }  # fmt: skip


def _slice(trace: Trace, task: int, pid: int, tid: int, start: Ints, end: Ints, args: Event) -> Event:
    kind = TaskKind(int(trace.graph.kind[task])).name.lower()
    begin, stop = int(start[task]), int(end[task])
    return {
        "ph": "X", "name": trace.graph.name_of(task), "cat": kind, "pid": pid, "tid": tid,
        "ts": begin / 1000, "dur": (stop - begin) / 1000, "args": args,
    }  # fmt: skip
