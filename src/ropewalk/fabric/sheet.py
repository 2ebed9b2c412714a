"""Rows of nodes and links as somebody wrote them, checked all at once and turned into a fabric.

Every reader (YAML, JSON, GraphML, NetworkX) ends here, so a mistake has the same words wherever it was made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ropewalk.documents.bounds import flaw_of_name
from ropewalk.errors import Findings
from ropewalk.fabric.checks import unreachable
from ropewalk.fabric.fabric import Fabric, FabricDraft

MOST_WHOLE = 2**31 - 1
MOST_LEVEL = 2**15 - 1
"""What the columns of a fabric hold."""


@dataclass(frozen=True)
class NodeRow:
    """One host (level 0) or switch (level 1 and up), with the place it was read from."""

    name: str
    level: int
    where: str
    server: int | None = None


@dataclass(frozen=True)
class LinkRow:
    """One link, or both directions of it; a speed that could not be read is None and was already reported."""

    src: str
    dst: str
    bandwidth: float | None
    latency: float
    cables: int
    duplex: bool
    where: str


def assemble(findings: Findings, name: str, nodes: Sequence[NodeRow], links: Sequence[LinkRow]) -> Fabric:
    """Check everything, raise every finding together, and freeze what is left when there are none."""
    nodes = _once_each(nodes, findings)
    hosts = [node for node in nodes if node.level == 0]
    switches = [node for node in nodes if node.level > 0]
    if len(hosts) < 2:
        findings.add(f"there {'is one host' if hosts else 'are no hosts'}: list at least two")
    _check_servers(hosts, findings)
    number = {node.name: at for at, node in enumerate([*hosts, *switches])}
    wired = [link for link in links if _joins_two_nodes(link, number, findings)]
    for node in nodes:
        _check_node(node, findings)
    for link in links:
        _check_quantities(link, findings)
    if any(row.level > MOST_LEVEL or (row.server or 0) > MOST_WHOLE for row in nodes):
        findings.raise_if_any()  # columns cannot hold them

    draft = FabricDraft(name, [node.name for node in hosts])
    for node in switches:
        draft.add_switches([node.name], node.level)
    _add_links(draft, wired, number)
    known = [node.server for node in hosts if node.server is not None]
    fabric = draft.freeze(server=np.array(known, np.int32) if known and len(known) == len(hosts) else None)
    # Connectivity is judged on what was drawn: a link whose speed is wrong still joins its two ends.
    for sentence in unreachable(fabric):
        findings.add(sentence)
    findings.raise_if_any()
    return fabric


def _add_links(draft: FabricDraft, rows: Sequence[LinkRow], number: dict[str, int]) -> None:
    """Rows in order, each direction of a duplex one right behind the other."""
    copies = np.array([2 if row.duplex else 1 for row in rows], np.int64)
    ends = np.array([(number[row.src], number[row.dst]) for row in rows], np.int64).reshape(-1, 2)
    speed = np.array([(row.bandwidth or math.nan, row.latency, row.cables) for row in rows], float).reshape(-1, 3)
    row_of = np.repeat(np.arange(len(rows)), copies)
    back = np.arange(len(row_of)) > np.repeat(np.cumsum(copies) - copies, copies)
    src, dst = ends[row_of, back.astype(int)], ends[row_of, (~back).astype(int)]
    draft.add_links(src, dst, *speed[row_of].T, duplex=False)


def _once_each(rows: Sequence[NodeRow], findings: Findings) -> list[NodeRow]:
    """The first row of every name; a second one is a finding."""
    first: dict[str, NodeRow] = {}
    for row in rows:
        if row.name in first:
            listed = first[row.name].where
            findings.add(f"{row.where}: node {row.name!r} is already listed at {listed}: remove or rename one of them")
        else:
            first[row.name] = row
    return list(first.values())


def _check_node(row: NodeRow, findings: Findings) -> None:
    why = flaw_of_name(row.name)
    if why is not None:
        findings.add(f"{row.where}: {why}")
    if row.level > MOST_LEVEL:
        findings.add(f"{row.where}: level is {row.level}: give {MOST_LEVEL} or less")
    if row.server is not None and row.server > MOST_WHOLE:
        findings.add(f"{row.where}: server is {row.server}: give {MOST_WHOLE} or less")


def _check_servers(hosts: Sequence[NodeRow], findings: Findings) -> None:
    without = [row.name for row in hosts if row.server is None]
    if 0 < len(without) < len(hosts):
        findings.add(f"host {without[0]!r} has no server while others have one: give every host a server, or none")


def _joins_two_nodes(row: LinkRow, number: dict[str, int], findings: Findings) -> bool:
    for end in dict.fromkeys((row.src, row.dst)):
        if end not in number:
            findings.add(f"{row.where}: node {end!r} is not listed: add it to hosts or switches, or correct the name")
    if row.src == row.dst:
        findings.add(f"{row.where}: connects {row.src!r} to itself: remove it")
        return False
    return row.src in number and row.dst in number


def _check_quantities(row: LinkRow, findings: Findings) -> None:
    if row.bandwidth is not None and not (math.isfinite(row.bandwidth) and row.bandwidth > 0):
        findings.add(
            f"{row.where}: bandwidth {row.bandwidth:g} is not positive: write it like 100Gbps, or remove the link"
        )
    if not (math.isfinite(row.latency) and row.latency >= 0):
        findings.add(f"{row.where}: latency {row.latency:g} s is not zero or more: write it like 1us")
    if row.cables > MOST_WHOLE:
        findings.add(f"{row.where}: cables is {row.cables}: write {MOST_WHOLE} or less")
    if row.cables < 1:
        findings.add(f"{row.where}: cables is {row.cables}: write 1 or more, or remove the link")
