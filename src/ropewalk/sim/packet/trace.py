"""What happened, packet by packet added up: times of tasks, pauses, marks, drops, and what queues did over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.routing import Routes
from ropewalk.sim.packet.settings import PacketSettings
from ropewalk.task import TaskGraph, TaskKind

PS = 1e-12


@dataclass(frozen=True, eq=False)
class Samples:
    """The state of the network at regular instants."""

    time: NDArray[np.float64]
    queued_bytes: NDArray[np.int64]
    """By (sample, link): data waiting at the source of the link."""
    received_bytes: NDArray[np.int64]
    """By (sample, host): payload received since the start."""
    paused: NDArray[np.bool_]
    """By (sample, link): whether some class of the link was paused."""
    sent_bytes: NDArray[np.int64]
    """By (sample, link): bytes that it has put on its wire since the start, headers and acknowledgements included."""


@dataclass(frozen=True, eq=False)
class PacketTrace:
    """The packet-level run of a task graph over routes. Times come in picoseconds and, as properties, in seconds."""

    graph: TaskGraph
    routes: Routes
    settings: PacketSettings
    start_ps: NDArray[np.int64]
    end_ps: NDArray[np.int64]
    acknowledged_ps: NDArray[np.int64]
    """When the sender of a transfer knew that it had arrived; -1 for other tasks."""
    events: int
    hops: int
    """Packets put on a wire, pause frames and acknowledgements included."""
    pauses: NDArray[np.int64]
    """By link: pause frames that stopped it."""
    paused_ps: NDArray[np.int64]
    """By link: time in which some class of it was paused."""
    marks: NDArray[np.int64]
    drops: NDArray[np.int64]
    """By link: packets that were dropped in front of it."""
    most_queued: NDArray[np.int64]
    """By link: the longest that its queue ever was, in bytes."""
    wire_bytes: NDArray[np.int64]
    """By link: all bytes that it carried, headers and acknowledgements included."""
    timeouts: NDArray[np.int64]
    """By task: how often the sender of a transfer gave up waiting and sent again."""
    samples: Samples | None = None

    @property
    def start(self) -> NDArray[np.float64]:
        return np.asarray(self.start_ps * PS, np.float64)

    @property
    def end(self) -> NDArray[np.float64]:
        return np.asarray(self.end_ps * PS, np.float64)

    @property
    def makespan_ps(self) -> int:
        return int(self.end_ps.max(initial=0))

    @property
    def makespan(self) -> float:
        """Seconds until the last task was done."""
        return self.makespan_ps * PS

    @property
    def acknowledged_makespan(self) -> float:
        """Seconds until the last sender knew that its transfer had arrived."""
        return int(self.acknowledged_ps.max(initial=0)) * PS

    @property
    def link_utilisation(self) -> NDArray[np.float64]:
        """Part of its capacity that each link carried over the whole run, headers and acknowledgements included."""
        return np.asarray(self.wire_bytes / (self.routes.fabric.bandwidth * max(self.makespan, 1e-300)), np.float64)

    def node_pauses(self) -> NDArray[np.int64]:
        """Pause frames that each node received."""
        fabric = self.routes.fabric
        return np.bincount(fabric.link_src, weights=self.pauses, minlength=fabric.nodes).astype(np.int64)

    def pauses_by_kind(self) -> tuple[int, int]:
        """Pause frames received by hosts and by switches."""
        by_node = self.node_pauses()
        hosts = self.routes.fabric.hosts
        return int(by_node[:hosts].sum()), int(by_node[hosts:].sum())

    def throughput(self, host: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Payload bytes/s that a host received over time: the ends of the intervals, and the mean over each."""
        if self.samples is None:
            raise ValueError("nothing was sampled: simulate with sample_every_s")
        time = np.concatenate([[0.0], self.samples.time])
        got = np.concatenate([[0], self.samples.received_bytes[:, host]])
        return time[1:], np.diff(got) / np.maximum(np.diff(time), 1e-300)

    def summary(self) -> dict[str, object]:
        """The run in a few numbers."""
        hosts, switches = self.pauses_by_kind()
        transfers = self.graph.kind == TaskKind.TRANSFER
        return {
            "makespan_s": self.makespan,
            "transport": self.settings.transport.name,
            "transfers": int(transfers.sum()),
            "bytes": float(self.graph.amount[transfers].sum()),
            "wire_bytes": int(self.wire_bytes.sum()),
            "packet_hops": self.hops,
            "events": self.events,
            "pauses_of_hosts": hosts,
            "pauses_of_switches": switches,
            "marks": int(self.marks.sum()),
            "drops": int(self.drops.sum()),
            "timeouts": int(self.timeouts.sum()),
            "most_queued_bytes": int(self.most_queued.max(initial=0)),
        }
