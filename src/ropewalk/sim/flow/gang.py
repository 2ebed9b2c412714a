"""A gang as a system over the classes of its layout, for the engine that runs all systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.ragged import ranges
from ropewalk.sim.flow.in_order import joined
from ropewalk.sim.flow.layout import GangLayout
from ropewalk.sim.flow.system import System
from ropewalk.task.graph import TaskKind
from ropewalk.task.lower.gang import Gang

if TYPE_CHECKING:
    from ropewalk.sim.flow._gang_kernel import GangColumns, KindTasks, WrittenTasks


def system_of_gang(gang: Gang, kind: Ints, layout: GangLayout, *, join: bool = True) -> System:
    """One task for each class of each operation; `kind[i]` is the kind of operation i in the layout.

    With `join`, what a stage runs in order on dedicated links is one task (`in_order`): the same end, in less time.
    """
    from ropewalk.sim.flow import _gang_kernel as kernels

    whole = kernels.GangColumns(
        kind, gang.amount, gang.repeats.astype(np.int64), gang.goes_on, gang.dep_start, gang.dep
    )
    operations, first_of_row = joined(whole, layout) if join else (whole, np.arange(gang.operations))
    kinds = _kind_tasks(operations, layout)
    size = np.diff(layout.task_start)[operations.kind]
    first, tasks = np.cumsum(size) - size, int(size.sum())
    made = kernels.WrittenTasks(
        np.zeros(tasks, np.int8), np.zeros(tasks, np.int64), np.zeros(tasks), np.zeros(tasks),
        np.zeros(tasks, np.int64), np.zeros(tasks + 1, np.int64),
    )  # fmt: skip
    kernels.write_tasks(operations, kinds, first, made)
    dep = kernels.write_dependencies(operations, kinds, first, made.dep_start)
    priority = gang.priority.astype(np.int32)[first_of_row[made.operation]]  # a number per task: memory decides
    return _with_priorities(priority, layout, made, dep)


def _kind_tasks(gang: GangColumns, layout: GangLayout) -> KindTasks:
    """The columns of the layout with the pairs of tasks of all pairs of kinds that wait for each other."""
    from ropewalk.sim.flow._gang_kernel import KindTasks

    many = len(layout.keys)
    code = np.repeat(gang.kind, np.diff(gang.dep_start)) * many + gang.kind[gang.dep]
    known = np.zeros(many * many, np.bool_)
    known[code] = True
    used = np.flatnonzero(known)
    pairs = [layout.pairs(*divmod(at, many)) for at in used.tolist()]
    row = np.full(many * many, -1)
    row[used] = np.arange(len(used))
    nothing = np.zeros(0, np.int64)
    waiting, awaited = (np.concatenate([nothing, *(pair[side] for pair in pairs)]) for side in (0, 1))
    return KindTasks(
        layout.task_start, layout.task_kind, layout.place, layout.amount, layout.start_up, layout.each, layout.own,
        layout.launch, layout.dep_start, layout.dep, row,
        np.cumsum([0, *(len(one) for one, _ in pairs)]).astype(np.int64), waiting, awaited,
    )  # fmt: skip


def _with_priorities(
    priority: NDArray[np.int32], layout: GangLayout, made: WrittenTasks, dep: NDArray[np.int32]
) -> System:
    """The system; flows of one class and different priorities are flows of their own."""
    row, place = np.arange(len(layout.flow_cap)), made.place
    flow_priority = np.full(len(row), priority[0] if len(priority) else 0, np.int64)
    transfer = np.flatnonzero(made.kind == TaskKind.TRANSFER)
    if (priority[transfer] != flow_priority[:1]).any():
        values, rank = np.unique(priority[transfer], return_inverse=True)
        key, flow = np.unique(place[transfer] * len(values) + rank, return_inverse=True)
        place[transfer] = flow
        row, flow_priority = key // len(values), values.astype(np.int64)[key % len(values)]
    length = np.diff(layout.use_start)[row]
    into = ranges(layout.use_start[row], length)
    return System(
        made.kind, place, made.amount, made.delay, priority, made.dep_start, dep, len(layout.ranks), flow_priority,
        layout.flow_cap[row], np.concatenate([[0], np.cumsum(length)]), layout.use_link[into],
        layout.use_weight[into], layout.capacity,
    )  # fmt: skip
