"""A packet-level run as the trace that all else reads: times of tasks, bytes of links, what held them back."""

from __future__ import annotations

import numpy as np

from ropewalk.ragged import ranges
from ropewalk.sim.packet import PacketTrace
from ropewalk.sim.trace import Trace
from ropewalk.task import TaskKind


def seen_as_trace(run: PacketTrace) -> Trace:
    """The same times; a transfer is held back by the link of its way that was busiest over the run."""
    graph, routes = run.graph, run.routes
    bound_by = np.full(graph.tasks, -1, np.int32)
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    if len(transfer):
        busiest = _busiest_of_pairs(run)
        bound_by[transfer] = busiest[routes.rows_of(graph, transfer)]
    return Trace(graph, routes, run.start, run.end, bound_by, graph.tasks, run.events)


def _busiest_of_pairs(run: PacketTrace) -> np.ndarray:
    """For each pair of the routes, the link with the highest utilisation on any of its paths."""
    routes, use = run.routes, run.link_utilisation
    start = routes.link_start[routes.path_start]
    length = np.diff(start)
    pair = np.repeat(np.arange(routes.pairs), length)
    link = routes.link[ranges(start[:-1], length)]
    order = np.lexsort((np.arange(len(link)), -use[link], pair))
    first = np.concatenate([[True], np.diff(pair[order]) > 0])
    return np.asarray(link[order][first], np.int32)
