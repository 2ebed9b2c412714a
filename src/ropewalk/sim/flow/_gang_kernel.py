"""The system of a gang over the classes of its layout, as a kernel: one task for each class of each operation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.sim.flow.kernel import kernel

FLOAT = NDArray[np.float64]
INT = NDArray[np.int64]

TRANSFER = 1


class Operations(NamedTuple):
    """Columns of a gang."""

    kind: INT
    amount: FLOAT
    repeats: INT
    goes_on: NDArray[np.bool_]
    dep_start: INT
    dep: INT


class KindTasks(NamedTuple):
    """Columns of a layout, and by two kinds which tasks of one wait for which of the other."""

    start: INT
    kind: NDArray[np.int8]
    place: INT
    amount: FLOAT
    start_up: FLOAT
    each: FLOAT
    own: FLOAT
    launch: FLOAT
    dep_start: INT
    dep: INT
    pairs_of: INT
    pair_start: INT
    waiting: INT
    awaited: INT


class Written(NamedTuple):
    """Columns of the tasks."""

    kind: NDArray[np.int8]
    place: INT
    amount: FLOAT
    delay: FLOAT
    operation: INT
    dep_start: INT


@kernel
def write_tasks(gang: Operations, kinds: KindTasks, first: INT, tasks: Written) -> None:
    """Fill all columns, with `dep_start` counted up; operation i begins with task `first[i]`."""
    many = len(kinds.start) - 1
    waits = tasks.dep_start[1:]
    for at in range(len(gang.kind)):
        kind = gang.kind[at]
        begin = kinds.start[kind]
        repeats, amount = gang.repeats[at], gang.amount[at]
        for local in range(begin, kinds.start[kind + 1]):
            task = first[at] + local - begin
            tasks.kind[task], tasks.place[task], tasks.operation[task] = kinds.kind[local], kinds.place[local], at
            tasks.amount[task] = amount * kinds.amount[local]
            if kinds.kind[local] == TRANSFER:
                paid = kinds.start_up[local] * repeats
                if gang.goes_on[at]:
                    paid = max(0.0, paid - kinds.launch[local] * repeats)
                tasks.delay[task] = paid + max(kinds.each[local] * repeats, kinds.own[local])
            waits[task] = kinds.dep_start[local + 1] - kinds.dep_start[local]
        for edge in range(gang.dep_start[at], gang.dep_start[at + 1]):
            row = kinds.pairs_of[kind * many + gang.kind[gang.dep[edge]]]
            for pair in range(kinds.pair_start[row], kinds.pair_start[row + 1]):
                waits[first[at] + kinds.waiting[pair]] += 1
    for task in range(len(waits)):
        tasks.dep_start[task + 1] += tasks.dep_start[task]


@kernel
def write_dependencies(gang: Operations, kinds: KindTasks, first: INT, dep_start: INT) -> NDArray[np.int32]:
    """What every task waits for: others of its operation, then tasks of other operations."""
    many = len(kinds.start) - 1
    dep = np.empty(dep_start[-1], np.int32)
    filled = dep_start[:-1].copy()
    for at in range(len(gang.kind)):
        kind = gang.kind[at]
        begin = kinds.start[kind]
        for local in range(begin, kinds.start[kind + 1]):
            task = first[at] + local - begin
            for entry in range(kinds.dep_start[local], kinds.dep_start[local + 1]):
                dep[filled[task]] = first[at] + kinds.dep[entry]
                filled[task] += 1
        for edge in range(gang.dep_start[at], gang.dep_start[at + 1]):
            other = gang.dep[edge]
            row = kinds.pairs_of[kind * many + gang.kind[other]]
            for pair in range(kinds.pair_start[row], kinds.pair_start[row + 1]):
                task = first[at] + kinds.waiting[pair]
                dep[filled[task]] = first[other] + kinds.awaited[pair]
                filled[task] += 1
    return dep
