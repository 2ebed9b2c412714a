"""Fabrics from and to NetworkX graphs and GraphML, for the tools that draw and analyse graphs.

Nodes carry `kind` (host or switch), `level` and, where known, `server`; edges carry `bandwidth` (bytes/s, or text with
a unit), `latency` (s, or text with a unit), `cables`, and `link`, their number in the fabric.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropewalk import units
from ropewalk.documents import read_text
from ropewalk.documents.from_xml import parse_xml
from ropewalk.errors import FabricError, Findings, UnitError
from ropewalk.fabric.fabric import Fabric
from ropewalk.fabric.sheet import LinkRow, NodeRow, assemble

if TYPE_CHECKING:
    import networkx


def to_networkx(fabric: Fabric) -> networkx.MultiDiGraph[str]:
    """The fabric as a directed multigraph whose nodes are named as in the fabric.

    >>> from ropewalk.fabric import Ring
    >>> to_networkx(Ring(4).build()).number_of_edges()
    8
    """
    import networkx

    graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(name=fabric.name)
    for node, (name, level) in enumerate(zip(fabric.node_names, fabric.level.tolist(), strict=True)):
        graph.add_node(name, kind="host" if node < fabric.hosts else "switch", level=level)
        if fabric.server is not None and node < fabric.hosts:
            graph.nodes[name]["server"] = int(fabric.server[node])
    columns = (fabric.link_src, fabric.link_dst, fabric.bandwidth, fabric.latency, fabric.cables)
    for number, (src, dst, bandwidth, latency, cables) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        ends = fabric.node_names[src], fabric.node_names[dst]
        graph.add_edge(*ends, bandwidth=bandwidth, latency=latency, cables=cables, link=number)
    return graph


def from_networkx(graph: networkx.Graph[Any], name: str | None = None, bandwidth: float | None = None) -> Fabric:
    """A fabric from any NetworkX graph; edges of an undirected graph are duplex links.

    A graph in which no node has a `kind` is a direct-connect fabric: all its nodes are hosts. `bandwidth` (bytes/s) is
    for edges that have none.
    """
    subject = name or str(graph.graph.get("name") or "graph")
    findings = Findings(FabricError, subject)
    has_kinds = any("kind" in data for _, data in graph.nodes(data=True))
    nodes = [_node(str(node), data, has_kinds, findings) for node, data in graph.nodes(data=True)]
    edges = list(graph.edges(data=True))
    if all(type(data.get("link")) is int for *_, data in edges):
        edges.sort(key=lambda edge: edge[2]["link"])
    links = [_link(str(src), str(dst), data, graph.is_directed(), bandwidth, findings) for src, dst, data in edges]
    return assemble(findings, subject, nodes, links)


def to_graphml(fabric: Fabric) -> str:
    """The fabric as the text of a GraphML file."""
    import networkx

    stream = io.BytesIO()
    try:
        networkx.write_graphml_xml(to_networkx(fabric), stream, named_key_ids=True)
    except ValueError as problem:
        raise FabricError(f"{fabric.name} cannot be written as GraphML: {problem}: rename the node") from None
    return stream.getvalue().decode()


def from_graphml(text: str, name: str | None = None) -> Fabric:
    """A fabric from the text of a GraphML file; `name` is for files that have none."""
    import networkx

    subject = name or "graph"
    content = text.encode()
    parse_xml(content, subject, FabricError, texts=True)  # no entities, no depth, an encoding that exists
    try:
        graph = networkx.read_graphml(io.BytesIO(content), force_multigraph=True)
    except (SyntaxError, networkx.NetworkXError, ValueError, LookupError, TypeError, AttributeError) as problem:
        raise FabricError(f"{subject} is not GraphML: {problem}: export it again") from None
    return from_networkx(graph, str(graph.graph.get("name") or subject))


def read_graphml(path: Path) -> Fabric:
    subject = f"fabric file {path}"
    return from_graphml(read_text(path, subject, FabricError), subject)


def _node(name: str, data: dict[str, Any], has_kinds: bool, findings: Findings) -> NodeRow:
    where = f"node {name!r}"
    kind = data.get("kind") if has_kinds else "host"
    if kind not in ("host", "switch"):
        findings.add(f"{where}: kind is {kind!r}: set it to host or switch")
    level = 0 if kind == "host" else _whole(data.get("level", 1), 1, f"{where}: level", findings)
    server = None if data.get("server") is None else _whole(data["server"], 0, f"{where}: server", findings)
    return NodeRow(name, level, where, server)


def _link(
    src: str, dst: str, data: dict[str, Any], directed: bool, bandwidth: float | None, findings: Findings
) -> LinkRow:
    where = f"edge {src!r} to {dst!r}"
    if "bandwidth" not in data and bandwidth is None:
        findings.add(f"{where}: has no bandwidth: add the attribute in bytes/s or as text such as 100Gbps")
    speed = _number(data.get("bandwidth", bandwidth), "bandwidth", where, findings)
    latency = _number(data.get("latency", 0.0), "latency", where, findings)
    cables = _whole(data.get("cables", 1), 1, f"{where}: cables", findings)
    return LinkRow(src, dst, speed, latency or 0.0, cables, not directed, where)


READERS = {"bandwidth": units.bandwidth, "latency": units.seconds}


def _number(value: object, what: str, where: str, findings: Findings) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return None if value is None else float(value)
    try:
        return READERS[what](str(value))
    except UnitError as problem:
        findings.add(f"{where}: {problem}")
        return None


def _whole(value: object, minimum: int, what: str, findings: Findings) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        findings.add(f"{what} is {value!r}: give a whole number, {minimum} or more")
        return minimum
    return value
