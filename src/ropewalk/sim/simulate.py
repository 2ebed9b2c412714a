"""Run a task graph, or rounds in lockstep, over a routed fabric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import GraphError
from ropewalk.progress import Count
from ropewalk.ragged import ranges
from ropewalk.routing import Routes
from ropewalk.routing.one_sender import OneSender
from ropewalk.sim.flow.every_pair import fold_every_pair
from ropewalk.sim.flow.rounds import fold_rounds
from ropewalk.sim.flow.symmetry import Folding, fold
from ropewalk.sim.flow.system import System, Times, run_system, system_of
from ropewalk.sim.physics import check_rounds, check_trace
from ropewalk.sim.trace import Trace
from ropewalk.task import Lockstep, TaskGraph, TaskKind, unroll

WORTH_FOLDING = 0.5
"""A quotient with more than this part of the tasks is not worth simulating in place of the whole."""


def simulate(
    graph: TaskGraph,
    routes: Routes,
    *,
    symmetry: bool = True,
    record_rates: bool = False,
    progress: Count | None = None,
) -> Trace:
    """The flow-level run of a task graph: every start, every end, every bottleneck.

    With `symmetry`, tasks that cannot behave differently are simulated once; the times are the same to rounding.
    `record_rates` keeps the rate of every transfer over time, for which all of them are simulated.

    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.routing import shortest
    >>> from ropewalk.task import Sketch
    >>> import numpy as np
    >>> sketch = Sketch()
    >>> _ = sketch.transfer(0, 1, 12.5e6)
    >>> fabric = IdealSwitch(2).build()
    >>> round(simulate(sketch.graph(), shortest(fabric, np.array([0]), np.array([1]))).makespan, 6)
    0.001
    """
    system = system_of(graph, routes)
    if symmetry and not record_rates and graph.tasks:
        folding = fold(system, WORTH_FOLDING)
        if folding is not None:
            times = run_system(folding.quotient, progress=progress)
            trace = _expanded(graph, routes, system, folding, times)
            check_trace(trace)
            return trace
    times = run_system(system, record_rates=record_rates, progress=progress)
    trace = Trace(graph, routes, times.start, times.end, times.bound_by, graph.tasks, times.steps)
    if record_rates:
        assert times.rate_flow is not None
        transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
        pair_of_class = np.zeros(len(system.flow_priority), np.int64)
        pair_of_class[system.place[transfer]] = routes.rows_of(graph, transfer)
        trace = Trace(
            graph, routes, times.start, times.end, times.bound_by, graph.tasks, times.steps,
            times.rate_time, pair_of_class[times.rate_flow], times.rate, times.rate_flow,
        )  # fmt: skip
    check_trace(trace)
    return trace


def _expanded(graph: TaskGraph, routes: Routes, system: System, folding: Folding, times: Times) -> Trace:
    """The times of the classes as times of all tasks; bottlenecks named on each task's own way."""
    task_class = folding.task_class
    bound_class = times.bound_by[task_class]
    held = np.flatnonzero(bound_class >= 0)
    row = system.place[held]
    key, which = np.unique(row * np.int64(len(system.capacity)) + bound_class[held], return_inverse=True)
    own_row, own_class = key // len(system.capacity), key % len(system.capacity)
    length = np.diff(system.use_start)[own_row]
    link = system.use_link[ranges(system.use_start[own_row], length)]
    fits = np.flatnonzero(folding.link_class[link] == np.repeat(own_class, length))
    owner, first = np.unique(np.repeat(np.arange(len(key)), length)[fits], return_index=True)
    found = np.full(len(key), -1, np.int32)
    found[owner] = link[fits[first]]
    bound_by = np.full(graph.tasks, -1, np.int32)
    bound_by[held] = found[which]
    return Trace(graph, routes, times.start[task_class], times.end[task_class], bound_by, len(times.start), times.steps)


@dataclass(frozen=True, eq=False)
class RoundsTrace:
    """The run of rounds in lockstep: how long it took, what each link carried, how many classes it cost."""

    rounds: Lockstep
    routes: Routes
    """Of all pairs, or of one sender where they look alike from every host."""
    makespan: float
    link_bytes: NDArray[np.float64]
    classes: int
    steps: int


def simulate_rounds(
    rounds: Lockstep, routes: Routes | OneSender, *, symmetry: bool = True, progress: Count | None = None
) -> RoundsTrace:
    """The flow-level run of rounds in lockstep, folded before they are written out where symmetry allows.

    The routes of one sender are enough for rounds in which every host sends to every other, however many these are.
    """
    if isinstance(routes, OneSender):
        if not symmetry:
            raise GraphError(
                f"{rounds.name}: without symmetry the routes of one sender are not enough: route all pairs"
            )
        known, times = routes.routes, run_system(fold_every_pair(rounds, routes), progress=progress)
    elif symmetry and not rounds.shares_adders:
        known, times = routes, run_system(fold_rounds(rounds, routes), progress=progress)
    else:
        trace = simulate(unroll(rounds), routes, symmetry=symmetry, progress=progress)
        known, times = routes, Times(trace.start, trace.end, trace.bound_by, trace.steps)
    makespan, link_bytes = float(times.end.max(initial=0.0)), rounds_link_bytes(rounds, routes)
    result = RoundsTrace(rounds, known, makespan, link_bytes, len(times.end), times.steps)
    check_rounds(result)
    return result


def rounds_link_bytes(rounds: Lockstep, routes: Routes | OneSender) -> NDArray[np.float64]:
    """Bytes on every link over all rounds."""
    if isinstance(routes, OneSender):
        return routes.link_bytes(float(np.dot([arrows.chunk_bytes for arrows in rounds.arrows], rounds.repeats())))
    total = np.zeros(routes.fabric.links)
    for arrows, repeat in zip(rounds.arrows, rounds.repeats(), strict=True):
        pair = routes.find(arrows.src_host, arrows.dst_host)
        total += repeat * routes.link_bytes(pair, arrows.size_bytes)
    return total
