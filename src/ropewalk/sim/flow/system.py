"""What the engine runs: tasks, the links each flow uses, and capacities; nothing else of the world is left.

The plain system of a task graph and the quotient of a symmetric one have the same form, so one engine runs both.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import GraphError, PhysicsError
from ropewalk.progress import Count
from ropewalk.ragged import ranges
from ropewalk.routing import Routes
from ropewalk.task import TaskGraph, TaskKind

SLICE_S = 0.2
"""Seconds of computing between two calls of the progress function (and two chances for Ctrl-C), about."""


@dataclass(frozen=True, eq=False)
class System:
    """Tasks by column, flow classes by row, links by capacity."""

    kind: NDArray[np.int8]
    place: NDArray[np.int64]
    """The flow class of a transfer, the stream of a compute task, -1 for a marker."""
    amount: NDArray[np.float64]
    delay: NDArray[np.float64]
    priority: NDArray[np.int64] | NDArray[np.int32]
    dep_start: NDArray[np.int64]
    dep: NDArray[np.int32]
    streams: int
    flow_priority: NDArray[np.int64]
    flow_cap: NDArray[np.float64]
    use_start: NDArray[np.int64]
    use_link: NDArray[np.int32]
    use_weight: NDArray[np.float64]
    capacity: NDArray[np.float64]

    @property
    def tasks(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, eq=False)
class Times:
    """When every task of a system started and ended, and which link held it back last (-1: none)."""

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    bound_by: NDArray[np.int32]
    steps: int
    rate_time: NDArray[np.float64] | None = None
    rate_flow: NDArray[np.int32] | None = None
    rate: NDArray[np.float64] | None = None


def system_of(graph: TaskGraph, routes: Routes) -> System:
    """The plain system: every task, every link."""
    graph.check()
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    compute = np.flatnonzero(graph.kind == TaskKind.COMPUTE)
    place = np.full(graph.tasks, -1, np.int64)
    delay = np.zeros(graph.tasks)

    hosts = routes.fabric.hosts
    ends = np.concatenate([graph.place[transfer], graph.peer[transfer]])
    if len(ends) and ends.max() >= hosts:
        raise GraphError(
            f"a transfer names host {int(ends.max())}, but {routes.fabric.name} has hosts 0…{hosts - 1}: "
            "use a larger fabric or fewer ranks"
        )
    pair = routes.rows_of(graph, transfer)
    row, pair_of_row, priority_of_row, cap_of_row = _flow_classes(graph, transfer, pair)
    place[transfer] = row
    delay[transfer] = graph.start_up[transfer] + routes.latency()[pair]

    stream_key = graph.place[compute].astype(np.int64) * (1 << 16) + graph.stream[compute]
    streams, stream_of = np.unique(stream_key, return_inverse=True)
    place[compute] = stream_of

    start, link, weight = routes.usage()
    length = (start[1:] - start[:-1])[pair_of_row]
    use_start = np.concatenate([[0], np.cumsum(length)])
    into = ranges(start[pair_of_row], length)
    return System(
        graph.kind, place, graph.amount, delay, graph.priority.astype(np.int64), graph.dep_start, graph.dep,
        len(streams), priority_of_row, cap_of_row, use_start, link[into], weight[into], routes.fabric.bandwidth,
    )  # fmt: skip


def _flow_classes(
    graph: TaskGraph, transfer: NDArray[np.int64], pair: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Transfers with the same route, priority and cap always have the same rate: one class each."""
    priority, cap = graph.priority[transfer].astype(np.int64), graph.rate_cap[transfer]
    key = pair
    for column in (priority, cap):
        # Sorting millions of equal values costs more than all the rest: most graphs have one priority and no caps.
        if len(column) and (column != column[0]).any():
            values, rank = np.unique(column, return_inverse=True)
            key = key * len(values) + rank
    span = int(key.max(initial=-1)) + 1
    if span > 8 * len(key):
        _, first, row_of = np.unique(key, return_index=True, return_inverse=True)
        return row_of.astype(np.int64), pair[first], priority[first], cap[first]
    first = np.full(span, -1)
    first[key[::-1]] = np.arange(len(key) - 1, -1, -1)
    known = first >= 0
    row = np.cumsum(known) - 1
    first = first[known]
    return row[key], pair[first], priority[first], cap[first]


