"""What each level says of a job on a lab: flows, flows whose headers and answers count, or TCP packet by packet.

The packets are those of the kernel: 1448 bytes of payload in frames of 1514, CUBIC on connections that are warm,
windows and queues as the lab has them, one acknowledgement for each large segment. Buckets are full when a job begins,
so what a link passes at once is taken off the transfers that use it first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import LabError
from ropewalk.lab.network import LabNetwork, LabSettings
from ropewalk.lab.queues import burst_bytes
from ropewalk.lab.result import POINTS, LabPrediction, LinkCurves, curves_of
from ropewalk.lab.timed import TimedFault, changes_of
from ropewalk.ragged import ranges
from ropewalk.routing import Routes
from ropewalk.sim import simulate
from ropewalk.sim.changing import simulate_changing
from ropewalk.sim.level import expected_events, on_the_wire, wire_format
from ropewalk.sim.packet import Cubic, NewReno, PacketSettings, PathSpread, drop_tail, simulate_packets
from ropewalk.sim.trace import Trace
from ropewalk.task import TaskGraph, TaskKind

HEADERS, FRAME = 52, 14
"""Bytes of IP and TCP headers (with timestamps) in a packet, and of Ethernet around it."""
MOST_EVENTS = 2e8
"""Of a packet-level prediction: a minute or so."""
_TIMEOUT_S = 10.0
"""Of connections that know their round trips: queues of a lab hold seconds, and lose nothing."""
_TCP = {"cubic": Cubic, "reno": NewReno}
_TOGETHER = 1e-9


@dataclass(frozen=True, eq=False)
class LabLoad:
    """Tasks on routes over links at the speeds of the lab; `free` has what their buckets pass at once of each task."""

    network: LabNetwork
    graph: TaskGraph
    routes: Routes
    free: NDArray[np.float64]

    @property
    def left(self) -> TaskGraph:
        """What is left for the links to carry at their speeds."""
        return replace(self.graph, amount=self.graph.amount - self.free)

    def curves(self, trace: Trace) -> LinkCurves:
        """Curves of a flow-level run of what is left, with what passed at once."""
        share = payload_share(self.network)
        transfer = np.flatnonzero(self.graph.kind == TaskKind.TRANSFER)
        at_once = self.routes.link_bytes(self.routes.rows_of(self.graph, transfer), self.free[transfer])
        rest = curves_of(trace, 1 / share)
        return replace(rest, sent_bytes=rest.sent_bytes + at_once / share)


def flow_level(network: LabNetwork, graph: TaskGraph, routes: Routes) -> tuple[Trace, LabLoad]:
    """The flow level on what headers leave of every link; and the load, for other levels.

    `routes` are over links at the speeds of the lab, headers included.
    """
    nothing = np.zeros(graph.tasks)
    first = _as_flows(LabLoad(network, graph, routes, nothing))
    load = LabLoad(network, graph, routes, _passed_at_once(network, first))
    return replace(_as_flows(load), graph=graph), load


def flow_level_with_faults(load: LabLoad, faults: Sequence[TimedFault]) -> Trace:
    """The flow level while links change."""
    slower = _less_headers(load)
    changes = changes_of(load.network, faults, slower.fabric.bandwidth)
    return replace(simulate_changing(load.left, slower, changes), graph=load.graph)


def predictions(load: LabLoad, flows: Trace, levels: Sequence[str]) -> tuple[LabPrediction, ...]:
    """The flow level, and further ones that are asked for."""
    found = [LabPrediction("flow", flows.start, flows.end, load.curves(flows))]
    return (*found, *(_FURTHER[level](load) for level in levels if level != "flow"))


def payload_share(network: LabNetwork) -> float:
    """Payload in a byte of a full packet.

    >>> from ropewalk.fabric import Ring
    >>> payload_share(LabNetwork(Ring(3).build())) == 1448 / 1514
    True
    """
    return (network.settings.mtu - HEADERS) / (network.settings.mtu + FRAME)


def below_packets(graph: TaskGraph, payload: int = LabSettings().mtu - HEADERS) -> float:
    """The part of all bytes that is in transfers which do not fill one packet.

    >>> from ropewalk.task import Sketch
    >>> sketch = Sketch()
    >>> _ = [sketch.transfer(0, 1, size) for size in (1000.0, 3000.0)]
    >>> below_packets(sketch.graph())
    0.25
    """
    sizes = graph.amount[graph.kind == TaskKind.TRANSFER]
    return float(sizes[sizes < payload].sum() / sizes.sum()) if sizes.any() else 0.0


def kernel_tcp(network: LabNetwork) -> PacketSettings:
    """TCP, queues and packets of a lab as the packet level knows them.

    >>> from ropewalk.fabric import Ring
    >>> found = kernel_tcp(LabNetwork(Ring(3, 2.5e6).build()))
    >>> found.wire_bytes, found.transport.name, found.transport.buffer_segments, found.transport.ack_every
    (1514, 'cubic', 22, 8)
    """
    settings, payload = network.settings, network.settings.mtu - HEADERS
    if settings.congestion not in _TCP:
        raise LabError(
            f"the packet level does not support {settings.congestion}: use {' or '.join(_TCP)}, or --level wire"
        )
    window = max(settings.window_bytes // payload, 1)
    segment = max(min(network.segment_bytes, settings.window_bytes // 2) // payload, 1)
    transport = _TCP[settings.congestion](
        initial_window=window, buffer_segments=window, ack_every=min(segment, 64), initial_rto_s=_TIMEOUT_S,
        min_rto_s=_TIMEOUT_S,
    )  # fmt: skip
    wire = settings.mtu + FRAME
    return PacketSettings(
        transport,
        switch=replace(drop_tail(settings.queue_bytes // wire, wire), fair=settings.fair),
        payload_bytes=payload,
        header_bytes=HEADERS + FRAME,
        ack_bytes=HEADERS + FRAME,
        ack_in_control_class=settings.fair,
        host_queue=True,
        token_buckets=True,
        spread=PathSpread.SPLIT,
    )


def _as_flows(load: LabLoad) -> Trace:
    return simulate(load.left, _less_headers(load), record_rates=True)


def _less_headers(load: LabLoad) -> Routes:
    """Routes over what headers leave of every link."""
    fabric = load.routes.fabric
    return replace(load.routes, fabric=replace(fabric, bandwidth=fabric.bandwidth * payload_share(load.network)))


def _with_answers(load: LabLoad) -> LabPrediction:
    form = wire_format(kernel_tcp(load.network))
    bare = simulate(load.left, load.routes)
    # Buckets pass packets at once and wait afterwards: no node stores one.
    answered = replace(load.routes, fabric=on_the_wire(bare, form).fabric)
    trace = simulate(load.left, answered, record_rates=True)
    return LabPrediction("wire", trace.start, trace.end, load.curves(replace(trace, routes=load.routes)))


def _packet_by_packet(load: LabLoad) -> LabPrediction:
    settings = kernel_tcp(load.network)
    transfer = np.flatnonzero(load.graph.kind == TaskKind.TRANSFER)
    rows = load.routes.rows_of(load.graph, transfer)
    events = expected_events(load.routes, rows, load.graph.amount[transfer], wire_format(settings))
    if events > MOST_EVENTS:
        raise LabError(f"packets would take about {events:.1e} events, more than {MOST_EVENTS:.0e}: run fewer bytes")
    every = max(simulate(load.left, load.routes).makespan / POINTS, 1e-6)
    run = simulate_packets(load.left, load.routes, replace(settings, sample_every_s=every))
    assert run.samples is not None
    at_once = load.routes.link_bytes(rows, load.free[transfer]) / payload_share(load.network)
    return LabPrediction(
        "packet",
        run.start,
        run.end,
        LinkCurves(run.samples.time, run.samples.sent_bytes + at_once),
        int(run.drops.sum()),
    )


_FURTHER: dict[str, Callable[[LabLoad], LabPrediction]] = {"wire": _with_answers, "packet": _packet_by_packet}
LEVELS = ("flow", *_FURTHER)


def _passed_at_once(network: LabNetwork, trace: Trace) -> NDArray[np.float64]:
    """Payload of tasks that find full buckets on all their links: those that use a link first share what it holds."""
    graph, routes = trace.graph, trace.routes
    free = np.zeros(graph.tasks)
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    if not len(transfer):
        return free
    rows = routes.rows_of(graph, transfer)
    start_of_row = routes.link_start[routes.path_start]
    length = np.diff(start_of_row)[rows]
    link = routes.link[ranges(start_of_row[rows], length)]
    begins = np.repeat(trace.start[transfer], length)
    first = np.full(routes.fabric.links, np.inf)
    np.minimum.at(first, link, begins)
    early = begins <= first[link] + _TOGETHER
    users = np.bincount(link[early], minlength=routes.fabric.links)
    speed = routes.fabric.bandwidth / payload_share(network)
    bucket = np.array([burst_bytes(round(8 * one), fair=network.settings.fair) for one in speed.tolist()])
    share = np.where(early, bucket[link] / np.maximum(users[link], 1), 0.0) * payload_share(network)
    owner = np.repeat(np.arange(len(transfer)), length)
    least = np.full(len(transfer), np.inf)
    np.minimum.at(least, owner, share)
    free[transfer] = np.minimum(np.where(np.isfinite(least), least, 0.0), graph.amount[transfer])
    return free
