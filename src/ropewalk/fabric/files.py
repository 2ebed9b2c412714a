"""Fabric files: YAML or JSON in, YAML or JSON out, the same fabric both ways.

The schema is described in docs/fabric-files.md. A file with mistakes is refused with all of them in one message, each
with its position.

>>> from ropewalk.fabric import Ring
>>> print(to_yaml(Ring(3).build()))
name: ring:3
hosts:
- h0
- h1
- h2
links:
- [h0, h1, 12500000000B/s]
- [h1, h2, 12500000000B/s]
- [h2, h0, 12500000000B/s]
<BLANKLINE>
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ropewalk.documents import Parser, parse_json, parse_yaml, read_text
from ropewalk.errors import FabricError, Findings
from ropewalk.fabric.document import rows_of
from ropewalk.fabric.fabric import Fabric
from ropewalk.fabric.nccl_cluster import cluster_of_document, is_cluster
from ropewalk.fabric.nccl_topology import read_nccl_topology
from ropewalk.fabric.sheet import assemble
from ropewalk.files import write_whole


def read_fabric(path: str | Path) -> Fabric:
    """Read a .yaml, .yml, .json, .graphml or .xml file (.xml: a topology that NCCL or RCCL dumped)."""
    file = Path(path)
    if file.suffix.lower() == ".xml":
        return read_nccl_topology(file)
    if file.suffix.lower() == ".graphml":
        from ropewalk.fabric.interchange import read_graphml

        return read_graphml(file)
    parse = PARSERS.get(file.suffix.lower())
    if parse is None:
        raise FabricError(
            f"fabric file {path}: the extension {file.suffix!r} is unknown: use .yaml, .yml, .json, .graphml or .xml"
        )
    subject = f"fabric file {path}"
    text = read_text(file, subject, FabricError)
    document = parse(text, subject, FabricError)
    if is_cluster(document):
        return cluster_of_document(document, subject, file.parent, file.stem)
    return parse_document(document, subject, file.stem)


def write_fabric(fabric: Fabric, path: str | Path) -> None:
    """Write a .yaml, .yml, .json or .graphml file, whole or not at all."""
    suffix = Path(path).suffix.lower()
    if suffix == ".graphml":
        from ropewalk.fabric.interchange import to_graphml

        write_whole(path, to_graphml(fabric))
    elif suffix in WRITERS:
        write_whole(path, WRITERS[suffix](fabric))
    else:
        raise FabricError(
            f"fabric file {path}: the extension {suffix!r} is unknown: use .yaml, .yml, .json or .graphml"
        )


def to_json(fabric: Fabric) -> str:
    """Write a fabric as JSON, one node or link a line."""
    parts = []
    for key, value in document_of(fabric).items():
        if isinstance(value, list):
            rows = ",\n    ".join(json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f"  {json.dumps(key)}: [\n    {rows}\n  ]" if value else f"  {json.dumps(key)}: []")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def to_yaml(fabric: Fabric) -> str:
    """Write a fabric as YAML, one node or link a line."""
    lines = []
    for key, value in document_of(fabric).items():
        if not isinstance(value, list):
            lines.append(f"{key}: {_flow(value)}")
        elif value:
            lines.append(f"{key}:")
            lines.extend(f"- {_flow(row)}" for row in value)
        else:
            lines.append(f"{key}: []")
    return "\n".join(lines) + "\n"


_PLAIN_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_./:-]*[A-Za-z0-9]|[0-9]+B/s")
_NOT_TEXT = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def _flow(value: Any) -> str:
    """One value on one line. YAML reads JSON strings, so a word that might mean something else is written as one."""
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, str) and _PLAIN_WORD.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    """A double-quoted YAML string. JSON writes signs beyond 16 bits as two halves, which YAML does not join."""
    return '"' + "".join(f"\\U{ord(c):08X}" if ord(c) > 0xFFFF else json.dumps(c)[1:-1] for c in text) + '"'


def document_of(fabric: Fabric) -> dict[str, Any]:
    """The fabric as the plain lists and dictionaries that its file holds."""
    names, hosts = fabric.node_names, fabric.hosts
    document: dict[str, Any] = {"name": fabric.name}
    if fabric.server is None:
        document["hosts"] = list(names[:hosts])
    else:
        servers = fabric.server.tolist()
        document["hosts"] = [{"name": name, "server": at} for name, at in zip(names, servers, strict=False)]
    if fabric.switches:
        levels = fabric.level[hosts:].tolist()
        document["switches"] = [{"name": n, "level": at} for n, at in zip(names[hosts:], levels, strict=True)]
    document["links"] = _link_rows(fabric)
    return document


def _link_rows(fabric: Fabric) -> list[Any]:
    """A link and the same link back right behind it are one duplex row; the order of links is kept."""
    columns = (fabric.link_src, fabric.link_dst, fabric.bandwidth, fabric.latency, fabric.cables)
    links = list(zip(*(column.tolist() for column in columns), strict=True))
    rows: list[Any] = []
    at = 0
    while at < len(links):
        src, dst, bandwidth, latency, cables = links[at]
        duplex = at + 1 < len(links) and links[at + 1] == (dst, src, bandwidth, latency, cables)
        at += 2 if duplex else 1
        ends, speed = (fabric.node_names[src], fabric.node_names[dst]), f"{_exactly(bandwidth)}B/s"
        if duplex and latency == 0 and cables == 1:
            rows.append([*ends, speed])
            continue
        row: dict[str, Any] = {"from": ends[0], "to": ends[1], "bandwidth": speed}
        row |= {"latency": f"{_exactly(latency)}s"} if latency else {}
        row |= {"cables": cables} if cables != 1 else {}
        row |= {} if duplex else {"duplex": False}
        rows.append(row)
    return rows


def _exactly(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def parse_document(document: object, subject: str, name: str) -> Fabric:
    """Turn what a YAML or JSON parser returned into a fabric."""
    findings = Findings(FabricError, subject)
    given, nodes, links = rows_of(document, findings)
    return assemble(findings, given or name, nodes, links)


PARSERS: dict[str, Parser] = {".yaml": parse_yaml, ".yml": parse_yaml, ".json": parse_json}
WRITERS: dict[str, Callable[[Fabric], str]] = {".yaml": to_yaml, ".yml": to_yaml, ".json": to_json}
