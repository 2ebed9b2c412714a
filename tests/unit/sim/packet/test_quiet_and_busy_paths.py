"""Tiny worlds with times that can be said aloud: one flow, two flows, an incast, a pause that travels, a loss."""

import numpy as np
import pytest
from packet_fabrics import GBPS, US, chain, star, together

from ropewalk.fabric import FabricDraft, Torus
from ropewalk.routing import dimension, shortest
from ropewalk.sim.packet import (
    Completion,
    Dcqcn,
    PacketSettings,
    PacketTrace,
    Roce,
    SwitchSettings,
    simulate_packets,
)  # fmt: skip
from ropewalk.sim.packet.transport import TransportSettings

PS = 10**12
WIRE_PS = 209_600
"""1048 bytes at 40 Gbps."""
ACK_PS = 12_000


def _send(fabric_links: int, size: float, settings: PacketSettings) -> PacketTrace:
    routes = shortest(chain(fabric_links), np.array([0]), np.array([1]))
    return simulate_packets(together(np.array([0]), np.array([1]), size), routes, settings)


@pytest.mark.parametrize("links", [1, 2, 3, 6])
@pytest.mark.parametrize("packets", [1, 2, 17])
def test_one_flow_takes_serialization_propagation_and_a_packet_for_every_hop(links: int, packets: int) -> None:
    trace = _send(links, 1000.0 * packets, PacketSettings(Roce()))
    assert trace.makespan_ps == (packets - 1) * WIRE_PS + links * (WIRE_PS + 1_000_000)
    assert trace.acknowledged_ps[0] == trace.makespan_ps + links * (ACK_PS + 1_000_000)


def test_a_short_last_packet_is_short_on_the_wire() -> None:
    trace = _send(2, 1001, PacketSettings(Roce()))
    # It overtakes nothing: on the second link it waits for the long packet in front of it.
    short = (1 + 48) * 200
    assert trace.makespan_ps == 2 * (WIRE_PS + 1_000_000) + short


def test_the_sender_knows_half_a_round_trip_after_the_receiver() -> None:
    receiver = _send(2, 5000, PacketSettings(Roce()))
    sender = _send(2, 5000, PacketSettings(Roce(), completion=Completion.SENDER))
    assert sender.makespan_ps == receiver.acknowledged_ps[0] == sender.acknowledged_ps[0]
    assert sender.makespan_ps - receiver.makespan_ps == 2 * (ACK_PS + 1_000_000)


def test_a_capped_flow_keeps_its_distance() -> None:
    graph = together(np.array([0]), np.array([1]), 10_000.0, rate_cap=1e9)
    trace = simulate_packets(graph, shortest(chain(2), np.array([0]), np.array([1])), PacketSettings(Roce()))
    assert trace.makespan_ps == 9 * 1_048_000 + 2 * (WIRE_PS + 1_000_000)


@pytest.mark.parametrize("transport", [Roce(), Dcqcn()])
def test_two_flows_out_of_one_port_take_turns(transport: TransportSettings) -> None:
    src, dst = np.array([0, 0]), np.array([1, 2])
    trace = simulate_packets(together(src, dst, 1e5), shortest(star(3), src, dst), PacketSettings(transport))
    # 200 packets leave in turn; the last one is of the second flow.
    assert trace.end_ps.tolist() == [
        198 * WIRE_PS + 2 * (WIRE_PS + 1_000_000), 199 * WIRE_PS + 2 * (WIRE_PS + 1_000_000)
    ]  # fmt: skip


def test_two_flows_into_one_port_share_it() -> None:
    src, dst = np.array([0, 1]), np.array([2, 2])
    trace = simulate_packets(together(src, dst, 1e5), shortest(star(3), src, dst), PacketSettings(Roce()))
    assert sorted(trace.end_ps.tolist()) == [
        198 * WIRE_PS + 2 * (WIRE_PS + 1_000_000), 199 * WIRE_PS + 2 * (WIRE_PS + 1_000_000)
    ]  # fmt: skip
    # When the last pair arrives, as many packets have begun to leave as pairs have come.
    assert trace.most_queued.max() == 100 * 1048


@pytest.mark.parametrize("senders", [2, 5, 9])
def test_an_incast_pauses_its_senders_and_loses_nothing(senders: int) -> None:
    src, dst = np.arange(1, senders + 1), np.zeros(senders, np.int64)
    tight = SwitchSettings(buffer_bytes=300_000)
    trace = simulate_packets(together(src, dst, 1e6), shortest(star(10), src, dst), PacketSettings(Roce(), tight))
    assert trace.drops.sum() == 0
    hosts, switches = trace.pauses_by_kind()
    assert hosts > 0
    assert switches == 0
    assert (trace.node_pauses()[1 : senders + 1] > 0).all()
    assert trace.node_pauses()[0] == 0
    # The port of the receiver is never idle once it has begun.
    assert trace.makespan_ps == (senders * 1000 - 1) * WIRE_PS + 2 * (WIRE_PS + 1_000_000)


