"""Routes as rows that people and files can hold: the share of a path, then the nodes it passes.

Only for fabrics with one link from a node to another, as wirings are: a row names nodes, not links.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import Findings, RouteError
from ropewalk.fabric import Fabric
from ropewalk.routing.routes import Router, Routes, unique_pairs

Path = tuple[float, tuple[int, ...]]
"""Which part of the bytes of a pair takes this path, and the nodes from its source to its destination."""


def listed(routes: Routes) -> tuple[Path, ...]:
    """Every path of every pair, pair by pair.

    >>> from ropewalk.fabric import Ring
    >>> from ropewalk.routing import shortest
    >>> listed(shortest(Ring(3).build(), np.array([0]), np.array([1])))
    ((1.0, (0, 1)),)
    """
    ends = routes.fabric.link_dst[routes.link].tolist()
    starts, shares = routes.link_start.tolist(), routes.share.tolist()
    first = routes.pair_src[routes.pair_of_path].tolist()
    return tuple((shares[path], (first[path], *ends[starts[path] : starts[path + 1]])) for path in range(routes.paths))


def routes_listed(fabric: Fabric, paths: Sequence[Path]) -> Routes:
    """The routes that `listed` wrote down, proved to be routes of this fabric; what is wrong is named path by path."""
    findings = Findings(RouteError, f"routes on {fabric.name}")
    link_between = {
        ends: at for at, ends in enumerate(zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True))
    }
    rows: dict[tuple[int, int], list[tuple[float, list[int]]]] = {}
    for share, nodes in paths:
        if len(nodes) < 2 or any(not 0 <= node < fabric.nodes for node in nodes):
            findings.add(f"the path {list(nodes)} leaves the fabric: name two nodes or more, each below {fabric.nodes}")
            continue
        links = [link_between.get(hop, -1) for hop in pairwise(nodes)]
        if -1 in links:
            a, b = (fabric.node_names[node] for node in nodes[links.index(-1) :][:2])
            findings.add(f"the path {list(nodes)} needs a link from {a} to {b}, which does not exist: route around it")
            continue
        rows.setdefault((nodes[0], nodes[-1]), []).append((share, links))
    findings.raise_if_any()
    pairs = sorted(rows)
    flat = [path for pair in pairs for path in rows[pair]]
    routes = Routes(
        fabric=fabric,
        pair_src=np.array([src for src, _ in pairs], np.int32),
        pair_dst=np.array([dst for _, dst in pairs], np.int32),
        path_start=np.cumsum([0, *(len(rows[pair]) for pair in pairs)]).astype(np.int64),
        share=np.array([share for share, _ in flat], np.float64),
        link_start=np.cumsum([0, *(len(links) for _, links in flat)]).astype(np.int64),
        link=np.array([link for _, links in flat for link in links], np.int32),
    )
    routes.check()
    return routes


def router_listed(paths: Sequence[Path]) -> Router:
    """A router that knows these paths and no others."""
    kept: dict[int, Routes] = {}

    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        known = kept.get(id(fabric))
        if known is None or known.fabric is not fabric:
            kept.clear()
            known = kept[id(fabric)] = routes_listed(fabric, paths)
        pairs = unique_pairs(fabric, src, dst)
        rows = known.find(*pairs)
        count = np.diff(known.path_start)[rows]
        path = np.repeat(known.path_start[rows] - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
        hops = known.hops[path]
        hop = np.repeat(known.link_start[path] - np.cumsum(hops) + hops, hops) + np.arange(int(hops.sum()))
        return Routes(
            fabric, *pairs, np.append(0, np.cumsum(count)), known.share[path], np.append(0, np.cumsum(hops)),
            known.link[hop],
        )  # fmt: skip

    return route
