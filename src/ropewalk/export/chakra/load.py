"""The files of a trace as nodes: everything that is wrong with them is found before anything is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ropewalk.documents import read_bytes, read_json
from ropewalk.documents.limits import MOST_OF_A_TRACE
from ropewalk.errors import Findings, GraphError
from ropewalk.export.chakra import names
from ropewalk.export.chakra.schema import Node, Value, decode_metadata, decode_node
from ropewalk.export.chakra.wire import WireError, records
from ropewalk.export.chakra.write import et_path, group_path, rank_files
from ropewalk.files import is_there

MOST_LISTED = 50
"""Findings that are listed; the rest is counted."""


class TraceFindings(Findings):
    """Findings about a trace, of which there may be as many as nodes: the first ones are listed."""

    def __init__(self, prefix: Path) -> None:
        super().__init__(GraphError, f"Chakra trace {prefix}")
        self.more = 0

    def add(self, message: str) -> None:
        if len(self.messages) < MOST_LISTED:
            super().add(message)
        else:
            self.more += 1

    def raise_if_any(self) -> None:
        if self.more:
            self.messages.append(f"… and {self.more} more")
            self.more = 0
        super().raise_if_any()


@dataclass
class Loaded:
    """Nodes by rank and number, the groups by their name, and what the files say about themselves."""

    nodes: list[dict[int, Node]]
    groups: dict[str, NDArray[np.int32]]
    about: dict[str, Value]

    @property
    def ranks(self) -> int:
        return len(self.nodes)


def load(prefix: Path, findings: TraceFindings) -> Loaded:
    """Read all files of a trace; what cannot be read is a finding."""
    files = dict(rank_files(prefix))
    if not files:
        findings.add(f"there is no file {et_path(prefix, 0)}: give the path up to the dot before the rank")
        findings.raise_if_any()
    missing = [rank for rank in range(max(files)) if rank not in files]
    if missing:
        shown = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")
        findings.add(
            f"{len(missing)} rank{'s have' if len(missing) > 1 else ' has'} no file (rank {shown}), but "
            f"{files[max(files)].name} is there: add them, or remove leftovers of another trace"
        )
    about: dict[str, Value] = {}
    nodes = [_rank(files.get(rank), about, findings) for rank in range(max(files) + 1)]
    loaded = Loaded(nodes, _groups(group_path(prefix), len(nodes), findings), about)
    said = loaded.about.get(names.RANKS)
    if isinstance(said, int) and said != loaded.ranks and not missing:
        findings.add(
            f"the files are of a step of {said} ranks, but there are {loaded.ranks} of them: "
            "add those that are missing, or remove leftovers of another trace"
        )
    return loaded


def _rank(path: Path | None, about: dict[str, Value], findings: TraceFindings) -> dict[int, Node]:
    nodes: dict[int, Node] = {}
    if path is None:
        return nodes
    try:
        found = records(read_bytes(path, path.name, GraphError, MOST_OF_A_TRACE))
        if not found:
            raise WireError("the file is empty")
        about |= decode_metadata(found[0])
        for message in found[1:]:
            node = decode_node(message)
            if node.id in nodes:
                findings.add(f"{path.name}: node {node.id} ({node.name}) occurs twice: give every node its own number")
            nodes[node.id] = node
    except WireError as problem:
        findings.add(f"{path.name} cannot be read: {problem}; write it again")
    except GraphError as problem:
        findings.add(str(problem))
    return nodes


def _groups(path: Path, ranks: int, findings: TraceFindings) -> dict[str, NDArray[np.int32]]:
    """The communicator groups; a trace without any needs no file."""
    if not is_there(path):
        return {}
    try:
        document = read_json(path, path.name, GraphError)
    except GraphError as problem:
        findings.add(str(problem))
        return {}
    groups: dict[str, NDArray[np.int32]] = {}
    for name, members in document.items() if isinstance(document, dict) else [("", None)]:
        valid = isinstance(members, list) and all(type(rank) is int and 0 <= rank < ranks for rank in members)
        if not valid or not members or len(set(members)) < len(members):
            findings.add(f"{path.name}: group {name!r} is not a list of distinct ranks from 0 to {ranks - 1}")
        else:
            groups[name] = np.array(members, np.int32)
    return groups
