"""Pieces of the trace-event format of Chrome: processes and threads with names, lanes for what overlaps, counters."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.sim.trace import Trace
from ropewalk.task import TaskKind

Event = dict[str, Any]

MOST_INSTANTS = 2_000
"""Points of a counter that is drawn from mean rates; longer ones are averaged over this many equal spans."""


def nanoseconds(seconds: Floats) -> Ints:
    """Whole nanoseconds, which is what viewers count in: rounding first keeps tasks that touch from overlapping."""
    return np.asarray(np.rint(seconds * 1e9), np.int64)


def process(pid: int, name: str) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}


def thread(pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}


def lanes(start: Ints, end: Ints) -> Ints:
    """The lowest lane that is free when each interval starts; intervals come in order of their start."""
    lane = np.zeros(len(start), np.int64)
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    used = 0
    for number, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane[number] = heapq.heappop(free)
        else:
            lane[number] = used
            used += 1
        heapq.heappush(busy, (stop, int(lane[number])))
    return lane


def counters(trace: Trace, links: list[int], pid: int, last: int | None = None) -> Iterator[Event]:
    """A track for each of these links, in percent of its capacity, up to `last` nanoseconds.

    Where rates were recorded the tracks are exact, otherwise each transfer counts with its mean rate.
    """
    for link in links:
        instants, level = link_level(trace, link)
        percent = np.round(np.maximum(level, 0.0) / trace.routes.fabric.bandwidth[link] * 100, 6)
        name = f"{trace.routes.fabric.link_name(link)} %"
        for time, value in zip(instants.tolist(), percent.tolist(), strict=True):
            if last is None or time <= last:
                yield {"ph": "C", "name": name, "pid": pid, "ts": time / 1000, "args": {"utilisation": value}}


def link_level(trace: Trace, link: int) -> tuple[Ints, Floats]:
    """Bytes/s on a link as a step curve: (nanoseconds, bytes/s from then on)."""
    start, used, share = trace.routes.usage()
    entry = np.flatnonzero(used == link)
    weight = np.zeros(trace.routes.pairs)
    weight[np.searchsorted(start, entry, side="right") - 1] = share[entry]
    if trace.rate is None or trace.rate_time is None or trace.rate_pair is None or trace.rate_class is None:
        return _mean_level(trace, weight, float(trace.routes.fabric.bandwidth[link]))
    mine = np.flatnonzero(weight[trace.rate_pair] > 0)
    return _step_curve(
        nanoseconds(trace.rate_time[mine]), trace.rate_class[mine], (trace.rate * weight[trace.rate_pair])[mine]
    )


def _step_curve(time: Ints, flow: NDArray[np.int32], rate: Floats) -> tuple[Ints, Floats]:
    """The sum of the rates of all flows from each instant on; later entries of a flow replace its earlier ones."""
    order = np.argsort(flow, kind="stable")
    change = np.diff(rate[order], prepend=0.0)
    first = np.diff(flow[order], prepend=-1) != 0
    change[first] = rate[order][first]
    instants, index = np.unique(time[order], return_inverse=True)
    return instants, np.cumsum(np.bincount(index, weights=change, minlength=len(instants)))


def _mean_level(trace: Trace, weight: Floats, capacity: float) -> tuple[Ints, Floats]:
    graph = trace.graph
    task = np.flatnonzero((graph.kind == TaskKind.TRANSFER) & (trace.end > trace.start))
    part = weight[trace.routes.rows_of(graph, task)]
    task, part = task[part > 0], part[part > 0]
    rate = graph.amount[task] * part / (trace.end[task] - trace.start[task])
    time = nanoseconds(np.concatenate([trace.start[task], trace.end[task]]))
    instants, index = np.unique(time, return_inverse=True)
    level = np.cumsum(np.bincount(index, np.concatenate([rate, -rate]), minlength=len(instants)))
    if len(instants) > MOST_INSTANTS:
        carried = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(instants))])
        grid = np.linspace(instants[0], instants[-1], MOST_INSTANTS + 1).astype(np.int64)
        spans = np.maximum(np.diff(grid), 1)
        instants, level = grid, np.append(np.diff(np.interp(grid, instants, carried)) / spans, 0.0)
    # Mean rates of flows that sped up and slowed down may add to more than the link carries at any instant.
    return instants, np.minimum(level, capacity)
