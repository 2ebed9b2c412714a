"""Cluster files: YAML or JSON as people write them, and the same document in the files that ropewalk writes.

The schema is described in docs/cluster-files.md. A file with mistakes is refused with all of them in one message, each
with its position.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, StrictBool, StrictInt

from ropewalk import units
from ropewalk.errors import Findings
from ropewalk.fabric.document import Name, Quantity, Strict, quantity
from ropewalk.fabric.expression import is_path
from ropewalk.files import found_from, seen_from
from ropewalk.hardware.cluster import MOST_GPUS, Cluster, Ports, Servers
from ropewalk.hardware.complete import groups_of, outside_of
from ropewalk.hardware.draft import ClusterDraft, GroupDraft
from ropewalk.hardware.entries import read_entry

Count = Annotated[StrictInt, Field(ge=1, le=MOST_GPUS)]


class ClusterFile(BaseModel):
    """The keys of a cluster file."""

    model_config = Strict
    name: Name | None = None
    description: str | None = None
    device: Name | None = None
    servers: list[Any] = []
    network: Name | None = None
    ports: Any = None
    latency: Quantity | None = None
    rails: StrictBool | None = None
    failed: list[Name] = []


class ServersEntry(BaseModel):
    model_config = Strict
    count: Count = 1
    gpus: Count
    device: Name | None = None
    nics: Count | None = None
    nic_bandwidth: Quantity | None = None
    nvlink_bandwidth: Quantity | None = None


class PortsEntry(BaseModel):
    model_config = Strict
    degree: Count
    duplex: StrictBool = True
    single_panel: StrictBool = False
    prices: str = "mixnet"


def is_cluster_document(document: object) -> bool:
    """Does this document describe servers by their numbers of GPUs, and not hosts or topology files?"""
    if not isinstance(document, Mapping):
        return True  # nothing else either: the reader of cluster files says so
    if {"hosts", "compute", "links"} & document.keys():
        return False
    rows = document.get("servers")
    listed = rows if isinstance(rows, list) else []
    return not any(isinstance(row, str) or (isinstance(row, Mapping) and "topology" in row) for row in listed)


def draft_of_document(document: object, source: str, folder: Path, findings: Findings) -> ClusterDraft:
    """What a document says of a cluster; network files are looked for from its folder."""
    sheet = read_entry(ClusterFile, document, "", findings)
    if sheet is None:
        findings.raise_if_any()
        raise AssertionError("a sheet that is not valid has findings")
    network: str | Ports | None = sheet.network
    if isinstance(network, str) and is_path(network):
        network = found_from(folder, network)
    if sheet.ports is not None:
        if network is not None:
            findings.add(
                f"there are two networks, network {sheet.network} and ports to be wired: describe one of the two"
            )
        entry = read_entry(PortsEntry, sheet.ports, "ports", findings)
        network = None if entry is None else Ports(entry.degree, entry.duplex, entry.single_panel, entry.prices)
    rows = [_group(row, f"servers[{number}]", sheet.device, findings) for number, row in enumerate(sheet.servers)]
    groups = tuple(row for row in rows if row is not None)
    if not sheet.servers:
        groups = _servers_of(network, sheet.device, findings)
    latency = None if sheet.latency is None else quantity(units.seconds, sheet.latency, "latency", findings)
    return ClusterDraft(source, groups, network, latency, sheet.rails, tuple(sheet.failed))


def _group(row: object, where: str, device: str | None, findings: Findings) -> GroupDraft | None:
    entry = read_entry(ServersEntry, row, where, findings)
    if entry is None:
        return None
    speeds = {
        name: quantity(units.bandwidth, text, f"{where}.{name}", findings)
        for name in ("nic_bandwidth", "nvlink_bandwidth")
        if (text := getattr(entry, name)) is not None
    }
    if device is not None and entry.device is not None and entry.device != device:
        findings.add(
            f"{where}.device: is {entry.device}, but device of the whole file is {device}: leave one of the two out"
        )
    return GroupDraft(entry.count, entry.gpus, entry.device or device, nics=entry.nics, **speeds)


def _servers_of(network: str | Ports | None, device: str | None, findings: Findings) -> tuple[GroupDraft, ...]:
    """The servers that a network holds itself."""
    named = isinstance(network, str) and (":" in network or is_path(network))
    sizes = outside_of(network).sizes if named else ()
    if not sizes and not findings:
        findings.add("servers: is missing: list groups of servers, such as - {count: 4, gpus: 8}")
    return groups_of(sizes, device)


def document_of(cluster: Cluster, folder: Path = Path()) -> dict[str, Any]:
    """The cluster as plain lists and mappings, as its file in a folder has them; it reads back to the same cluster."""
    document: dict[str, Any] = {"servers": [_row(group) for group in cluster.servers]}
    if isinstance(cluster.network, Ports):
        ports = cluster.network
        document["ports"] = {
            "degree": ports.degree,
            "duplex": ports.duplex,
            "single_panel": ports.single_panel,
            "prices": ports.prices,
        }
    else:
        network = cluster.network
        document["network"] = seen_from(folder, network) if is_path(network) else network
    if cluster.latency_s is not None:
        document["latency"] = f"{_exactly(cluster.latency_s)}s"
    if cluster.rails:
        document["rails"] = True
    if cluster.failed:
        document["failed"] = list(cluster.failed)
    return document


def _row(group: Servers) -> dict[str, Any]:
    return {
        "count": group.count,
        "gpus": group.gpus,
        "device": group.device,
        "nics": group.nics,
        "nic_bandwidth": f"{_exactly(group.nic_bandwidth)}B/s",
        "nvlink_bandwidth": f"{_exactly(group.nvlink_bandwidth)}B/s",
    }


def _exactly(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
