"""A table with a server a line and the switches above it, from the outermost to the leaf.

Three headers are known by name: `server,leaf` (with `pod` if there are several), `ip,DSW,PSW,ASW` as Alibaba publishes
Lingjun, and node labels as Kueue's topologies use them, with the host under `kubernetes.io/hostname`. Any other table
is read when its levels are told; its remaining column is the server.

Where there are several levels a switch is named by its whole path, `G6/P10/S14`: racks often have the same name in two
pods. Lingjun's do: ASW S14 occurs below three PSWs, and no pair of PSW and ASW has more than 8 hosts. Whoever takes
ASWs of one name for one switch tells `ASW` as the only level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ropewalk.documents import read_text
from ropewalk.documents.from_csv import table_rows
from ropewalk.errors import FabricError
from ropewalk.tenancy.imports.draft import Draft
from ropewalk.tenancy.imports.hints import Hints
from ropewalk.tenancy.imports.leaf_map import LeafMap

KUEUE_HOST = "kubernetes.io/hostname"


@dataclass(frozen=True)
class CsvColumns:
    """Which column is the server, and which are the levels above it."""

    server: str
    levels: tuple[str, ...]


KNOWN = (
    CsvColumns("server", ("leaf",)),
    CsvColumns("server", ("pod", "leaf")),
    CsvColumns("ip", ("DSW", "PSW", "ASW")),
)


def leaf_csv(path: Path, hints: Hints) -> LeafMap:
    """The leafs of a table of servers."""
    text = read_text(path, f"leaf table {path}", FabricError)
    rows = table_rows(text.removeprefix("\ufeff").splitlines(keepends=True), str(path), FabricError)
    header = [name.strip() for name in next(rows, (1, []))[1]]
    layout = _layout(path, header, hints.levels)
    draft = Draft(path)
    for line, cells in rows:
        _server(dict(zip(header, cells, strict=False)), len(cells) - len(header), layout, line, draft)
    return draft.finish()


def _server(cells: dict[str, str], excess: int, layout: CsvColumns, line: int, draft: Draft) -> None:
    if excess:
        draft.add(line, f"there are {abs(excess)} fields too {'many' if excess > 0 else 'few'}: fix the line")
        return
    values = [cells[column].strip() for column in (layout.server, *layout.levels)]
    if not all(values):
        empty = next(c for c, v in zip((layout.server, *layout.levels), values, strict=True) if not v)
        draft.add(line, f"the column {empty!r} is empty: fill it in")
        return
    server, *levels = values
    switches = ["/".join(levels[: depth + 1]) for depth in range(len(levels))]
    draft.server(server, switches[-1], line)
    for parent, child in pairwise(switches):
        draft.below(child, parent, line)


def _layout(path: Path, header: Sequence[str], levels: tuple[str, ...]) -> CsvColumns:
    if not any(header):
        raise FabricError(f"{path} is empty: begin with a header such as server,leaf")
    for name in header:
        if list(header).count(name) > 1:
            raise FabricError(f"{path}: line 1: the column {name!r} occurs twice: remove one of the two")
    if levels:
        return _told(path, header, levels)
    for layout in KNOWN:
        if set(header) == {layout.server, *layout.levels}:
            return layout
    if KUEUE_HOST in header and len(header) > 1:
        return CsvColumns(KUEUE_HOST, tuple(name for name in header if name != KUEUE_HOST))
    known = {column for layout in KNOWN for column in (layout.server, *layout.levels)}
    strange = [name for name in header if name not in known] or list(header)
    raise FabricError(
        f"{path}: line 1: the columns {', '.join(strange)} are unknown here: write server,leaf or server,pod,leaf or "
        f"ip,DSW,PSW,ASW or labels with {KUEUE_HOST}, or name the levels (--levels)"
    )


def _told(path: Path, header: Sequence[str], levels: tuple[str, ...]) -> CsvColumns:
    missing = [name for name in levels if name not in header]
    rest = [name for name in header if name not in levels]
    if missing:
        raise FabricError(f"{path}: line 1: there is no column {missing[0]!r}: name levels among {', '.join(header)}")
    server = KUEUE_HOST if KUEUE_HOST in rest else rest[0] if len(rest) == 1 else None
    if server is None:
        named = next((layout.server for layout in KNOWN if layout.server in rest), None)
        if named is None:
            raise FabricError(
                f"{path}: line 1: besides the levels there are {', '.join(rest) or 'no columns'}: "
                "name the column of servers 'server', or leave one column besides the levels"
            )
        server = named
    return CsvColumns(server, levels)
