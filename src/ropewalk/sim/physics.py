"""Results that no network could produce are refused, on every run.

Each check follows from bytes and capacities alone and knows nothing of the engine: a link cannot carry more than its
capacity for the length of the run, a transfer cannot beat its own narrowest way, nothing ends before it starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import PhysicsError
from ropewalk.routing import Routes
from ropewalk.task import TaskKind
from ropewalk.units import show_seconds

if TYPE_CHECKING:
    from ropewalk.sim.flow.system import System, Times
    from ropewalk.sim.simulate import RoundsTrace
    from ropewalk.sim.trace import Trace

ROUNDING = 1e-9


def check_trace(trace: Trace) -> None:
    """Every task runs, in order, and no faster than its links."""
    graph = trace.graph
    if np.isnan(trace.end).any() or (trace.end < trace.start).any():
        raise PhysicsError("a task never ran or ended before it started: this is a bug in the simulator, please report")
    waiting = np.repeat(np.arange(graph.tasks), np.diff(graph.dep_start))
    slack = ROUNDING * max(trace.makespan, 1e-300)
    if (trace.start[waiting] < trace.end[graph.dep] - slack).any():
        raise PhysicsError("a task started before one it waits for had ended: this is a bug in the simulator")
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    least = _least_seconds(trace.routes, trace.routes.rows_of(graph, transfer), graph.amount[transfer])
    quick = (trace.end - trace.start)[transfer] < least * (1 - ROUNDING) - slack
    if quick.any():
        task = int(transfer[np.flatnonzero(quick)[0]])
        raise PhysicsError(
            f"transfer {task} ({graph.name_of(task)}) took {show_seconds(float(trace.end[task] - trace.start[task]))}, "
            "less than its own path needs for its bytes: this is a bug in the simulator"
        )
    check_loads(trace.routes, trace.link_bytes, trace.makespan)


def check_system(system: System, times: Times) -> None:
    """The run of a system is at least as long as its busiest link needs, one link for each class of them."""
    if np.isnan(times.end).any() or (times.end < times.start).any():
        raise PhysicsError("a task never ran or ended before it started: this is a bug in the simulator, please report")
    transfer = system.kind == TaskKind.TRANSFER
    carried = np.bincount(system.place[transfer], system.amount[transfer], len(system.use_start) - 1)
    row = np.repeat(np.arange(len(carried)), np.diff(system.use_start))
    load = np.bincount(system.use_link, carried[row] * system.use_weight, len(system.capacity))
    makespan, needed = float(times.end.max(initial=0.0)), float((load / system.capacity).max(initial=0.0))
    if makespan < needed * (1 - ROUNDING):
        raise PhysicsError(
            f"the run took {show_seconds(makespan)}, but a link alone needs {show_seconds(needed)} for its bytes: "
            "check units, otherwise this is a bug in the simulator, please report"
        )


def check_rounds(trace: RoundsTrace) -> None:
    check_loads(trace.routes, trace.link_bytes, trace.makespan)


def check_loads(routes: Routes, link_bytes: NDArray[np.float64], makespan: float) -> None:
    """The run is at least as long as its busiest link needs for its bytes."""
    if not len(link_bytes):
        return
    needed = link_bytes / routes.fabric.bandwidth
    busiest = int(np.argmax(needed))
    if makespan < needed[busiest] * (1 - ROUNDING):
        raise PhysicsError(
            f"the run took {show_seconds(makespan)}, but link {routes.fabric.link_name(busiest)} alone needs "
            f"{show_seconds(float(needed[busiest]))} for its bytes: check units, otherwise this is a bug in the "
            "simulator, please report"
        )


def _least_seconds(routes: Routes, row: NDArray[np.int64], size_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seconds that each transfer needs when it is alone in the network."""
    start, link, share = routes.usage()
    if not len(row):
        return np.zeros(0)
    per_byte = np.maximum.reduceat(share / routes.fabric.bandwidth[link], start[:-1])
    return per_byte[row] * size_bytes
