"""The tasks of a trace as a table, one row a task: CSV for everybody, Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import GraphError, InputError
from ropewalk.extras import how_to_install
from ropewalk.files import require_writable, write_whole
from ropewalk.sim.trace import Trace
from ropewalk.task import TaskKind
from ropewalk.task.expand import Expansion

Column = list[Any] | NDArray[Any]


def task_table(trace: Trace, expansion: Expansion | None = None) -> dict[str, Column]:
    """Columns by name, rows in the order of the tasks; what does not apply to a task is None.

    `gpu` is where a task computes or sends from and `peer` where a transfer goes, as numbers of hosts; `bytes` are
    those on the wire. With the `expansion` that the trace is a run of, `operation` and `rank` say which operation of
    the step a task belongs to and which rank works.

    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.routing import shortest
    >>> from ropewalk.sim import simulate
    >>> from ropewalk.task import Sketch
    >>> sketch = Sketch()
    >>> _ = sketch.transfer(0, 1, 12.5e6, label="gradient")
    >>> routes = shortest(IdealSwitch(2).build(), np.array([0]), np.array([1]))
    >>> table = task_table(simulate(sketch.graph(), routes))
    >>> table["label"], table["bytes"], table["bottleneck"]
    (['gradient'], [12500000.0], ['h0->switch'])
    """
    graph = trace.graph
    names = [kind.name.lower() for kind in TaskKind]
    link_names = {link: trace.routes.fabric.link_name(link) for link in np.unique(trace.bound_by).tolist() if link >= 0}
    computes, moves = graph.kind == TaskKind.COMPUTE, graph.kind == TaskKind.TRANSFER
    table: dict[str, Column] = {
        "task": np.arange(graph.tasks),
        "label": [graph.labels[label] for label in graph.label.tolist()],
        "kind": [names[kind] for kind in graph.kind.tolist()],
        "gpu": _where(graph.place, graph.place >= 0),
        "stream": graph.stream,
        "peer": _where(graph.peer, moves),
        "start_s": trace.start,
        "end_s": trace.end,
        "seconds": _where(graph.amount, computes),
        "bytes": _where(graph.amount, moves),
        "bottleneck": [link_names.get(link) for link in trace.bound_by.tolist()],
    }
    return table if expansion is None else {**table, **_of_step(trace, expansion)}


def write_csv(trace: Trace, path: str | Path, expansion: Expansion | None = None) -> None:
    """The table as CSV with a header, floats exact to the last bit; the whole file or none."""
    require_writable(path)
    table = task_table(trace, expansion)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(_values(column) for column in table.values()), strict=True))
    write_whole(path, text.getvalue())


def write_parquet(trace: Trace, path: str | Path, expansion: Expansion | None = None) -> None:
    """The table as Parquet; the whole file or none. Needs pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            f"Parquet needs pyarrow, which is not installed: {how_to_install('tables')}, or write CSV"
        ) from None
    require_writable(path)
    columns = {name: _values(column) for name, column in task_table(trace, expansion).items()}
    table = pyarrow.table({name: pyarrow.array(values, _arrow_type(name)) for name, values in columns.items()})
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    write_whole(path, sink.getvalue().to_pybytes())


def _of_step(trace: Trace, expansion: Expansion) -> dict[str, Column]:
    if len(expansion.operation_of_task) != trace.graph.tasks:
        raise GraphError(
            f"the trace has {trace.graph.tasks} tasks, but the expansion has {len(expansion.operation_of_task)}: "
            "give the expansion whose graph was simulated"
        )
    rank_of_host = np.full(int(expansion.hosts.max(initial=-1)) + 1, -1)
    rank_of_host[expansion.hosts] = np.arange(len(expansion.hosts))
    has_place = trace.graph.place >= 0
    rank = np.full(trace.graph.tasks, -1)
    rank[has_place] = rank_of_host[trace.graph.place[has_place]]
    return {"operation": expansion.operation_of_task, "rank": _where(rank, has_place)}


def _where(values: NDArray[Any], holds: NDArray[np.bool_]) -> list[Any]:
    """The values, None where they mean nothing."""
    return [value if there else None for value, there in zip(values.tolist(), holds.tolist(), strict=True)]


def _values(column: Column) -> list[Any]:
    return column if isinstance(column, list) else column.tolist()


_TEXT = frozenset({"label", "kind", "bottleneck"})
_REAL = frozenset({"start_s", "end_s", "seconds", "bytes"})


def _arrow_type(name: str) -> Any:
    """The type of a column, the same whatever it holds: a column of nothing but None has one too."""
    return "string" if name in _TEXT else "float64" if name in _REAL else "int64"