def test_a_pause_travels_upstream_and_hurts_a_flow_that_goes_elsewhere() -> None:
    """Hosts a, b and victim v share the link between two switches; a and b overload c, v sends to an idle d."""
    draft = FabricDraft("two switches")
    hosts = draft.add_hosts(["a", "b", "v", "c", "d"])
    left, right = draft.add_switches(["left", "right"], level=1)
    draft.add_links(hosts[:3], left, 40 * GBPS, US)
    draft.add_links(left, right, 80 * GBPS, US)
    draft.add_links(hosts[3:], right, 20 * GBPS, US)
    fabric = draft.freeze()
    src, dst = np.array([0, 1, 2]), np.array([3, 3, 4])
    size = np.array([1e6, 1e6, 1e5])
    tight = SwitchSettings(buffer_bytes=200_000, mark=False)
    trace = simulate_packets(together(src, dst, size), shortest(fabric, src, dst), PacketSettings(Roce(), tight))
    roomy = SwitchSettings(buffer_bytes=64 * 2**20, mark=False)
    alone = simulate_packets(together(src, dst, size), shortest(fabric, src, dst), PacketSettings(Roce(), roomy))
    by_node = trace.node_pauses()
    assert by_node[fabric.node_names.index("left")] > 0
    assert by_node[:3].sum() > 0
    assert trace.drops.sum() == alone.drops.sum() == alone.pauses.sum() == 0
    assert trace.end_ps[2] > 1.3 * alone.end_ps[2]


def test_a_paused_host_finishes_the_packet_it_is_sending_and_no_other() -> None:
    src, dst = np.array([1, 2]), np.array([0, 0])
    tight = SwitchSettings(buffer_bytes=120_000, reserve_bytes=1048, headroom_bytes=20_000)
    trace = simulate_packets(together(src, dst, 1e6), shortest(star(3), src, dst), PacketSettings(Roce(), tight))
    # What the headroom took in: never more than what a pause cannot stop any more.
    assert trace.drops.sum() == 0
    assert trace.paused_ps[[2, 4]].min() > 0


def test_time_paused_counts_once_whichever_classes_are() -> None:
    """Two hosts send two classes each to one receiver: all four are paused in turn, and often at the same time."""
    src, dst = np.array([1, 2, 1, 2]), np.zeros(4, np.int64)
    graph = together(src, dst, 1e6, priority=[0, 0, 1, 1])
    tight = SwitchSettings(buffer_bytes=150_000)
    trace = simulate_packets(graph, shortest(star(3), src, dst), PacketSettings(Roce(), tight, sample_every_s=1e-6))
    assert trace.samples is not None
    assert trace.drops.sum() == 0
    seen = trace.samples.paused[:, [2, 4]].mean(axis=0)
    counted = trace.paused_ps[[2, 4]] / trace.acknowledged_ps.max()
    assert counted == pytest.approx(seen, abs=0.02)
    assert 0.3 < counted.min() <= counted.max() < 1


def test_lost_packets_are_sent_again_from_the_gap_on() -> None:
    src, dst = np.array([1, 2, 3]), np.array([0, 0, 0])
    lossy = SwitchSettings(pause=False, queue_limit_bytes=8 * 1048, mark=False)
    settings = PacketSettings(Roce(nack_interval_s=20e-6, timeout_s=100e-6), lossy)
    trace = simulate_packets(together(src, dst, 1e5), shortest(star(4), src, dst), settings)
    assert trace.drops.sum() > 0
    sent = trace.wire_bytes[[2, 4, 6]].sum()
    assert sent > 300 * 1048
    assert trace.wire_bytes[1] >= 300 * 1048
    assert (trace.end_ps > 0).all()


def test_a_lost_end_of_a_message_is_found_by_the_timer_and_counted() -> None:
    src, dst = np.array([1, 2]), np.array([0, 0])
    lossy = SwitchSettings(pause=False, queue_limit_bytes=1048, mark=False)
    settings = PacketSettings(Roce(timeout_s=100e-6), lossy)
    trace = simulate_packets(together(src, dst, 3e3), shortest(star(3), src, dst), settings)
    # Packets come in pairs and one of each finds no room: of one message the last is lost, and nobody asks for it.
    assert trace.drops.sum() > 0
    assert trace.timeouts.max() >= 1
    late = trace.timeouts > 0
    assert (trace.end[late] > 100e-6).all()
    assert (trace.end[~late] < 100e-6).all()


def test_relays_pass_packets_on_and_pause_nobody() -> None:
    torus = Torus((4, 4), bandwidth=40 * GBPS, latency=US).build()
    src, dst = np.array([0]), np.array([10])
    routes = dimension()(torus, src, dst)
    trace = simulate_packets(together(src, dst, 1e5), routes, PacketSettings(Roce()))
    hops = int(routes.hops[0])
    assert hops == 4
    assert trace.makespan_ps == 99 * WIRE_PS + hops * (WIRE_PS + 1_000_000)


def test_a_host_takes_turns_between_its_own_packets_and_those_it_relays() -> None:
    ring = Torus((5,), bandwidth=40 * GBPS, latency=US).build()
    src, dst = np.array([0, 1]), np.array([2, 2])
    trace = simulate_packets(together(src, dst, 2e5), shortest(ring, src, dst), PacketSettings(Roce()))
    ends = np.sort(trace.end_ps)
    assert ends[1] - ends[0] <= 10 * WIRE_PS
    assert trace.pauses.sum() == 0


def test_an_urgent_class_goes_first() -> None:
    graph = together(np.array([0, 0]), np.array([1, 2]), 1e5, priority=[1, 0])
    routes = shortest(star(3), graph.place, graph.peer)
    trace = simulate_packets(graph, routes, PacketSettings(Roce()))
    # The first packet of the patient flow was on the wire already when the urgent one asked.
    assert trace.end_ps[1] == 100 * WIRE_PS + 2 * (WIRE_PS + 1_000_000)
    assert trace.end_ps[0] == 199 * WIRE_PS + 2 * (WIRE_PS + 1_000_000)
