"""Explicit source routes: the paths a person or another tool has written down, checked before use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import Findings, RouteError
from ropewalk.fabric import Fabric
from ropewalk.routing.contract import SHARE_TOLERANCE
from ropewalk.routing.routes import Router, Routes, make_routes, starts, unique_pairs

Node = str | int
"""A node by name or by number."""
Path = Sequence[Node]
"""The nodes of a path, from the source host to the destination host."""
Paths = Path | Sequence[tuple[float, Path]]
"""One path, or several with their shares."""
SourceTable = Mapping[tuple[Node, Node], Paths] | Iterable[tuple[tuple[Node, Node], Paths]]


def source(table: SourceTable) -> Router:
    """Route by a table of written-down paths; a pair that is used and not in the table is an error.

    >>> from ropewalk.fabric import Ring
    >>> router = source({("h0", "h2"): [(0.75, ["h0", "h1", "h2"]), (0.25, ["h0", "h3", "h2"])]})
    >>> router(Ring(4).build(), np.array([0]), np.array([2])).share
    array([0.75, 0.25])
    """
    listed = list(table.items() if isinstance(table, Mapping) else table)

    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        pair_src, pair_dst = unique_pairs(fabric, src, dst)
        return _select(source_routes(fabric, listed), pair_src, pair_dst)

    return route


def source_routes(fabric: Fabric, table: SourceTable) -> Routes:
    """Routes of all pairs in the table. All mistakes in it are reported together.

    Where two nodes are joined by parallel links, the first path of a pair that crosses them takes the first link, its
    second path the next, and so on round.
    """
    findings = Findings(RouteError, f"source routes on {fabric.name}")
    reader = _Reader(
        fabric, {name: node for node, name in enumerate(fabric.node_names)}, _links_by_ends(fabric), findings
    )
    rows: dict[tuple[int, int], list[tuple[float, list[int]]]] = {}
    for (src, dst), paths in table.items() if isinstance(table, Mapping) else table:
        pair = reader.pair(src, dst)
        read = reader.paths(f"{src}->{dst}", pair, paths)
        if pair in rows:
            findings.add(f"pair {src}->{dst} is listed twice: put its paths into one entry with shares")
        elif pair is not None:
            rows[pair] = read
    findings.raise_if_any()

    pairs = sorted(rows)
    flat = [path for pair in pairs for path in rows[pair]]
    return make_routes(
        fabric,
        np.array([src for src, _ in pairs], np.int32),
        np.array([dst for _, dst in pairs], np.int32),
        np.repeat(np.arange(len(pairs)), [len(rows[pair]) for pair in pairs]),
        np.array([share for share, _ in flat], np.float64),
        np.repeat(np.arange(len(flat)), [len(links) for _, links in flat]),
        np.array([link for _, links in flat for link in links], np.int32),
    )


@dataclass
class _Reader:
    """Reads names into numbers and paths into links, and takes down what is wrong with them."""

    fabric: Fabric
    number: dict[str, int]
    links: dict[tuple[int, int], list[int]]
    findings: Findings

    def node(self, where: str, node: Node) -> int | None:
        known = self.number.get(node) if isinstance(node, str) else node
        if isinstance(known, int | np.integer) and 0 <= known < self.fabric.nodes:
            return int(known)
        self.findings.add(f"{where}: {self.fabric.name} has no node {node!r}: name a node of the fabric")
        return None

    def pair(self, src: Node, dst: Node) -> tuple[int, int] | None:
        where = f"pair {src}->{dst}"
        first, last = self.node(where, src), self.node(where, dst)
        if first is None or last is None:
            return None
        if max(first, last) >= self.fabric.hosts:
            self.findings.add(f"{where}: a switch is at its end: source routes lead from host to host")
            return None
        if first == last:
            self.findings.add(f"{where}: the host sends to itself: drop the pair")
            return None
        return first, last

    def paths(self, pair: str, ends: tuple[int, int] | None, paths: Paths) -> list[tuple[float, list[int]]]:
        try:
            shared = _with_shares(paths)
        except (TypeError, ValueError):
            self.findings.add(f"pair {pair}: its paths cannot be read: write [node, …] or [(share, [node, …]), …]")
            return []
        total = sum(share for share, _ in shared)
        if not all(share > 0 for share, _ in shared) or not abs(total - 1) <= SHARE_TOLERANCE:
            listed = ", ".join(f"{share:g}" for share, _ in shared) or "missing"
            self.findings.add(f"pair {pair}: its shares are {listed}: give positive shares that sum to 1")
        crossed: dict[tuple[int, int], int] = {}
        read = []
        for number, (share, path) in enumerate(shared, 1):
            where = f"pair {pair}" if len(shared) == 1 else f"pair {pair}, path {number}"
            read.append((share, self.path(where, ends, path, crossed)))
        return read

    def path(
        self, where: str, ends: tuple[int, int] | None, path: Path, crossed: dict[tuple[int, int], int]
    ) -> list[int]:
        nodes = [self.node(where, node) for node in path]
        if ends is not None and (len(nodes) < 2 or (nodes[0], nodes[-1]) != ends):
            shown = " ".join(map(str, path)) or "of no nodes"
            self.findings.add(f"{where}: the path {shown} does not lead from its source to its destination: list both")
        known = [node for node in nodes if node is not None]
        if len(set(known)) < len(known):
            self.findings.add(f"{where}: the path visits a node twice: remove the loop")
        links = []
        for near, far in pairwise(nodes):
            if near is None or far is None:
                continue
            parallel = self.links.get((near, far), [])
            if not parallel:
                names = self.fabric.node_names
                self.findings.add(
                    f"{where}: there is no link from {names[near]} to {names[far]}: name the nodes between"
                )
                continue
            turn = crossed.get((near, far), 0)
            crossed[near, far] = turn + 1
            links.append(parallel[turn % len(parallel)])
        return links


def _with_shares(paths: Paths) -> list[tuple[float, Path]]:
    if any(isinstance(entry, str | int | np.integer) for entry in paths) or not paths:
        return [(1.0, cast(Path, paths))]
    return [(float(share), list(path)) for share, path in cast(Sequence[tuple[float, Path]], paths)]


def _links_by_ends(fabric: Fabric) -> dict[tuple[int, int], list[int]]:
    ends: dict[tuple[int, int], list[int]] = {}
    for link, pair in enumerate(zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True)):
        ends.setdefault(pair, []).append(link)
    return ends


def _select(routes: Routes, pair_src: NDArray[np.int32], pair_dst: NDArray[np.int32]) -> Routes:
    """The routes of some of the pairs."""
    row = routes.find(pair_src, pair_dst)
    path = _rows(routes.path_start, row)
    hop = _rows(routes.link_start, path)
    return Routes(
        routes.fabric,
        pair_src,
        pair_dst,
        path_start=starts(np.diff(routes.path_start)[row]),
        share=routes.share[path],
        link_start=starts(routes.hops[path]),
        link=routes.link[hop],
    )


def _rows(start: NDArray[np.int64], row: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of all entries of the given rows of a CSR array."""
    length = np.diff(start)[row]
    return np.arange(length.sum()) + np.repeat(start[row] - starts(length)[:-1], length)
