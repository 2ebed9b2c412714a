"""Task graphs put together: one after the other, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ropewalk.task.graph import TaskGraph, TaskKind, make_graph


def parallel(*graphs: TaskGraph) -> TaskGraph:
    """All graphs at once; nothing of one waits for the other."""
    return _joined(graphs, [_NOBODY] * len(graphs))


def sequence(*graphs: TaskGraph) -> TaskGraph:
    """Each graph starts when the one before it is done (its sinks), through a marker."""
    parts: list[TaskGraph] = []
    waits: list[NDArray[np.int64]] = []
    first = 0
    for graph in graphs:
        if not graph.tasks:
            continue
        if parts:
            waits.append(parts[-1].sinks() + first - parts[-1].tasks)
            parts.append(_MARKER)
            first += 1
            waits.append(np.array([first - 1]))
        else:
            waits.append(_NOBODY)
        parts.append(graph)
        first += graph.tasks
    return _joined(parts, waits)


_NOBODY = np.zeros(0, np.int64)
_NOTHING = make_graph([], [], [], [], [0], [])
_MARKER = make_graph([TaskKind.MARKER], [-1], [-1], [0.0], [0, 0], [], labels=("join",))


def _joined(graphs: Sequence[TaskGraph], waits: Sequence[NDArray[np.int64]]) -> TaskGraph:
    """All graphs in one; the sources of graph g wait for the absolute tasks `waits[g]` as well."""
    if not graphs:
        return _NOTHING
    labels = tuple(dict.fromkeys(label for graph in graphs for label in graph.labels))
    number = {label: index for index, label in enumerate(labels)}
    deps, dep, label = [], [], []
    first = 0
    for graph, extra in zip(graphs, waits, strict=True):
        own = np.diff(graph.dep_start)
        deps.append(np.where(own == 0, len(extra), own))
        column = np.zeros(int(deps[-1].sum()), np.int64)
        from_extra = np.repeat(own == 0, deps[-1])
        column[~from_extra] = graph.dep.astype(np.int64) + first
        column[from_extra] = np.tile(extra, int((own == 0).sum()))
        dep.append(column)
        label.append(np.array([number[text] for text in graph.labels], np.int32)[graph.label])
        first += graph.tasks

    def column_of(name: str) -> NDArray[np.generic]:
        return np.concatenate([getattr(graph, name) for graph in graphs])

    return make_graph(
        column_of("kind"),
        column_of("place"),
        column_of("peer"),
        column_of("amount"),
        np.concatenate([[0], np.cumsum(np.concatenate(deps))]),
        np.concatenate(dep),
        stream=column_of("stream"),
        start_up=column_of("start_up"),
        priority=column_of("priority"),
        rate_cap=column_of("rate_cap"),
        label=np.concatenate(label),
        labels=labels,
        route=column_of("route"),
    )
