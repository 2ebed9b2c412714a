"""The system of a gang over the classes of its layout, as a kernel: one task for each class of each operation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.sim.flow.kernel import kernel

TRANSFER = 1


class GangColumns(NamedTuple):
    """Columns of a gang."""

    kind: Ints
    amount: Floats
    repeats: Ints
    goes_on: NDArray[np.bool_]
    dep_start: Ints
    dep: Ints


class KindTasks(NamedTuple):
    """Columns of a layout, and by two kinds which tasks of one wait for which of the other."""

    start: Ints
    kind: NDArray[np.int8]
    place: Ints
    amount: Floats
    start_up: Floats
    each: Floats
    own: Floats
    launch: Floats
    dep_start: Ints
    dep: Ints
    pairs_of: Ints
    pair_start: Ints
    waiting: Ints
    awaited: Ints


class WrittenTasks(NamedTuple):
    """Columns of the tasks."""

    kind: NDArray[np.int8]
    place: Ints
    amount: Floats
    delay: Floats
    operation: Ints
    dep_start: Ints


@kernel
def write_tasks(gang: GangColumns, kinds: KindTasks, first: Ints, tasks: WrittenTasks) -> None:
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
def write_dependencies(gang: GangColumns, kinds: KindTasks, first: Ints, dep_start: Ints) -> NDArray[np.int32]:
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


class KindTimes(NamedTuple):
    """By kind of operation: its stage, and how long it takes where nothing is in the way."""

    stage: Ints
    alone: Ints
    """The stage where it takes as long as alone, -1 otherwise."""
    start_up: Floats
    launch: Floats
    each: Floats
    own: Floats
    unit_s: Floats


@kernel
def join_rows(gang: GangColumns, kinds: KindTimes) -> tuple[Ints, Floats, NDArray[np.bool_]]:
    """Operations that take as long as alone, joined to the one before where nothing else comes between the two.

    Returns by operation the first one of its row, by first one how long the row takes, and which of them take as long
    as alone in order.
    """
    kind, dep_start, dep, alone = gang.kind, gang.dep_start, gang.dep, kinds.alone
    in_order = _run_in_order(kind, kinds.stage, alone, dep_start, dep)
    amount, all_repeats, goes_on = gang.amount, gang.repeats, gang.goes_on
    start_up, launch, each, own, unit_s = kinds.start_up, kinds.launch, kinds.each, kinds.own, kinds.unit_s
    followers = np.zeros(len(kind), np.int64)
    for edge in range(len(dep)):
        followers[dep[edge]] += 1
    head: Ints = np.arange(len(kind))
    total = np.zeros(len(kind))
    fixed = np.zeros(len(kind), np.bool_)
    for at in range(len(kind)):
        here = alone[kind[at]]
        if here < 0 or not in_order[here]:
            continue
        fixed[at] = True
        if dep_start[at + 1] - dep_start[at] == 1:
            before = dep[dep_start[at]]
            if fixed[before] and alone[kind[before]] == here and followers[before] == 1:
                head[at] = head[before]
        one, repeats = kind[at], all_repeats[at]
        launched = max(start_up[one] - (launch[one] if goes_on[at] else 0.0), 0.0) * repeats
        total[head[at]] += launched + max(each[one] * repeats, own[one]) + amount[at] * unit_s[one]
    return head, total, fixed


@kernel
def _run_in_order(kind: Ints, stage: Ints, alone: Ints, dep_start: Ints, dep: Ints) -> NDArray[np.bool_]:
    """By stage: does each operation that takes as long as alone wait for the one before it, perhaps through others?"""
    stages = 0
    for one in stage:
        stages = max(stages, one + 1)
    last = np.full(stages, -1)
    in_order = np.ones(stages, np.bool_)
    behind = np.full(len(kind), -1)
    for at in range(len(kind)):
        here = stage[kind[at]]
        for edge in range(dep_start[at], dep_start[at + 1]):
            other = dep[edge]
            if stage[kind[other]] == here:
                behind[at] = max(behind[at], other if alone[kind[other]] >= 0 else behind[other])
        if alone[kind[at]] >= 0:
            in_order[here] &= behind[at] == last[here]
            last[here] = at
    return in_order