def run_system(
    system: System, *, record_rates: bool = False, progress: Count | None = None, patience: int | None = None
) -> Times:
    """Run a system to its end; `patience` is how long settling is tried before the whole is solved anew."""
    # Numba is imported here, not at the top: commands that only read input never pay for it.
    from ropewalk.sim.flow import engine, queues, resolve, waterfill
    from ropewalk.sim.flow.dominated import without_dominated_links
    from ropewalk.sim.flow.groups import make_groups
    from ropewalk.sim.flow.order import turn_round
    from ropewalk.sim.flow.settle import PATIENT

    system = without_dominated_links(system)
    flows, tasks = len(system.flow_priority), system.tasks
    next_start, following = turn_round(_own(system.dep_start, np.int64), _own(system.dep, np.int32), tasks)
    state = engine.Tasks(
        _own(system.kind, np.int8), _own(system.place, np.int64), _own(system.amount, np.float64),
        _own(system.delay, np.float64), _own(system.priority, np.float64), np.diff(system.dep_start).astype(np.int32),
        next_start, following, np.full(tasks, np.nan), np.full(tasks, np.nan), np.full(tasks, -1, np.int32),
    )  # fmt: skip
    usage = waterfill.make_usage(system.use_start, system.use_link, system.use_weight, len(system.capacity))
    water = waterfill.make_water(system.capacity, flows)
    clock = engine.Clock(
        np.zeros(system.streams, bool),
        np.zeros(system.streams, np.int64),
        np.zeros(tasks, np.int64),
        np.zeros(flows, np.int64),
    )
    flow_state = resolve.make_flows(system.flow_priority, system.flow_cap)
    link_state = resolve.make_links(system.capacity)
    problem = resolve.make_problem(flows, len(system.capacity))
    easy = bool((system.flow_cap == np.inf).all() and len(np.unique(system.flow_priority)) == 1)
    groups = make_groups(usage, system.capacity, flows, easy, PATIENT if patience is None else patience)
    events = queues.make_event_heap(tasks)
    streams, marks = queues.make_piles(system.streams, tasks), queues.make_piles(flows, tasks)
    tree = queues.make_finish_tree(flows)
    log = engine.make_rate_log(4 * flows + 1 if record_rates else 1)

    now, done, steps, logged, budget, is_over = -1.0, 0, 0, 0, 64, False
    while not is_over:
        began = perf_counter()
        now, finished, passed, logged, is_over = engine.run(
            state, usage, water, flow_state, link_state, problem, groups, clock, events, streams, marks, tree,
            now, budget, log, logged, record_rates,
        )  # fmt: skip
        done += finished
        steps += passed
        if progress is not None:
            progress(done, tasks)
        if passed == budget:
            budget = budget * 2 if perf_counter() - began < SLICE_S else max(budget // 2, 1)
        elif not is_over:
            log = engine.make_rate_log(len(log.time), log)
    if done < tasks:
        raise _stuck(state.end, tasks - done)
    if not record_rates:
        return Times(state.start, state.end, state.bound_by, steps)
    return Times(state.start, state.end, state.bound_by, steps, log.time[:logged], log.flow[:logged], log.rate[:logged])


def _stuck(end: NDArray[np.float64], left: int) -> PhysicsError:
    first = int(np.flatnonzero(np.isnan(end))[0])
    return PhysicsError(
        f"{left} of {len(end)} tasks never finish (the first is task {first}): a flow of low priority is starved "
        "forever, or a link has no capacity"
    )


def _own(column: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """A writable, contiguous column of one type: every other layout would compile the engine once more."""
    return np.require(column, dtype, ["C", "W"])
