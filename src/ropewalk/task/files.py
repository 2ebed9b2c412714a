"""Task graph files: `.npz` columns for programs, YAML or JSON for people (docs/task-graphs.md).

The columns come back exactly as they were. A file that people wrote is refused with all its mistakes in one message,
each with its position.

>>> import tempfile
>>> from ropewalk.task import Sketch
>>> sketch = Sketch()
>>> _ = sketch.transfer(0, 1, 25e6, label="gradient")
>>> with tempfile.TemporaryDirectory() as folder:
...     save(sketch.graph(), f"{folder}/step.npz")
...     load(f"{folder}/step.npz").labels
('gradient',)
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ropewalk.documents import decode, parse_foreign_json, parse_json, parse_yaml, read_bytes
from ropewalk.documents.from_npz import parse_npz
from ropewalk.documents.limits import MOST_BYTES, MOST_OF_COLUMNS
from ropewalk.errors import GraphError
from ropewalk.fabric import Fabric
from ropewalk.files import write_whole
from ropewalk.task.document import graph_of
from ropewalk.task.graph import TaskGraph

COLUMNS = {
    "kind": np.int8,
    "place": np.int32,
    "peer": np.int32,
    "stream": np.int16,
    "amount": np.float64,
    "start_up": np.float64,
    "priority": np.int32,
    "rate_cap": np.float64,
    "label": np.int32,
    "dep_start": np.int64,
    "dep": np.int32,
}
"""The arrays of a `.npz` file, beside `labels`, which holds the UTF-8 bytes of a JSON list. A graph whose
transfers name rows of routes has the column `route` too, and runs only with the routes it was written for."""


def save(graph: TaskGraph, path: str | Path) -> None:
    """Write a graph as `.npz`, whole or not at all; the same graph gives the same bytes."""
    if Path(path).suffix.lower() != ".npz":
        raise GraphError(f"task graph file {path}: the extension is unknown: graphs are saved as .npz")
    labels = np.frombuffer(json.dumps(list(graph.labels)).encode(), np.uint8)
    content = io.BytesIO()
    names = [*COLUMNS, "route"] if (graph.route >= 0).any() else list(COLUMNS)
    np.savez(content, labels=labels, **{name: getattr(graph, name) for name in names})
    write_whole(path, content.getvalue())


def load(path: str | Path, fabric: Fabric | None = None) -> TaskGraph:
    """Read a `.npz`, `.yaml`, `.yml` or `.json` file; a fabric lets the file name hosts instead of numbering them."""
    file = Path(path)
    read = _READERS.get(file.suffix.lower())
    if read is None:
        known = ", ".join(_READERS)
        raise GraphError(f"task graph file {path}: the extension {file.suffix!r} is unknown: use one of {known}")
    subject = f"task graph file {path}"
    most = MOST_OF_COLUMNS if read is _from_columns else MOST_BYTES
    return read(read_bytes(file, subject, GraphError, most), subject, fabric)


def from_yaml(text: str, subject: str = "task graph", fabric: Fabric | None = None) -> TaskGraph:
    """Read a graph from the text of a YAML file."""
    return graph_of(parse_yaml(text, subject, GraphError), subject, fabric)


def from_json(text: str, subject: str = "task graph", fabric: Fabric | None = None) -> TaskGraph:
    """Read a graph from the text of a JSON file."""
    return graph_of(parse_json(text, subject, GraphError), subject, fabric)


def _from_columns(content: bytes, subject: str, fabric: Fabric | None) -> TaskGraph:
    remedy = "save it again with ropewalk.task.files.save"
    archive = parse_npz(content, subject, GraphError, remedy)
    missing = [name for name in ("labels", *COLUMNS) if name not in archive]
    if missing:
        raise GraphError(f"{subject} lacks the columns {', '.join(missing)}: {remedy}")
    known = COLUMNS | ({"route": np.int32} if "route" in archive else {})
    columns = {name: archive[name] for name in known}
    text = decode(archive["labels"].tobytes(), subject, GraphError)
    labels = parse_foreign_json(text, f"{subject}: labels", GraphError)
    for name, dtype in known.items():
        if columns[name].dtype != dtype or columns[name].ndim != 1:
            raise GraphError(f"{subject}: the column {name} is {columns[name].dtype}, not {np.dtype(dtype)}: {remedy}")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise GraphError(f"{subject}: the labels are not a list of text: {remedy}")
    graph = TaskGraph(**columns, labels=tuple(labels))
    graph.check()
    return graph


_READERS: dict[str, Callable[[bytes, str, Fabric | None], TaskGraph]] = {
    ".npz": _from_columns,
    ".yaml": lambda content, subject, fabric: from_yaml(decode(content, subject, GraphError), subject, fabric),
    ".yml": lambda content, subject, fabric: from_yaml(decode(content, subject, GraphError), subject, fabric),
    ".json": lambda content, subject, fabric: from_json(decode(content, subject, GraphError), subject, fabric),
}
