"""Colours of tasks, links and streams: one sweep of refinement, as kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints, Words
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.flow.system import System
from ropewalk.task import TaskKind


@kernel
def _stir(x: np.uint64) -> np.uint64:
    """A bijection of 64-bit numbers that spreads every bit (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def _pair(a: np.uint64, b: np.uint64) -> np.uint64:
    return _stir(_stir(a + np.uint64(0x9E3779B97F4A7C15)) ^ (b * np.uint64(0xD6E8FEB86659FD93) + np.uint64(1)))


@kernel
def _sweep_tasks(base: Words, own: Words, dep_start: Ints, dep: NDArray[np.int32], out: Words) -> None:
    """Colour of a task: its own, and the colours of what it waits for (in any order); in dependency order."""
    for task in range(len(base)):
        waited = np.uint64(0)
        for i in range(dep_start[task], dep_start[task + 1]):
            waited += _stir(out[dep[i]])
        out[task] = _pair(_pair(base[task], own[task]), waited)


@kernel
def sum_by_row(rows: Ints, values: Words, out: Words) -> None:
    for i in range(len(rows)):
        if rows[i] >= 0:
            out[rows[i]] += _stir(values[i])


@kernel
def colour_rows(start: Ints, link: NDArray[np.int32], weight: Words, colour: Words, out: Words) -> None:
    """Colour of a route: the colours of its links with their weights, in any order."""
    for row in range(len(start) - 1):
        total = np.uint64(0)
        for entry in range(start[row], start[row + 1]):
            total += _pair(colour[link[entry]], weight[entry])
        out[row] = total


@kernel
def colour_links(start: Ints, link: NDArray[np.int32], weight: Words, of_row: Words, out: Words) -> None:
    """What the flows of all routes put on each link, in any order."""
    for row in range(len(start) - 1):
        for entry in range(start[row], start[row + 1]):
            out[link[entry]] += _pair(of_row[row], weight[entry])


@kernel
def _mix_all(a: Words, b: Words, out: Words) -> None:
    for i in range(len(a)):
        out[i] = _pair(a[i], b[i])


def mix(a: Words, b: Words) -> Words:
    """One colour from two, element by element."""
    out = np.empty(len(a), np.uint64)
    _mix_all(np.ascontiguousarray(a), np.ascontiguousarray(b), out)
    return out


def bits(values: NDArray[np.float64]) -> Words:
    """Floats as colours: equal values, equal colours (and -0.0 is 0.0)."""
    return (np.asarray(values, np.float64) + 0.0).view(np.uint64)


def first_colours(system: System, ordinal: Ints, seed: int) -> tuple[Words, Words, Words]:
    """What things are by themselves: kind, amount, delay, urgency of a task; capacity of a link."""
    task = mix(np.full(system.tasks, seed, np.uint64), system.kind.astype(np.uint64))
    for column in (
        bits(system.amount),
        bits(system.delay),
        system.priority.astype(np.uint64),
        ordinal.astype(np.uint64),
    ):
        task = mix(task, column)
    transfer = system.kind == TaskKind.TRANSFER
    cap = np.zeros(system.tasks)
    cap[transfer] = system.flow_cap[system.place[transfer]]
    task = mix(task, bits(cap))
    link = mix(np.full(len(system.capacity), seed, np.uint64), bits(system.capacity))
    return task, link, np.full(system.streams, seed, np.uint64)


class ColourRefinement:
    """Sweeps over a system; what is the same in all of them is worked out once."""

    def __init__(self, system: System) -> None:
        self.system, self.weight = system, bits(system.use_weight)
        self.transfer = np.flatnonzero(system.kind == TaskKind.TRANSFER)
        self.compute = np.flatnonzero(system.kind == TaskKind.COMPUTE)
        self.row_of, self.stream_of = system.place[self.transfer], system.place[self.compute]

    def sweep(self, task: Words, link: Words, stream: Words) -> tuple[Words, Words, Words]:
        """Tell apart what differs in what it waits for, crosses, carries or runs."""
        system, rows = self.system, len(self.system.use_start) - 1
        row = np.empty(rows, np.uint64)
        colour_rows(system.use_start, system.use_link, self.weight, link, row)
        own = np.zeros(system.tasks, np.uint64)
        own[self.transfer], own[self.compute] = row[self.row_of], stream[self.stream_of]
        new_task = np.empty(system.tasks, np.uint64)
        _sweep_tasks(task, own, system.dep_start, system.dep, new_task)

        of_row = np.zeros(rows, np.uint64)
        sum_by_row(self.row_of, new_task[self.transfer], of_row)
        on_link = np.zeros(len(link), np.uint64)
        colour_links(system.use_start, system.use_link, self.weight, of_row, on_link)
        on_stream = np.zeros(len(stream), np.uint64)
        sum_by_row(self.stream_of, new_task[self.compute], on_stream)
        return new_task, mix(link, on_link), mix(stream, on_stream)
