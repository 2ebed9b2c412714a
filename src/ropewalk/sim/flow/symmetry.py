"""Exact symmetry: simulate one task of each class instead of all of them.

Colour refinement merges tasks, links and streams that cannot be told apart by what they do, what they wait for and
what they share. The result is an *equitable* partition: links of one class carry the same number of flows of every
class, tasks of one class wait for the same classes. Water-filling then freezes equal things at equal levels (by
induction over the levels) and equal tasks start and end together (by induction over the events), so the quotient has
exactly the times of the whole. Nothing is assumed about the fabric: what is not symmetric simply stays apart.

Tasks are coloured in dependency order, so one sweep carries a colour through a chain of any length; sweeps repeat
until no class splits. Colours are 64-bit hashes; a last sweep under independent hashes confirms the partition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.ragged import ranges
from ropewalk.sim.flow.classes import first_member, number, usage_of_classes
from ropewalk.sim.flow.system import System
from ropewalk.task import TaskKind


@dataclass(frozen=True, eq=False)
class Folding:
    """A system and its quotient: task i behaves like task `task_class[i]` of `quotient`."""

    quotient: System
    task_class: NDArray[np.int64]
    link_class: NDArray[np.int64]


def fold(system: System, worth: float = 1.0) -> Folding | None:
    """The coarsest equitable partition that refinement finds, and the quotient over it.

    None as soon as it is clear that the quotient has more than `worth` of the tasks: classes only ever split.
    """
    from ropewalk.sim.flow import colours

    ordinal = _place_in_stream(system)
    task, link, stream = colours.first_colours(system, ordinal, seed=1)
    refinement = colours.ColourRefinement(system)
    classes = (-1, -1)
    while True:
        task, link, stream = refinement.sweep(task, link, stream)
        if worth < 1.0 and len(np.unique(task)) > worth * system.tasks:
            return None
        # Tasks follow from links and streams: where a sweep splits none of these, the next would split no task.
        found = len(np.unique(link)), len(np.unique(stream))
        if found == classes:
            break
        classes = found
    task_class, link_class = number(task), number(link)
    stream_class = number(stream)
    _confirm(system, ordinal, task_class, link_class, stream_class)
    return _quotient(system, task_class, link_class, stream_class)


def _confirm(
    system: System,
    ordinal: NDArray[np.int64],
    task_class: NDArray[np.int64],
    link_class: NDArray[np.int64],
    stream_class: NDArray[np.int64],
) -> None:
    """One more sweep that starts from the classes under other hashes: it must not split any of them."""
    from ropewalk.sim.flow import colours

    seeds = colours.first_colours(system, ordinal, seed=2)
    start = [
        colours.mix(colour, numbers.astype(np.uint64))
        for colour, numbers in zip(seeds, (task_class, link_class, stream_class), strict=True)
    ]
    again = colours.ColourRefinement(system).sweep(*start)
    for colour, numbers in zip(again, (task_class, link_class, stream_class), strict=True):
        if len(np.unique(colour)) != (int(numbers.max()) + 1 if len(numbers) else 0):
            raise AssertionError("two colours collided: the partition is not equitable")


def _quotient(
    system: System,
    task_class: NDArray[np.int64],
    link_class: NDArray[np.int64],
    stream_class: NDArray[np.int64],
) -> Folding:
    task_of = first_member(task_class)
    link_of = first_member(link_class)

    waits = np.diff(system.dep_start)[task_of]
    into = ranges(system.dep_start[:-1][task_of], waits)
    key = np.unique(np.repeat(np.arange(len(task_of)), waits) * np.int64(len(task_of)) + task_class[system.dep[into]])
    dep_start = np.searchsorted(key, np.arange(len(task_of) + 1) * np.int64(len(task_of)))

    transfers = np.flatnonzero(system.kind == TaskKind.TRANSFER)
    flow = np.unique(task_class[transfers])
    use_start, use_link, use_weight = usage_of_classes(
        system.place[transfers], np.searchsorted(flow, task_class[transfers]), len(flow),
        system.use_start, system.use_link, system.use_weight, link_class,
    )  # fmt: skip
    transfer = system.kind[task_of] == TaskKind.TRANSFER
    compute = system.kind[task_of] == TaskKind.COMPUTE
    place = np.full(len(task_of), -1, np.int64)
    place[transfer] = np.searchsorted(flow, np.flatnonzero(transfer))
    place[compute] = stream_class[system.place[task_of[compute]]]
    row = system.place[task_of[flow]]
    quotient = System(
        system.kind[task_of], place, system.amount[task_of], system.delay[task_of], system.priority[task_of],
        dep_start.astype(np.int64), (key % max(len(task_of), 1)).astype(np.int32),
        int(stream_class.max(initial=-1)) + 1, system.flow_priority[row], system.flow_cap[row],
        use_start, use_link, use_weight, system.capacity[link_of],
    )  # fmt: skip
    return Folding(quotient, task_class, link_class)


def _place_in_stream(system: System) -> NDArray[np.int64]:
    """The position of each compute task among those of its stream: ties on a stream are broken by it, so it counts."""
    ordinal = np.zeros(system.tasks, np.int64)
    compute = np.flatnonzero(system.kind == TaskKind.COMPUTE)
    order = compute[np.argsort(system.place[compute], kind="stable")]
    stream = system.place[order]
    first = np.searchsorted(stream, stream)
    ordinal[order] = np.arange(len(order)) - first
    return ordinal
