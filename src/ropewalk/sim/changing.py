"""A run on a network whose links change their speed meanwhile: cables that go down and come up, links that get slow.

Between two changes nothing is new, so each span is simulated as always; what is left of every task at its end is what
the next one begins with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats
from ropewalk.routing import Routes
from ropewalk.sim.simulate import simulate
from ropewalk.sim.trace import Trace
from ropewalk.task import TaskGraph, TaskKind

DOWN = 1e-9
"""Part of its speed that stands for a link that carries nothing: what has to cross it waits until it is up again."""
NEVER_S = 1e6
"""A run that takes longer than this waits for a link that stays down."""

Change = tuple[float, Floats]
"""When, and bytes/s of every link from then on."""


@dataclass
class _State:
    """What is left to be done, and what is known of the rest."""

    left: NDArray[np.bool_]
    graph: TaskGraph
    """With what is left of amounts and start-ups."""
    start: Floats
    end: Floats
    bound_by: NDArray[np.int32]


def simulate_changing(graph: TaskGraph, routes: Routes, changes: Sequence[Change]) -> Trace:
    """The flow-level run of a task graph while links change their speed, with the rates of transfers.

    >>> from ropewalk.fabric import Ring
    >>> from ropewalk.routing import shortest
    >>> from ropewalk.task import Sketch
    >>> sketch = Sketch()
    >>> _ = sketch.transfer(0, 1, 100.0)
    >>> routes = shortest(Ring(3, 50.0).build(), np.array([0]), np.array([1]))
    >>> half = routes.fabric.bandwidth / 2
    >>> round(simulate_changing(sketch.graph(), routes, [(1.0, half)]).makespan, 9)
    3.0
    """
    known, state = _without_latency(graph, routes)
    whole = state.graph
    spans = [(0.0, np.array(routes.fabric.bandwidth)), *sorted(changes, key=lambda change: change[0])]
    until = [*(at for at, _ in spans[1:]), np.inf]
    rates: list[tuple[Floats, NDArray[np.int64], Floats, NDArray[np.int32]]] = []
    classes = steps = 0
    for (begin, speeds), over in zip(spans, until, strict=True):
        task = np.flatnonzero(state.left)
        if not len(task) or over <= begin:
            continue
        rated = replace(known, fabric=replace(known.fabric, bandwidth=speeds))
        trace = simulate(_rest(state, task), rated, record_rates=True)
        rates.append(_rates(trace, begin, over - begin, classes))
        classes += 0 if trace.rate_class is None else 1 + int(trace.rate_class.max(initial=-1))
        steps += trace.steps
        _advance(state, task, trace, begin, over - begin)
    time, pair, rate, flow = (np.concatenate(column) for column in zip(*rates, strict=True))
    return Trace(
        whole, known, state.start, state.end, state.bound_by, graph.tasks, steps, time, pair, rate, flow
    )  # fmt: skip


def _without_latency(graph: TaskGraph, routes: Routes) -> tuple[Routes, _State]:
    """Latencies as parts of start-ups, of which some may be over when a link changes."""
    start_up = np.array(graph.start_up, np.float64)
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    start_up[transfer] += routes.latency()[routes.rows_of(graph, transfer)]
    known = replace(routes, fabric=replace(routes.fabric, latency=0 * routes.fabric.latency))
    nothing = np.full(graph.tasks, np.nan)
    state = _State(
        np.ones(graph.tasks, bool), replace(graph, start_up=start_up), nothing, nothing.copy(),
        np.full(graph.tasks, -1, np.int32),
    )  # fmt: skip
    return known, state


def _rest(state: _State, task: NDArray[np.int64]) -> TaskGraph:
    """The tasks that are left, waiting for those of them that are left; what computes goes on first."""
    graph = state.graph
    number = np.full(graph.tasks, -1, np.int32)
    number[task] = np.arange(len(task))
    owner = np.repeat(np.arange(graph.tasks), np.diff(graph.dep_start))
    kept = state.left[owner] & state.left[graph.dep]
    counts = np.bincount(number[owner[kept]], minlength=len(task))
    running = ~np.isnan(state.start[task]) & (graph.kind[task] == TaskKind.COMPUTE)
    first = int(graph.priority.min(initial=0)) - 1
    columns = {
        name: getattr(graph, name)[task]
        for name in ("kind", "place", "peer", "stream", "amount", "start_up", "rate_cap", "label", "route")
    }
    return replace(
        graph,
        **columns,
        priority=np.where(running, first, graph.priority[task]).astype(np.int32),
        dep_start=np.append(0, np.cumsum(counts)).astype(np.int64),
        dep=number[graph.dep[kept]],
    )


def _advance(state: _State, task: NDArray[np.int64], trace: Trace, begin: float, span: float) -> None:
    """Note what began and ended within a span, and take what was done off what is left."""
    graph = state.graph
    began = trace.start < span
    fresh = began & np.isnan(state.start[task])
    state.start[task[fresh]] = begin + trace.start[fresh]
    done = trace.end <= span
    state.end[task[done]] = begin + trace.end[done]
    state.bound_by[task[done]] = trace.bound_by[done]
    state.left[task[done]] = False
    amount, start_up = graph.amount.copy(), graph.start_up.copy()
    under_way = np.flatnonzero(began & ~done)
    passed = span - trace.start[under_way]
    computes = graph.kind[task[under_way]] == TaskKind.COMPUTE
    amount[task[under_way[computes]]] -= passed[computes]
    sends = ~computes & (graph.kind[task[under_way]] == TaskKind.TRANSFER)
    waited = np.minimum(passed[sends], start_up[task[under_way[sends]]])
    start_up[task[under_way[sends]]] -= waited
    amount[task[under_way[sends]]] -= _delivered(trace, under_way[sends], span)
    state.graph = replace(graph, amount=np.maximum(amount, 0.0), start_up=start_up)


def _delivered(trace: Trace, tasks: NDArray[np.int64], span: float) -> Floats:
    """Bytes that transfers under way have brought by the end of a span; those of one class share its rate evenly."""
    assert trace.rate is not None
    assert trace.rate_time is not None
    assert trace.rate_class is not None
    graph = trace.graph
    found = np.zeros(len(tasks))
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    class_of = _classes(trace, transfer)
    first = trace.start + graph.start_up
    for at, task in enumerate(tasks.tolist()):
        of_class = class_of[np.searchsorted(transfer, task)]
        mine = trace.rate_class == of_class
        same = transfer[class_of == of_class]
        knots = np.unique(np.concatenate([trace.rate_time[mine], first[same], trace.end[same], [span]]))
        knots = knots[(knots >= first[task]) & (knots <= span)]
        if len(knots) < 2:
            continue
        which = np.searchsorted(trace.rate_time[mine], knots[:-1] * (1 + 1e-12), side="right") - 1
        rate = np.where(which >= 0, trace.rate[mine][np.maximum(which, 0)], 0.0)
        middle = (knots[:-1] + knots[1:]) / 2
        sharing = ((first[same][:, None] <= middle) & (trace.end[same][:, None] > middle)).sum(axis=0)
        found[at] = float((rate / np.maximum(sharing, 1) * np.diff(knots)).sum())
    return found


def _classes(trace: Trace, transfer: NDArray[np.int64]) -> NDArray[np.int64]:
    """The flow class of every transfer, numbered as in the log of rates."""
    from ropewalk.sim.flow.system import system_of

    return system_of(trace.graph, trace.routes).place[transfer]


def _rates(
    trace: Trace, begin: float, span: float, classes: int
) -> tuple[Floats, NDArray[np.int64], Floats, NDArray[np.int32]]:
    """What transfers send within a span, in the time of the whole run; at its end everybody stops for a moment."""
    assert trace.rate is not None
    assert trace.rate_time is not None
    assert trace.rate_class is not None
    assert trace.rate_pair is not None
    inside = trace.rate_time < span
    time, pair, rate = trace.rate_time[inside] + begin, trace.rate_pair[inside], trace.rate[inside]
    flow = trace.rate_class[inside] + np.int32(classes)
    if np.isfinite(span):
        last, first = np.unique(flow, return_index=True)
        time = np.append(time, np.full(len(last), begin + span))
        pair, rate = np.append(pair, pair[first]), np.append(rate, np.zeros(len(last)))
        flow = np.append(flow, last)
    return time, pair, rate, flow
