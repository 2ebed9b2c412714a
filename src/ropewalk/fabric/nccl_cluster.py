"""Several servers, each described by an NCCL topology file, and the network that joins their ports.

The document says which servers there are and how they are joined: by a builder expression whose hosts are the ports
(`leaf-spine:4x4x8`), by `rails` (port i of every server on switch i), or by switches and links that are listed. Ports
are named `net<server>.<number>`; the schema is described in docs/fabric-files.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, StrictInt

from ropewalk import units
from ropewalk.errors import FabricError, Findings
from ropewalk.fabric.document import Name, Quantity, Strict, SwitchEntry, entries, link_row, quantity, validated
from ropewalk.fabric.expression import builder, has_open_size
from ropewalk.fabric.fabric import Fabric
from ropewalk.fabric.nccl_server import INSIDE, NcclServer, Port, without_ports
from ropewalk.fabric.nccl_speeds import SPEEDS, LinkSpeeds
from ropewalk.fabric.nccl_topology import read_server
from ropewalk.fabric.sheet import LinkRow, NodeRow, assemble

MOST_SERVERS = 4096


class ClusterSheet(BaseModel):
    """Servers from topology files and what joins them."""

    model_config = Strict
    name: Name | None = None
    description: str | None = None
    speeds: str = "physical"
    servers: list[Any]
    network: str | None = None
    wiring: str = "servers"
    bandwidth: Quantity | None = None
    latency: Quantity = "0s"
    switches: list[Any] = []
    links: list[Any] = []


class ServerEntry(BaseModel):
    model_config = Strict
    topology: Name
    count: Annotated[StrictInt, Field(ge=1, le=MOST_SERVERS)] = 1
    inside: str = "planned"


Order = Callable[[Port], tuple[int, int]]
WIRINGS: dict[str, Order] = {
    "servers": lambda port: (port.server, port.number),
    "rails": lambda port: (port.number, port.server),
}
"""In which order the ports of all servers are plugged into the hosts of a network."""


def is_cluster(document: object) -> bool:
    """Does this document speak of servers with topology files?"""
    return isinstance(document, dict) and "servers" in document


def cluster_of_document(document: object, subject: str, folder: Path, name: str) -> Fabric:
    """The fabric of a document; topology files are looked for from its folder."""
    findings = Findings(FabricError, subject)
    sheet = validated(ClusterSheet, document, "", findings)
    if sheet is None:
        findings.raise_if_any()
        raise AssertionError("a sheet that is not valid has findings")
    if sheet.speeds not in SPEEDS:
        findings.add(f"speeds: {sheet.speeds!r} is unknown: write {' or '.join(SPEEDS)}")
    server = _servers(sheet, folder, SPEEDS.get(sheet.speeds, SPEEDS["physical"]), findings)
    outside = _outside(sheet, server, findings)
    if sheet.network is None and not sheet.links:
        server = without_ports(server)
    nodes = [*server.gpus, *server.switches, *outside.nodes]
    return assemble(findings, sheet.name or name, nodes, [*server.nvlinks, *server.links, *outside.links])


def _servers(sheet: ClusterSheet, folder: Path, speeds: LinkSpeeds, findings: Findings) -> NcclServer:
    """All servers together, numbered in the order in which they are listed."""
    whole = NcclServer()
    if not sheet.servers:
        findings.add("servers: is empty: list at least one topology file")
    for number, row in enumerate(sheet.servers):
        where = f"servers[{number}]"
        entry = validated(ServerEntry, row if isinstance(row, dict) else {"topology": row}, where, findings)
        for copy in range(entry.count if entry is not None else 0):
            assert entry is not None
            path = folder / entry.topology
            own = Findings(FabricError, f"{where}: {entry.topology}")
            one = read_server(path, own, speeds, first=whole.servers)
            if entry.inside not in INSIDE:
                own.add(f"inside is {entry.inside!r}: write {', '.join(INSIDE)}")
            elif not own:
                one = INSIDE[entry.inside](one, own)
            if own:  # every copy has the same mistakes
                for message in own.messages:
                    findings.add(f"{own.subject}: {message}")
                break
            _join(whole, one, f"{own.subject} ({copy + 1} of {entry.count})")
    return whole


def _join(whole: NcclServer, one: NcclServer, where: str) -> None:
    whole.servers += one.servers
    whole.gpus += [replace(row, where=f"{where}: {row.where}") for row in one.gpus]
    whole.switches += [replace(row, where=f"{where}: {row.where}") for row in one.switches]
    whole.links += [replace(row, where=f"{where}: {row.where}") for row in one.links]
    whole.nvlinks += [replace(row, where=f"{where}: {row.where}") for row in one.nvlinks]
    whole.ports += one.ports


@dataclass(frozen=True)
class _Outside:
    nodes: list[NodeRow]
    links: list[LinkRow]


def _outside(sheet: ClusterSheet, server: NcclServer, findings: Findings) -> _Outside:
    """The network between the servers, in the one way in which the document describes it."""
    listed = bool(sheet.switches or sheet.links)
    if sheet.network is not None and listed:
        findings.add("network: is given together with switches or links: describe the network in one way only")
    if sheet.network is None and (sheet.bandwidth is not None or sheet.wiring != "servers"):
        findings.add("bandwidth and wiring: apply to a network, which is missing: add network, or remove them")
    if sheet.wiring not in WIRINGS:
        findings.add(f"wiring: {sheet.wiring!r} is unknown: write {' or '.join(WIRINGS)}")
    if listed or sheet.network is None:
        return _listed(sheet, server, findings)
    bandwidth = None if sheet.bandwidth is None else quantity(units.bandwidth, sheet.bandwidth, "bandwidth", findings)
    latency = quantity(units.seconds, sheet.latency, "latency", findings) or 0.0
    if not server.ports:
        if not findings:
            findings.add("network: the servers have no ports for it: add <net> elements, or remove network")
        return _Outside([], [])
    if sheet.network == "rails":
        return _rails(server, bandwidth, latency)
    ports = sorted(server.ports, key=WIRINGS.get(sheet.wiring, WIRINGS["servers"]))
    speed = bandwidth if bandwidth is not None else min(port.bandwidth for port in ports)
    return _built(sheet.network, ports, speed, latency, server.top, findings)


def _listed(sheet: ClusterSheet, server: NcclServer, findings: Findings) -> _Outside:
    nodes = [
        NodeRow(entry.name, server.top + entry.level, where)
        for where, entry in entries("switches", sheet.switches, SwitchEntry, findings)
    ]
    rows = (link_row(row, f"links[{number}]", findings) for number, row in enumerate(sheet.links))
    return _Outside(nodes, [row for row in rows if row is not None])


def _rails(server: NcclServer, bandwidth: float | None, latency: float) -> _Outside:
    """Port i of every server on switch i, at the speed of the port unless another is given."""
    numbers = sorted({port.number for port in server.ports})
    nodes = [NodeRow(f"rail{number}", server.top + 1, "network") for number in numbers]
    links = [
        LinkRow(port.name, f"rail{port.number}", bandwidth or port.bandwidth, latency, 1, True, "network")
        for port in server.ports
    ]
    return _Outside(nodes, links)


def _built(
    expression: str, ports: list[Port], bandwidth: float, latency: float, top: int, findings: Findings
) -> _Outside:
    """The network of an expression, whose hosts are the ports; hosts without a port are switches named `spare`."""
    try:
        hosts = len(ports) if has_open_size(expression) else None
        network = builder(expression, bandwidth, latency, hosts).build()
    except FabricError as problem:
        findings.add(f"network: {problem}")
        return _Outside([], [])
    if network.hosts < len(ports):
        findings.add(
            f"network: {expression} has {network.hosts} ports, but the servers have {len(ports)}: use a larger one"
        )
        return _Outside([], [])
    names = [port.name for port in ports]
    names += [f"spare{number}" for number in range(network.hosts - len(ports))]
    nodes = [NodeRow(name, top, "network") for name in names[len(ports) :]]
    names += network.node_names[network.hosts :]
    levels = (top + int(level) for level in network.level[network.hosts :])
    nodes += [NodeRow(name, level, "network") for name, level in zip(names[network.hosts :], levels, strict=True)]
    columns = (network.link_src, network.link_dst, network.bandwidth, network.latency, network.cables)
    links = [
        LinkRow(names[src], names[dst], speed, delay, cables, False, "network")
        for src, dst, speed, delay, cables in zip(*(column.tolist() for column in columns), strict=True)
    ]
    return _Outside(nodes, links)
