"""The three queues of the engine, as arrays: an event heap, many small mergeable heaps, and a tree of finish times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Floats, Ints, Ints32
from ropewalk.sim.flow.kernel import kernel


class EventHeap(NamedTuple):
    """Events by (time, task): tasks whose delay or compute time runs out. `size[0]` events are in it."""

    time: Floats
    task: Ints32
    size: Ints


class Piles(NamedTuple):
    """Many skew heaps over tasks in one set of arrays: each task is in at most one of them.

    Ordered by (first, second, task). `root[p]` is the least task of pile p, or -1.
    """

    root: Ints
    left: Ints32
    right: Ints32
    first: Floats
    second: Floats


class FinishTree(NamedTuple):
    """Least finish time over all flows: node i holds the minimum of nodes 2i and 2i+1; leaves start at `leaves[0]`."""

    least: Floats
    leaves: Ints


@kernel
def push_event(times: Floats, tasks: Ints32, size: Ints, time: float, task: int) -> None:
    at = size[0]
    size[0] += 1
    while at > 0:
        parent = (at - 1) >> 2
        if times[parent] < time or (times[parent] == time and tasks[parent] < task):
            break
        times[at], tasks[at] = times[parent], tasks[parent]
        at = parent
    times[at], tasks[at] = time, task


@kernel
def pop_event(times: Floats, tasks: Ints32, size: Ints) -> int:
    """Remove the earliest event and return its task."""
    top = tasks[0]
    size[0] -= 1
    last = size[0]
    time, task = times[last], tasks[last]
    at = 0
    while True:
        child = 4 * at + 1
        if child >= last:
            break
        least = child
        for other in range(child + 1, min(child + 4, last)):
            if times[other] < times[least] or (times[other] == times[least] and tasks[other] < tasks[least]):
                least = other
        if times[least] > time or (times[least] == time and tasks[least] > task):
            break
        times[at], tasks[at] = times[least], tasks[least]
        at = least
    times[at], tasks[at] = time, task
    return top


@kernel
def _before(first: Floats, second: Floats, a: int, b: int) -> bool:
    if first[a] != first[b]:
        return first[a] < first[b]
    if second[a] != second[b]:
        return second[a] < second[b]
    return a < b


@kernel
def _merge(left: Ints32, right: Ints32, first: Floats, second: Floats, a: int, b: int) -> int:
    """Merge two skew heaps top-down: along the merged right spine every node swaps its children."""
    if a < 0:
        return b
    if b < 0:
        return a
    if _before(first, second, b, a):
        a, b = b, a
    root, last = a, a
    rest = right[a]
    while True:
        right[last] = left[last]
        if rest < 0:
            left[last] = b
            return root
        if _before(first, second, b, rest):
            rest, b = b, rest
        left[last] = rest
        last = rest
        rest = right[last]


@kernel
def push_pile(
    root: Ints,
    left: Ints32,
    right: Ints32,
    firsts: Floats,
    seconds: Floats,
    pile: int,
    task: int,
    first: float,
    second: float,
) -> None:
    left[task] = right[task] = -1
    firsts[task] = first
    seconds[task] = second
    root[pile] = _merge(left, right, firsts, seconds, root[pile], task)


@kernel
def pop_pile(root: Ints, left: Ints32, right: Ints32, firsts: Floats, seconds: Floats, pile: int) -> int:
    task = root[pile]
    root[pile] = _merge(left, right, firsts, seconds, left[task], right[task])
    return task


@kernel
def set_finish(least: Floats, leaves: int, flow: int, time: float) -> None:
    node = leaves + flow
    least[node] = time
    while node > 1:
        node >>= 1
        lower = min(least[2 * node], least[2 * node + 1])
        if least[node] == lower:
            break
        least[node] = lower


@kernel
def rebuild(least: Floats, leaves: int) -> None:
    """Recompute all minima after many leaves were written directly."""
    for node in range(leaves - 1, 0, -1):
        least[node] = min(least[2 * node], least[2 * node + 1])


@kernel
def finished_by(least: Floats, leaves: int, time: float, out: Ints) -> int:
    """Write all flows that finish at or before `time` into `out`, in ascending order; returns how many."""
    found = 0
    if least[1] > time:
        return 0
    stack = np.empty(64, np.int64)
    stack[0] = 1
    depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        if node >= leaves:
            out[found] = node - leaves
            found += 1
            continue
        for child in (2 * node + 1, 2 * node):
            if least[child] <= time:
                stack[depth] = child
                depth += 1
    return found


def make_event_heap(tasks: int) -> EventHeap:
    return EventHeap(np.zeros(tasks), np.zeros(tasks, np.int32), np.zeros(1, np.int64))


def make_piles(piles: int, tasks: int) -> Piles:
    return Piles(
        np.full(piles, -1, np.int64),
        np.full(tasks, -1, np.int32),
        np.full(tasks, -1, np.int32),
        np.zeros(tasks),
        np.zeros(tasks),
    )


def make_finish_tree(flows: int) -> FinishTree:
    leaves = 1
    while leaves < flows:
        leaves *= 2
    return FinishTree(np.full(2 * leaves, np.inf), np.array([leaves], np.int64))
