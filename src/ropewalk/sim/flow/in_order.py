"""Operations that a stage runs one after the other and whose links nobody else uses: they take as long as alone.

Tensor ranks stop until they have met, and inside a server they mostly have the links between them for themselves. How
long such a collective takes does not depend on what else happens, so it is a computation by another name, and a row of
them is one task. Whether a gang really runs them in order is verified, stage by stage, on its dependencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.ragged import ranges
from ropewalk.task.graph import TaskKind
from ropewalk.task.lower.moves import BLOCKING
from ropewalk.task.step import Act

if TYPE_CHECKING:
    from ropewalk.sim.flow._gang_kernel import GangColumns
    from ropewalk.sim.flow.layout import GangLayout


@dataclass(frozen=True, eq=False)
class Alone:
    """By kind of operation: does it take as long as alone, and how long for a byte or a second?"""

    stage: Ints
    """The stage that runs it in order, -1 where others may be in the way."""
    unit_s: Floats
    compute: Ints
    """By kind: the kind of computations of the same stage, -1 where ranks of a stage differ."""


def alone_in(layout: GangLayout) -> Alone:
    """Collectives that stop their ranks, of one class, on links that only such collectives of the same stage use."""
    act, _, stage, _, stream = np.array([key[:5] for key in layout.keys], np.int64).T
    first, tasks = layout.task_start[:-1], np.diff(layout.task_start)
    computes = (act == Act.COMPUTE) & (tasks == 1)
    compute = np.full(int(stage.max(initial=-1)) + 1, -1)
    compute[stage[computes]] = np.flatnonzero(computes)
    meets = (act >= Act.ALL_REDUCE) & np.isin(stream, BLOCKING) & (tasks == 1) & (compute[stage] >= 0)
    meets &= layout.task_kind[first] == TaskKind.TRANSFER
    kind_of_row = np.full(len(layout.flow_cap), -1)
    kind_of_task = np.repeat(np.arange(len(tasks)), tasks)
    sent = layout.task_kind == TaskKind.TRANSFER
    kind_of_row[layout.place[sent]] = kind_of_task[sent]
    row = np.repeat(np.arange(len(kind_of_row)), np.diff(layout.use_start))
    while True:
        # A link is free for a stage where all that crosses it are such collectives of that stage.
        owner = np.where(meets[kind_of_row[row]], stage[kind_of_row[row]], -1)
        low, high = (np.full(len(layout.capacity), start) for start in (np.iinfo(np.int64).max, -1))
        np.minimum.at(low, layout.use_link, owner)
        np.maximum.at(high, layout.use_link, owner)
        shared = np.unique(kind_of_row[row[(low != high)[layout.use_link]]])
        if not meets[shared].any():
            break
        meets[shared] = False
    per_byte = np.zeros(len(kind_of_row))
    np.maximum.at(per_byte, row, layout.use_weight / layout.capacity[layout.use_link])
    per_byte = np.maximum(per_byte, 1 / layout.flow_cap)
    unit = np.where(computes, 1.0, 0.0)
    unit[meets] = layout.amount[first[meets]] * per_byte[layout.place[first[meets]]]
    return Alone(np.where(computes | meets, stage, -1), unit, np.where(computes | meets, compute[stage], -1))


def joined(gang: GangColumns, layout: GangLayout) -> tuple[GangColumns, Ints]:
    """The gang with what stages run in order in one computation each, and the first operation of every such row."""
    from ropewalk.sim.flow._gang_kernel import GangColumns, KindTimes, join_rows

    alone, kind, task = layout.alone, gang.kind, layout.task_start[:-1]
    stage = np.array([key[2] for key in layout.keys], np.int64)
    times = KindTimes(
        stage,
        alone.stage,
        layout.start_up[task],
        layout.launch[task],
        layout.each[task],
        layout.own[task],
        alone.unit_s,
    )
    head, total, fixed = join_rows(gang, times)
    heads = np.flatnonzero(head == np.arange(len(head)))
    number = np.zeros(len(head), np.int64)
    number[heads] = np.arange(len(heads))
    waits = np.diff(gang.dep_start)[heads]
    dep = number[head[gang.dep[ranges(gang.dep_start[heads], waits)]]]
    own = fixed[heads]
    made = GangColumns(
        np.where(own, alone.compute[kind[heads]], kind[heads]), np.where(own, total[heads], gang.amount[heads]),
        gang.repeats[heads], gang.goes_on[heads], np.concatenate([[0], np.cumsum(waits)]), dep,
    )  # fmt: skip
    return made, heads
