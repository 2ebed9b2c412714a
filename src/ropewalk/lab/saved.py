"""Fabrics and routes as plain values of a document, and back to the same arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from ropewalk.fabric import Fabric, builder
from ropewalk.fabric.fingerprint import fingerprint
from ropewalk.routing import Routes

SavedPath = tuple[int, int, float, tuple[int, ...]]
"""Source host, destination host, share, links."""


@dataclass(frozen=True)
class SavedFabric:
    """A fabric in columns, and the expression that builds the same one where there is one."""

    name: str
    nodes: tuple[str, ...]
    hosts: int
    level: tuple[int, ...]
    links: tuple[tuple[int, int, float, float, int], ...]
    """Source, destination, bytes/s, seconds, cables."""
    server: tuple[int, ...] | None = None
    expression: str | None = None
    bandwidth: float = 0.0
    latency_s: float = 0.0

    @classmethod
    def of(cls, fabric: Fabric) -> SavedFabric:
        columns = (fabric.link_src, fabric.link_dst, fabric.bandwidth, fabric.latency, fabric.cables)
        made = fabric.builder
        return cls(
            name=fabric.name,
            nodes=fabric.node_names,
            hosts=fabric.hosts,
            level=tuple(fabric.level.tolist()),
            links=tuple(zip(*(column.tolist() for column in columns), strict=True)),
            server=None if fabric.server is None else tuple(fabric.server.tolist()),
            expression=None if made is None else made.expression,
            bandwidth=0.0 if made is None else made.bandwidth,
            latency_s=float(fabric.latency.max(initial=0.0)),
        )

    @property
    def is_sound(self) -> bool:
        """Do all columns belong together, and all links join nodes that are there?"""
        nodes = len(self.nodes)
        numbers = (*self.level, *(self.server or ()), *(link[4] for link in self.links))
        return (
            2 <= self.hosts <= nodes == len(self.level) == len(set(self.nodes))
            and (self.server is None or len(self.server) == self.hosts)
            and all(0 <= number < 2**15 for number in self.level)
            and all(0 <= number < 2**31 for number in numbers)
            and all(0 <= src < nodes and 0 <= dst < nodes and src != dst for src, dst, *_ in self.links)
            and all(0 < speed < inf and 0 <= latency < inf and cables > 0 for *_, speed, latency, cables in self.links)
        )

    def fabric(self) -> Fabric:
        """The same fabric, with its builder where that still builds the same.

        >>> from ropewalk.fabric import Torus
        >>> SavedFabric.of(Torus((2, 3)).build()).fabric().builder
        Torus(shape=(2, 3), bandwidth=12500000000.0, latency=0.0)
        """
        columns = self._columns()
        if self.expression is None:
            return columns
        built = builder(self.expression, self.bandwidth, self.latency_s).build()
        return built if fingerprint(built) == fingerprint(columns) else columns

    def _columns(self) -> Fabric:
        src, dst, bandwidth, latency, cables = zip(*self.links, strict=True) if self.links else [()] * 5
        return Fabric(
            name=self.name,
            node_names=self.nodes,
            hosts=self.hosts,
            level=np.array(self.level, np.int16),
            link_src=np.array(src, np.int32),
            link_dst=np.array(dst, np.int32),
            bandwidth=np.array(bandwidth, np.float64),
            latency=np.array(latency, np.float64),
            cables=np.array(cables, np.int32),
            server=None if self.server is None else np.array(self.server, np.int32),
        )


def saved_paths(routes: Routes) -> tuple[SavedPath, ...]:
    """Every path of every pair."""
    pair, start = routes.pair_of_path, routes.link_start
    return tuple(
        (
            int(routes.pair_src[pair[path]]),
            int(routes.pair_dst[pair[path]]),
            float(routes.share[path]),
            tuple(routes.link[start[path] : start[path + 1]].tolist()),
        )
        for path in range(routes.paths)
    )


def routes_of(fabric: Fabric, paths: Sequence[SavedPath]) -> Routes:
    """The routes that were saved; pairs stand together and in order, as they were."""
    pairs = dict.fromkeys((src, dst) for src, dst, _, _ in paths)
    number = {pair: at for at, pair in enumerate(pairs)}
    counts = np.bincount([number[src, dst] for src, dst, _, _ in paths], minlength=len(pairs))
    return Routes(
        fabric=fabric,
        pair_src=np.array([src for src, _ in pairs], np.int32),
        pair_dst=np.array([dst for _, dst in pairs], np.int32),
        path_start=np.append(0, np.cumsum(counts)).astype(np.int64),
        share=np.array([share for _, _, share, _ in paths], np.float64),
        link_start=np.append(0, np.cumsum([len(links) for *_, links in paths])).astype(np.int64),
        link=np.array([link for *_, links in paths for link in links], np.int32),
    )
