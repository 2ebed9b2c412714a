"""A trace as a file for chrome://tracing or ui.perfetto.dev: what ran where and when, and how full the hot links were.

GPUs are processes with a thread for each stream. The network is one process: a thread for each host that sends, and
further ones where several of its transfers run at once, because what stands on one thread must not overlap.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.sim.trace import Trace
from ropewalk.task import Kind

Event = dict[str, Any]
INT = NDArray[np.int64]

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
    # Whole nanoseconds, which is what viewers count in: rounding first keeps tasks that touch from overlapping.
    start, end = _nanoseconds(trace.start), _nanoseconds(trace.end)
    shown = np.lexsort((np.arange(trace.graph.tasks), start))[: max(most, 0)]
    kind = trace.graph.kind[shown]
    events = [
        *_streams(trace, shown[kind == Kind.COMPUTE], start, end),
        *_transfers(trace, shown[kind == Kind.TRANSFER], start, end),
        *_markers(trace, shown[kind == Kind.MARKER], start),
    ]
    about: dict[str, Any] = {"fabric": trace.routes.fabric.name, "tasks": trace.graph.tasks, "shown": len(shown)}
    last = None
    if len(shown) < trace.graph.tasks:
        last = int(end[shown].max(initial=0))
        about["note"] = f"only the {len(shown)} tasks that start first of {trace.graph.tasks} are shown"
        events.append(
            {"ph": "i", "s": "g", "name": about["note"], "pid": NETWORK, "tid": 0, "ts": last / 1000}
        )  # fmt: skip
    events += _utilisation(trace, last)
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    return f'{{"displayTimeUnit": "ms", "otherData": {json.dumps(about)}, "traceEvents": [\n{lines}\n]}}\n'


def _nanoseconds(seconds: NDArray[np.float64]) -> INT:
    return np.asarray(np.rint(seconds * 1e9), np.int64)


def _streams(trace: Trace, tasks: INT, start: INT, end: INT) -> Iterator[Event]:
    graph = trace.graph
    for gpu in np.unique(graph.place[tasks]).tolist():
        yield from _process(gpu + 1, f"gpu {gpu}")
    threads = np.unique(np.column_stack([graph.place[tasks], graph.stream[tasks]]), axis=0)
    for gpu, stream in threads.tolist():
        yield _thread(gpu + 1, stream, f"stream {stream}")
    for task in tasks.tolist():
        args = {"task": task, "priority": int(graph.priority[task])}
        yield _slice(trace, task, int(graph.place[task]) + 1, int(graph.stream[task]), start, end, args)


def _transfers(trace: Trace, tasks: INT, start: INT, end: INT) -> Iterator[Event]:
    graph, fabric = trace.graph, trace.routes.fabric
    if len(tasks):
        yield from _process(NETWORK, "network")
    thread = 0
    for host in np.unique(graph.place[tasks]).tolist():
        mine = tasks[graph.place[tasks] == host]
        lane = _lanes(start[mine], end[mine])
        for number in range(int(lane.max()) + 1):
            name = fabric.node_names[host]
            yield _thread(NETWORK, thread + number, name if number == 0 else f"{name} ({number + 1})")
        for task, place in zip(mine.tolist(), lane.tolist(), strict=True):
            link = int(trace.bound_by[task])
            args = {
                "task": task,
                "bytes": float(graph.amount[task]),
                "to": fabric.node_names[graph.peer[task]],
                "bottleneck": fabric.link_name(link) if link >= 0 else None,
                "priority": int(graph.priority[task]),
            }
            yield _slice(trace, task, NETWORK, thread + place, start, end, args)
        thread += int(lane.max()) + 1


def _markers(trace: Trace, tasks: INT, start: INT) -> Iterator[Event]:
    if len(tasks):
        yield from _process(MARKS, "markers")
        yield _thread(MARKS, 0, "markers")
    for task in tasks.tolist():
        yield {
            "ph": "i", "s": "t", "name": trace.graph.name_of(task), "cat": "marker", "pid": MARKS, "tid": 0,
            "ts": int(start[task]) / 1000, "args": {"task": task},
        }  # fmt: skip


def _lanes(start: INT, end: INT) -> INT:
    """The lowest lane that is free when each interval starts; intervals come in order of their start."""
    lane = np.zeros(len(start), np.int64)
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    lanes = 0
    for number, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane[number] = heapq.heappop(free)
        else:
            lane[number] = lanes
            lanes += 1
        heapq.heappush(busy, (stop, int(lane[number])))
    return lane


def _utilisation(trace: Trace, last: int | None) -> Iterator[Event]:
    """Counter tracks of the hottest links, in percent of their capacity, up to `last` nanoseconds."""
    if trace.rate is None or trace.rate_time is None or trace.rate_pair is None or trace.rate_class is None:
        return
    fabric = trace.routes.fabric
    start, used, share = trace.routes.usage()
    for link in np.argsort(-trace.link_utilisation, kind="stable")[:HOT_LINKS].tolist():
        entry = np.flatnonzero(used == link)
        weight = np.zeros(trace.routes.pairs)
        weight[np.searchsorted(start, entry, side="right") - 1] = share[entry]
        mine = np.flatnonzero(weight[trace.rate_pair] > 0)
        if not len(mine):
            continue
        instants, level = _step_curve(
            _nanoseconds(trace.rate_time[mine]), trace.rate_class[mine], (trace.rate * weight[trace.rate_pair])[mine]
        )
        percent = np.round(np.maximum(level, 0.0) / fabric.bandwidth[link] * 100, 6)
        name = f"{fabric.link_name(link)} %"
        for time, value in zip(instants.tolist(), percent.tolist(), strict=True):
            if last is None or time <= last:
                yield {"ph": "C", "name": name, "pid": NETWORK, "ts": time / 1000, "args": {"utilisation": value}}


def _step_curve(time: INT, flow: NDArray[np.int32], rate: NDArray[np.float64]) -> tuple[INT, NDArray[np.float64]]:
    """The sum of the rates of all flows from each instant on; later entries of a flow replace its earlier ones."""
    order = np.argsort(flow, kind="stable")
    change = np.diff(rate[order], prepend=0.0)
    first = np.diff(flow[order], prepend=-1) != 0
    change[first] = rate[order][first]
    instants, index = np.unique(time[order], return_inverse=True)
    return instants, np.cumsum(np.bincount(index, weights=change, minlength=len(instants)))


def _slice(trace: Trace, task: int, pid: int, tid: int, start: INT, end: INT, args: Event) -> Event:
    kind = Kind(int(trace.graph.kind[task])).name.lower()
    begin, stop = int(start[task]), int(end[task])
    return {
        "ph": "X", "name": trace.graph.name_of(task), "cat": kind, "pid": pid, "tid": tid,
        "ts": begin / 1000, "dur": (stop - begin) / 1000, "args": args,
    }  # fmt: skip


def _process(pid: int, name: str) -> Iterable[Event]:
    yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}


def _thread(pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}
