"""Starting up is paid once for a launch, however many collectives it goes on with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.task.expand import Expansion
from ropewalk.task.graph import TaskKind
from ropewalk.task.step import Step


def starts_up(expansion: Expansion, task: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these transfers of collectives wait for no other transfer of their operation."""
    graph = expansion.graph
    # The first task of an operation is the marker at which all have arrived.
    first = np.searchsorted(expansion.operation_of_task, expansion.operation_of_task[task])
    alone = np.diff(graph.dep_start)[task] == 1
    begins = np.zeros(len(task), np.bool_)
    begins[alone] = graph.dep[graph.dep_start[task[alone]]] == first[alone]
    return begins


def launched_once(expansion: Expansion, step: Step) -> Expansion:
    """The tasks of a step without the start-up of operations that go on with the launch before them; rounds stay.

    Of an operation whose rounds are written out, only transfers that wait for no other transfer have started up.
    """
    if not step.goes_on.any():
        return expansion
    graph = expansion.graph
    task = np.flatnonzero((graph.kind == TaskKind.TRANSFER) & step.goes_on[expansion.operation_of_task])
    paid = (expansion.launch_s * expansion.repeats)[expansion.operation_of_task[task]]
    start_up = graph.start_up.copy()
    start_up[task] = np.maximum(0.0, start_up[task] - np.where(starts_up(expansion, task), paid, 0.0))
    return replace(expansion, graph=replace(graph, start_up=start_up))
