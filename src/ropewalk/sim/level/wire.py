"""The flow level with what packets cost: headers, acknowledgements on the way back, and storing before forwarding.

Nothing of this needs packets to be simulated. Each packet adds a header to what a link carries, and an
acknowledgement to what the opposite link carries, which counts where that one has data to carry at the same time. A
packet must have arrived at a node before it leaves it, which delays a transfer by one packet a switch, or a host that
relays. Where nobody queues, that is all there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats
from ropewalk.routing import Routes
from ropewalk.sim.packet.flows import opposite_links
from ropewalk.sim.packet.settings import PacketSettings
from ropewalk.sim.trace import Trace
from ropewalk.task import Lockstep, TaskKind

MOST_SLICES = 64
"""Slices of a run in which it is asked who sends at the same time."""


@dataclass(frozen=True, eq=False)
class StoringRoutes(Routes):
    """Routes over nodes that have a whole packet before they send it on."""

    packet_s: Floats
    """What each link takes for one packet."""

    def latency(self) -> Floats:
        """The first packet takes its time on every link, all others only on the slowest, where bytes are counted."""
        if self.pairs == 0:
            return np.zeros(0)
        seconds, first = self.packet_s[self.link], self.link_start[:-1]
        path = np.add.reduceat(self.fabric.latency[self.link] + seconds, first) - np.maximum.reduceat(seconds, first)
        return np.asarray(np.maximum.reduceat(path, self.path_start[:-1]), np.float64)


@dataclass(frozen=True)
class WireFormat:
    """Bytes of a full packet: what it carries, what it adds, and what comes back for it."""

    payload_bytes: int
    header_bytes: int
    ack_bytes: float
    """Of an acknowledgement, divided by the packets that it answers."""

    @property
    def payload_share(self) -> float:
        """Payload in a byte of a data packet."""
        return self.payload_bytes / (self.payload_bytes + self.header_bytes)

    @property
    def answer_share(self) -> float:
        """Bytes of acknowledgements for a byte on the wire."""
        return self.ack_bytes / (self.payload_bytes + self.header_bytes)

    def packets(self, size_bytes: Floats) -> Floats:
        """Packets of transfers of these sizes."""
        return np.asarray(np.ceil(size_bytes / self.payload_bytes), np.float64)

    def longest(self, size_bytes: Floats) -> float:
        """Bytes of the longest packet of transfers of these sizes, header included."""
        return float(min(self.payload_bytes, size_bytes.max(initial=0.0)) + self.header_bytes)


def wire_format(settings: PacketSettings) -> WireFormat:
    """The format of a transport; TCP receivers answer several packets at once.

    >>> from ropewalk.sim.transports import settings_named
    >>> wire_format(settings_named("rdma"))
    WireFormat(payload_bytes=1000, header_bytes=48, ack_bytes=60.0)
    >>> wire_format(settings_named("tcp")).ack_bytes
    32.0
    """
    answered = int(getattr(settings.transport, "ack_every", 1))
    return WireFormat(settings.payload_bytes, settings.header_bytes, settings.ack_bytes / answered)


def on_the_wire(run: Trace, form: WireFormat) -> Routes:
    """The routes of a flow-level run over links that carry headers and acknowledgements too.

    Acknowledgements count where a link has data to carry while they come. Who sends when is taken from the run.

    >>> from ropewalk.fabric import IdealSwitch
    >>> from ropewalk.routing import shortest
    >>> from ropewalk.sim import simulate
    >>> from ropewalk.task import Sketch
    >>> sketch = Sketch()
    >>> _ = sketch.transfer(0, 1, 1e6)
    >>> routes = shortest(IdealSwitch(2, bandwidth=1e9).build(), np.array([0]), np.array([1]))
    >>> slower = on_the_wire(simulate(sketch.graph(), routes), WireFormat(1000, 48, 60))
    >>> np.round(1e9 / slower.fabric.bandwidth[slower.link], 3).tolist()
    [1.048, 1.048]
    """
    graph, routes = run.graph, run.routes
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    pair = routes.rows_of(graph, transfer)
    size = graph.amount[transfer]
    packets = form.packets(size)
    opposite = opposite_links(routes.fabric)
    data, overhead = np.zeros(routes.fabric.links), np.zeros(routes.fabric.links)
    for share in _shares_of_slices(run.start[transfer], run.end[transfer]):
        some = np.flatnonzero(share)
        carried = _Carried(
            routes.link_bytes(pair[some], (size * share)[some]), routes.link_bytes(pair[some], (packets * share)[some])
        )
        data += carried.data
        overhead += carried.overhead(form, opposite)
    return _slower(routes, data, overhead, form.longest(size))


def _shares_of_slices(start: Floats, end: Floats) -> Iterator[Floats]:
    """The run cut into slices of time: which part of each transfer falls into each of them."""
    if not len(start):
        return
    edges = np.unique(np.concatenate([start, end]))
    if len(edges) > MOST_SLICES:
        edges = np.unique(np.quantile(edges, np.linspace(0.0, 1.0, MOST_SLICES)))
    span = np.maximum(end - start, 1e-300)
    if len(edges) == 1:
        yield np.ones(len(start))
        return
    for begin, stop in pairwise(edges.tolist()):
        yield np.maximum(np.minimum(end, stop) - np.maximum(start, begin), 0.0) / span


def rounds_on_the_wire(routes: Routes, rounds: Lockstep, form: WireFormat) -> Routes:
    """The same for rounds in lockstep, where what is under way together is known: one round at a time."""
    opposite = opposite_links(routes.fabric)
    data, overhead = np.zeros(routes.fabric.links), np.zeros(routes.fabric.links)
    longest = 0.0
    latency = routes.latency()
    for arrows, repeat in zip(rounds.arrows, rounds.repeats(), strict=True):
        size = arrows.size_bytes
        carried = _carried(routes, arrows.src_host, arrows.dst_host, size, form)
        seconds = float((carried.data / routes.fabric.bandwidth).max(initial=0.0))
        # A host sends alone until the first packets from others arrive: acknowledgements of those come later.
        delay = float(latency[routes.find(arrows.src_host, arrows.dst_host)].mean())
        together = max(0.0, 1 - delay / seconds) if seconds > 0 else 0.0
        data += repeat * carried.data
        overhead += repeat * carried.overhead(form, opposite, together)
        longest = max(longest, form.longest(size))
    return _slower(routes, data, overhead, longest)


@dataclass(frozen=True, eq=False)
class _Carried:
    """Payload and packets of each link."""

    data: Floats
    packets: Floats

    def overhead(self, form: WireFormat, opposite: NDArray[np.int32], together: float = 1.0) -> Floats:
        """Bytes that each link carries beside its payload while it carries payload."""
        answered = np.where(opposite >= 0, self.packets[opposite], 0.0)
        beside = form.header_bytes * self.packets + together * form.ack_bytes * answered
        return np.asarray(np.where(self.data > 0, beside, 0.0), np.float64)


def _carried(
    routes: Routes, src: NDArray[np.int32], dst: NDArray[np.int32], size: Floats, form: WireFormat
) -> _Carried:
    pair = routes.find(src, dst)
    return _Carried(routes.link_bytes(pair, size), routes.link_bytes(pair, form.packets(size)))


def _slower(routes: Routes, data: Floats, overhead: Floats, longest: float) -> Routes:
    fabric = routes.fabric
    cost = 1 + np.divide(overhead, data, out=np.zeros(fabric.links), where=data > 0)
    cost = np.round(cost, 9)  # links that differ by rounding alone stay equal, which symmetry needs
    slower = replace(fabric, bandwidth=fabric.bandwidth / cost)
    return StoringRoutes(
        slower, routes.pair_src, routes.pair_dst, routes.path_start, routes.share, routes.link_start, routes.link,
        longest / fabric.bandwidth, appended=routes.appended,
    )  # fmt: skip
