"""Which level is enough: flows with headers where nobody queues, packets where somebody does, and the reason in words.

The rule comes from the comparison in `docs/packet.md`: where no link is offered more than it carries and messages are
not just a few packets, RDMA takes what the flow level with headers says, to about a per cent. So it does on congested
links of a collective in rounds, where senders are paused and nothing else: all have the same to do, and the links stay
full. It does not in task graphs whose transfers differ, nor where a congestion control slows senders down, nor with
TCP, whose windows grow by round trips.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.routing import Routes
from ropewalk.sim.level.contention import Contention, contention_of_rounds, contention_of_run
from ropewalk.sim.level.wire import WireFormat
from ropewalk.sim.packet.settings import PacketSettings
from ropewalk.sim.packet.transport import HPCC, PFC_ONLY
from ropewalk.sim.trace import Trace
from ropewalk.task import Lockstep, TaskKind

EVENTS_A_HOP = 4.0
"""Events that a data packet costs on each link of its way: it leaves and arrives, and so does its acknowledgement."""

MOST_EVENTS = 1e9
"""Events up to which a packet-level run is worth its time unless somebody says otherwise: some minutes."""

MOST_BURSTS = 0.01
"""Part of the time that packets meeting in step may cost before flows are no longer enough."""

MOST_LOPSIDED = 1.01
"""By how much the paths of one transfer may differ before it matters that flows move all of them together."""


@dataclass(frozen=True)
class LevelChoice:
    """The level that was chosen and why."""

    level: str
    """`wire` or `packet`."""
    why: str


def choose_for_rounds(
    rounds: Lockstep, routes: Routes, settings: PacketSettings, packets: WireFormat, most_events: float = MOST_EVENTS
) -> LevelChoice:
    """The level for a collective in rounds."""
    events = events_of_rounds(rounds, routes, packets)
    return _choice(routes, contention_of_rounds(rounds, routes, packets), settings, events, most_events, in_step=True)


def choose_for_run(
    trace: Trace, settings: PacketSettings, packets: WireFormat, most_events: float = MOST_EVENTS
) -> LevelChoice:
    """The level for a task graph, of which a flow-level run is at hand."""
    return _choice(
        trace.routes, contention_of_run(trace, packets), settings, events_of_run(trace, packets), most_events,
        in_step=False,
    )  # fmt: skip


def events_of_rounds(rounds: Lockstep, routes: Routes, packets: WireFormat) -> float:
    return sum(
        float(repeat) * expected_events(routes, routes.find(one.src_host, one.dst_host), one.size_bytes, packets)
        for one, repeat in zip(rounds.arrows, rounds.repeats(), strict=True)
    )


def events_of_run(trace: Trace, packets: WireFormat) -> float:
    graph = trace.graph
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    pair = trace.routes.rows_of(graph, transfer)
    return expected_events(trace.routes, pair, graph.amount[transfer], packets)


def expected_events(routes: Routes, pair: np.ndarray, size_bytes: np.ndarray, packets: WireFormat) -> float:
    """About how many events a packet-level run of these transfers takes, if nothing is sent twice."""
    hops = np.zeros(routes.pairs)
    np.add.at(hops, routes.pair_of_path, routes.share * routes.hops)
    return float((np.ceil(size_bytes / packets.payload_bytes) * hops[pair]).sum()) * EVENTS_A_HOP


def _choice(
    routes: Routes, found: Contention, settings: PacketSettings, events: float, most_events: float, *, in_step: bool
) -> LevelChoice:
    reason = _why_packets(routes, found, settings, in_step)
    if not reason:
        return LevelChoice("wire", _why_flows(found))
    if events > most_events:
        return LevelChoice(
            "wire",
            f"{reason}; but packets would take about {events:.1e} events, more than {most_events:.1e}: "
            "using flows with headers, which may be inaccurate here",
        )
    return LevelChoice("packet", reason)


def _why_flows(found: Contention) -> str:
    if found.queues_grow:
        return (
            "queues grow, but senders are only paused and congested links stay full: flows give the right time; pauses "
            "and queues need packets"
        )
    return "no link is overloaded and messages are long: flows are accurate"


def _why_packets(routes: Routes, found: Contention, settings: PacketSettings, in_step: bool) -> str:
    """What flows would not show, in words; nothing where they show it all."""
    if not settings.switch.pause:
        return (
            f"{settings.transport.name} grows its windows per round trip and may lose packets, which flows do not model"
        )
    if settings.transport.code == HPCC:
        return "hpcc keeps links slightly below full, which flows do not model"
    if found.queues_grow and settings.transport.code != PFC_ONLY:
        name = routes.fabric.link_name(found.link).replace("->", " → ")
        return f"{found.flows} flows offer {name} {found.overload:.3g} times its bandwidth, so queues grow"
    if not in_step and found.lopsided > MOST_LOPSIDED:
        return "the paths of some transfer are shared unevenly, so its parts end at different times"
    if not in_step and found.somebody_waits:
        return "different transfers share a link, and which ends first depends on packet scheduling"
    if found.bursts > MOST_BURSTS:
        return (
            f"messages are so short that packet collisions cost up to "
            f"{100 * min(found.bursts, 1.0):.2g} % of the time, which flows do not model"
        )
    return ""
