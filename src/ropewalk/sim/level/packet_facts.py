"""A packet-level run in what tables and pages need: pauses by node, marks, drops, throughput and queues over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric
from ropewalk.sim.packet import PacketTrace

CURVE_POINTS = 240
"""Of a run: samples are taken this often, going by what the flow level says about its length."""
PACKETS_A_SAMPLE = 20
"""What a link carries from one sample to the next at least: with fewer packets a curve shows rounding, not rates."""


class PausedNodes(NamedTuple):
    """How pause frames spread over nodes of one kind."""

    nodes: int
    paused: int
    """Nodes that received any."""
    median: float
    """Pause frames of the node in the middle, unpaused ones included."""
    most: int
    most_at: str | None
    """The node that received most, the first of several; None where none received any."""

    @classmethod
    def of(cls, pauses: NDArray[np.int64], names: NDArray[np.str_]) -> PausedNodes:
        first = int(pauses.argmax())
        most_at = str(names[first]) if pauses[first] else None
        return cls(len(pauses), int((pauses > 0).sum()), float(np.median(pauses)), int(pauses[first]), most_at)

    def __str__(self) -> str:
        if not self.paused:
            return f"none of {self.nodes:,} paused"
        return f"{self.paused:,} of {self.nodes:,} paused, median {self.median:,g}, most {self.most:,} ({self.most_at})"


@dataclass(frozen=True, eq=False)
class PacketFacts:
    """What one run did to the network."""

    transport: str
    events: int
    hops: int
    wire_bytes: int
    marks: int
    drops: int
    timeouts: int
    """How often a sender of TCP heard nothing for so long that it began again."""
    most_queued_bytes: int
    """At a port of a switch; hosts that relay have all their memory."""
    paused_s: float
    """Added up over all links."""
    node_pauses: NDArray[np.int64] = field(repr=False)
    """Pause frames that each node received."""
    node_kind: tuple[str, ...] = field(repr=False)
    """Of each node: hosts, or the level of a switch."""
    node_name: tuple[str, ...] = field(repr=False)
    watched: str
    """The host whose throughput is kept."""
    watched_capacity: float
    """Bytes/s that all links into it carry."""
    time_s: NDArray[np.float64] = field(repr=False)
    received: NDArray[np.float64] = field(repr=False)
    """Payload bytes/s of the watched host in the interval that ends at each time."""
    longest_queue: NDArray[np.float64] = field(repr=False)
    """Bytes of the longest queue of a switch at each time."""
    paused_links: NDArray[np.float64] = field(repr=False)
    """Links that are paused at each time."""
    link_pauses: NDArray[np.int64] = field(repr=False)
    """Of each link: pause frames that stopped it."""
    link_marks: NDArray[np.int64] = field(repr=False)
    link_drops: NDArray[np.int64] = field(repr=False)
    """Of each link: packets that were marked, and dropped, in front of it."""

    def pauses_by_kind(self) -> dict[str, int]:
        """Pause frames received, by kind of node; kinds that could have received some stand there with 0."""
        kinds = np.array(self.node_kind)
        return {kind: int(self.node_pauses[kinds == kind].sum()) for kind in dict.fromkeys(self.node_kind)}

    @property
    def pauses(self) -> int:
        return int(self.node_pauses.sum())

    def pauses_over_nodes(self) -> dict[str, PausedNodes]:
        """How pause frames spread over the nodes of each kind."""
        kinds = np.array(self.node_kind)
        return {
            kind: PausedNodes.of(self.node_pauses[kinds == kind], np.array(self.node_name)[kinds == kind])
            for kind in dict.fromkeys(self.node_kind)
        }

    def most_paused(self) -> list[int]:
        """Nodes that received pause frames, those with most first."""
        order = np.argsort(-self.node_pauses, kind="stable")
        return [int(node) for node in order if self.node_pauses[node]]

    def as_json(self) -> dict[str, object]:
        return {
            "transport": self.transport,
            "events": self.events,
            "packet_hops": self.hops,
            "wire_bytes": self.wire_bytes,
            "pauses": self.pauses_by_kind(),
            "pauses_over_nodes": [
                {"kind": kind, **nodes._asdict()} for kind, nodes in self.pauses_over_nodes().items()
            ],
            "paused_nodes": [
                {"node": self.node_name[node], "kind": self.node_kind[node], "pauses": int(self.node_pauses[node])}
                for node in self.most_paused()
            ],
            "paused_s": self.paused_s,
            "marks": self.marks,
            "drops": self.drops,
            "timeouts": self.timeouts,
            "most_queued_bytes": self.most_queued_bytes,
        }


def facts_of(trace: PacketTrace, host: int = 0) -> PacketFacts:
    """What pages need of a run that was sampled; `host` is the one whose throughput is kept."""
    fabric, samples = trace.routes.fabric, trace.samples
    if samples is None:
        raise ValueError("nothing was sampled: simulate with sample_every_s")
    time, received = trace.throughput(host)
    at_switch = fabric.link_src >= fabric.hosts
    return PacketFacts(
        trace.settings.transport.name,
        trace.events,
        trace.hops,
        int(trace.wire_bytes.sum()),
        int(trace.marks.sum()),
        int(trace.drops.sum()),
        int(trace.timeouts.sum()),
        int(trace.most_queued[at_switch].max(initial=0)),
        float(trace.paused_ps.sum()) * 1e-12,
        trace.node_pauses(),
        tuple(node_kinds(fabric)),
        tuple(fabric.node_names),
        fabric.node_names[host],
        float(fabric.bandwidth[fabric.link_dst == host].sum()),
        time,
        received,
        samples.queued_bytes[:, at_switch].max(axis=1, initial=0).astype(np.float64),
        samples.paused.sum(axis=1).astype(np.float64),
        trace.pauses,
        trace.marks,
        trace.drops,
    )


def node_kinds(fabric: Fabric) -> list[str]:
    """Hosts, or which level of switches a node belongs to: edge switches of a tree are level 1.

    >>> from ropewalk.fabric import FatTree
    >>> sorted(set(node_kinds(FatTree(4).build())))
    ['hosts', 'level-1 switches', 'level-2 switches', 'level-3 switches']
    """
    return [
        "hosts" if node < fabric.hosts else f"level-{level} switches"
        for node, level in enumerate(fabric.level.tolist())
    ]


def sample_interval(expected_s: float, fabric: Fabric, wire_bytes: int) -> float:
    """How often to look, for a curve of some hundred points; less often in short runs."""
    slowest = float(fabric.bandwidth.min(initial=np.inf))
    return max(expected_s / CURVE_POINTS, PACKETS_A_SAMPLE * wire_bytes / slowest, 1e-7)
