"""The fabric: hosts, switches and directed links, as frozen arrays.

A fabric is a multigraph: two cables between the same pair of switches are two links where a flow takes one of them
(per-flow hashing), or one link with `cables = 2` where the pair behaves as one pipe. Hosts are nodes 0 … H-1, so a
host id is a node id. A fabric knows nothing about routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import FabricError

DEFAULT_BANDWIDTH = 12.5e9
"""100 Gbps per link and direction, in bytes per second."""


class Builder(Protocol):
    """A frozen record of parameters whose `build()` derives the graph."""

    @property
    def expression(self) -> str:
        """The builder as written on the command line, such as `torus:8x8`."""
        ...

    @property
    def hosts(self) -> int: ...

    @property
    def bandwidth(self) -> float:
        """Bytes/s of a link of a host, one direction."""
        ...

    def build(self) -> Fabric: ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Fabric:
    """Nodes and directed links. Bandwidth is bytes/s of the whole link (all its cables), latency is seconds."""

    name: str
    node_names: tuple[str, ...]
    hosts: int
    """Nodes 0 … hosts-1 are hosts, the rest are switches."""
    level: NDArray[np.int16]
    """0 for hosts, then the tier of a switch (1 next to the hosts)."""
    link_src: NDArray[np.int32]
    link_dst: NDArray[np.int32]
    bandwidth: NDArray[np.float64]
    latency: NDArray[np.float64]
    cables: NDArray[np.int32]
    builder: Builder | None = None
    """The record this fabric was built from; None for fabrics read from files."""
    server: NDArray[np.int32] | None = None
    """For fabrics whose hosts are GPUs: the server each one sits in."""
    _index: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for array in (self.level, self.link_src, self.link_dst, self.bandwidth, self.latency, self.cables, self.server):
            if array is not None:
                array.setflags(write=False)

    @property
    def nodes(self) -> int:
        return len(self.node_names)

    @property
    def switches(self) -> int:
        return self.nodes - self.hosts

    @property
    def links(self) -> int:
        return len(self.link_src)

    def outgoing(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Links by their source node as CSR (start, link ids); link ids ascend within a node."""
        return self._by_node("out", self.link_src)

    def incoming(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Links by their destination node as CSR (start, link ids)."""
        return self._by_node("in", self.link_dst)

    def _by_node(self, key: str, ends: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        if key not in self._index:
            order = np.argsort(ends, kind="stable").astype(np.int32)
            start = np.zeros(self.nodes + 1, np.int64)
            np.cumsum(np.bincount(ends, minlength=self.nodes), out=start[1:])
            self._index[key] = (start, order)
        start, order = self._index[key]
        return start, order

    def link_name(self, link: int) -> str:
        return f"{self.node_names[self.link_src[link]]}->{self.node_names[self.link_dst[link]]}"

    def host_bandwidth(self) -> NDArray[np.float64]:
        """Bytes/s that each host can send, over all its links."""
        sent = self.link_src < self.hosts
        total = np.bincount(self.link_src[sent], weights=self.bandwidth[sent], minlength=self.hosts)
        return total.astype(np.float64)


@dataclass
class FabricDraft:
    """A fabric under construction: what builders and readers fill before they freeze it."""

    name: str
    host_names: list[str] = field(default_factory=list)
    switch_names: list[str] = field(default_factory=list)
    switch_levels: list[int] = field(default_factory=list)
    _blocks: list[tuple[NDArray[Any], ...]] = field(default_factory=list)

    def add_hosts(self, names: Sequence[str]) -> NDArray[np.int32]:
        if self.switch_names:
            raise FabricError(f"{self.name}: hosts must be added before switches")
        first = len(self.host_names)
        self.host_names.extend(names)
        return np.arange(first, first + len(names), dtype=np.int32)

    def add_switches(self, names: Sequence[str], level: int) -> NDArray[np.int32]:
        first = len(self.host_names) + len(self.switch_names)
        self.switch_names.extend(names)
        self.switch_levels.extend([level] * len(names))
        return np.arange(first, first + len(names), dtype=np.int32)

    def add_links(
        self, src: Any, dst: Any, bandwidth: Any, latency: Any = 0.0, cables: Any = 1, *, duplex: bool = True
    ) -> None:
        """Add links src -> dst (arrays broadcast); `duplex` adds the opposite direction right behind each of them."""
        block = np.broadcast_arrays(*map(np.atleast_1d, (src, dst, bandwidth, latency, cables)))
        a, b, speed, delay, count = (column.ravel() for column in block)
        if duplex:
            a, b = np.column_stack([a, b]).ravel(), np.column_stack([b, a]).ravel()
            speed, delay, count = np.repeat(speed, 2), np.repeat(delay, 2), np.repeat(count, 2)
        self._blocks.append((a, b, speed, delay, count))

    def freeze(self, builder: Builder | None = None, server: NDArray[np.int32] | None = None) -> Fabric:
        hosts = len(self.host_names)
        columns = [np.concatenate(column) if column else np.zeros(0) for column in zip(*self._blocks, strict=True)]
        src, dst, speed, delay, count = columns or [np.zeros(0)] * 5
        return Fabric(
            name=self.name,
            node_names=(*self.host_names, *self.switch_names),
            hosts=hosts,
            level=np.array([0] * hosts + self.switch_levels, np.int16),
            link_src=src.astype(np.int32),
            link_dst=dst.astype(np.int32),
            bandwidth=speed.astype(np.float64),
            latency=delay.astype(np.float64),
            cables=count.astype(np.int32),
            builder=builder,
            server=server,
        )
