"""What TCP does to a network: line rate, fair shares, full queues, timeouts; and what it refuses to be told."""

from dataclasses import replace

import numpy as np
import pytest
from packet_worlds import run_incast

from ropewalk.errors import GraphError, InputError
from ropewalk.fabric import LeafSpine
from ropewalk.routing import ROUTERS, Routes
from ropewalk.sim.packet import (
    TRANSPORTS,
    Cubic,
    Dctcp,
    Hpcc,
    NewReno,
    PacketSettings,
    PathSpread,
    SwitchSettings,
    drop_tail,
    settings_named,
    simulate_packets,
)  # fmt: skip
from ropewalk.sim.packet.tcp_columns import Tcp
from ropewalk.task import Sketch, TaskGraph

FLAVOURS = [NewReno(), Cubic(), Dctcp()]
LINE = 5e9
WIRE = 1058


def tcp(
    transport: Tcp, queue_packets: int, mark_above: int | None = None, sample: float | None = None
) -> PacketSettings:
    return PacketSettings(
        transport, drop_tail(queue_packets, WIRE, mark_above_packets=mark_above), header_bytes=58, ack_bytes=64,
        sample_every_s=sample,
    )  # fmt: skip


@pytest.mark.parametrize("transport", FLAVOURS, ids=lambda transport: transport.name)
def test_one_flow_reaches_line_rate(transport: Tcp) -> None:
    trace = run_incast([20e6], tcp(transport, 1000))
    assert trace.makespan == pytest.approx(20e6 * WIRE / 1000 / LINE, rel=0.01)
    assert trace.drops.sum() == 0


def test_a_buffer_below_what_fits_on_the_path_holds_a_flow_down() -> None:
    # 20 segments a round trip of 4 × 10 µs on the wire, and little else.
    trace = run_incast([2e6], tcp(NewReno(buffer_segments=20), 1000), latency=10e-6)
    round_trips = 2e6 / 20e3
    assert trace.makespan == pytest.approx(round_trips * 40.5e-6, rel=0.05)


@pytest.mark.parametrize("transport", FLAVOURS, ids=lambda transport: transport.name)
def test_two_flows_share_a_port(transport: Tcp) -> None:
    # Two equal flows that share fairly end together, when the port has carried both.
    settings = tcp(transport, 1000, 65 if transport.name == "dctcp" else None)
    trace = run_incast([20e6, 20e6], settings)
    assert trace.makespan == pytest.approx(40e6 * WIRE / 1000 / LINE, rel=0.05)
    assert trace.end.min() > 0.8 * trace.makespan


@pytest.mark.parametrize("transport", FLAVOURS, ids=lambda transport: transport.name)
def test_flows_that_share_by_losing_packets_still_get_comparable_parts(transport: Tcp) -> None:
    patient = replace(transport, min_rto_s=1e-3, ack_delay_s=1e-4)
    trace = run_incast([20e6, 20e6, 20e6], tcp(patient, 100))
    assert trace.drops.sum() > 0
    assert trace.makespan < 2 * 60e6 * WIRE / 1000 / LINE
    assert trace.end.min() > 0.5 * trace.makespan


def test_dctcp_keeps_the_queue_near_its_threshold_where_newreno_fills_it() -> None:
    threshold = 65 * WIRE
    medians = {}
    for transport, mark_above in ((Dctcp(), 65), (NewReno(), None)):
        trace = run_incast([20e6] * 2, tcp(transport, 1000, mark_above, 20e-6))
        assert trace.samples is not None
        settled = trace.samples.time > 1e-3
        medians[transport.name] = np.median(trace.samples.queued_bytes[settled].max(axis=1))
    assert 0.4 * threshold < medians["dctcp"] < 1.2 * threshold
    assert medians["newreno"] > 3 * threshold


@pytest.mark.parametrize("min_rto", [10e-3, 200e-3])
def test_an_incast_into_a_small_queue_stalls_for_whole_timeouts(min_rto: float) -> None:
    # Fifteen initial windows of ten packets meet a queue of 32: some messages lose their end, which only timers find.
    quiet = 15 * 100e3 * WIRE / 1000 / LINE
    trace = run_incast([100e3] * 15, tcp(NewReno(min_rto_s=min_rto, ack_delay_s=1e-3), 32))
    assert trace.drops.sum() > 0
    assert quiet < 1e-3
    assert min_rto < trace.makespan < 8 * min_rto
    # Whoever ends after a timeout has counted one; a sender backs off, so few of them make up the whole run.
    assert trace.timeouts.shape == trace.end.shape
    assert ((trace.end > min_rto) <= (trace.timeouts > 0)).all()
    assert 1 <= trace.timeouts.max() <= 4
    assert trace.summary()["timeouts"] == trace.timeouts.sum()
    enough = run_incast([100e3] * 15, tcp(NewReno(min_rto_s=min_rto, ack_delay_s=1e-3), 2000))
    assert enough.drops.sum() == enough.timeouts.sum() == 0
    assert enough.makespan == pytest.approx(quiet, rel=0.1)


def test_a_lone_segment_waits_for_its_delayed_acknowledgement_but_not_at_the_end_of_a_message() -> None:
    settings = tcp(NewReno(initial_window=1, ack_delay_s=3e-3), 1000)
    assert run_incast([1000], settings).acknowledged_makespan < 10e-6
    assert 3e-3 < run_incast([2000], settings).acknowledged_makespan < 3e-3 + 20e-6


def test_more_segments_than_one_word_may_arrive_out_of_order() -> None:
    # A whole window of 200 behind a lost segment is held and acknowledged at once when the hole is filled.
    trace = run_incast([600e3] * 3, tcp(NewReno(initial_window=200, min_rto_s=5e-3, ack_delay_s=1e-3), 120))
    assert trace.drops.sum() > 0
    assert trace.makespan < 0.1


def test_sprayed_packets_overtake_each_other_and_still_arrive_once_and_in_order() -> None:
    patient = replace(settings_named("newreno"), transport=NewReno(duplicate_acks=100), spread=PathSpread.SPRAY)
    trace = simulate_packets(*_two_paths(), patient)
    assert trace.drops.sum() == 0
    assert trace.makespan == pytest.approx(2e6 * WIRE / 1000 / LINE, rel=0.1)


def _two_paths() -> tuple[TaskGraph, Routes]:
    sketch = Sketch()
    sketch.transfer(0, 2, 2e6)
    graph = sketch.graph()
    fabric = LeafSpine(leafs=2, spines=2, hosts_per_leaf=2, bandwidth=LINE, latency=1e-6).build()
    return graph, ROUTERS["spray"].make(0)(fabric, graph.place, graph.peer)


@pytest.mark.parametrize(
    ("transport", "says"),
    [
        (NewReno(initial_window=0), "initial window of TCP is 0 segments"),
        (NewReno(initial_window=20, buffer_segments=10), "does not fit into the buffer"),
        (NewReno(ack_every=0), "acknowledges every 0 segments"),
        (NewReno(min_rto_s=0.0), "retransmission timeout lies between 0.0 s"),
        (NewReno(min_rto_s=2.0, max_rto_s=1.0), "greatest that is not below"),
        (NewReno(initial_rto_s=-1.0), "initial retransmission timeout is -1.0 s"),
        (NewReno(ack_delay_s=float("nan")), "acknowledgements are delayed by nan s"),
        (NewReno(duplicate_acks=0), "0 duplicate acknowledgements"),
        (Cubic(beta=1.0), "beta of CUBIC is 1.0"),
        (Cubic(scale=-0.4), "C of CUBIC is -0.4"),
        (Dctcp(gain=0.0), "gain of DCTCP is 0.0"),
        (Dctcp(first_alpha=2.0), "first alpha of DCTCP is 2.0"),
        (Hpcc(target=0.0), "target utilisation of HPCC is 0.0"),
        (Hpcc(round_trip_s=0.0), "round trip of HPCC is 0.0 s"),
        (Hpcc(least_rate=0.0), "least rate of HPCC is 0.0"),
    ],
)
def test_impossible_constants_are_refused_with_a_remedy(transport: Tcp | Hpcc, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        PacketSettings(transport).check()
    assert "give" in str(caught.value) or "enlarge" in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (PacketSettings(NewReno(), payload_bytes=0), "payload of a packet is 0 bytes"),
        (PacketSettings(NewReno(), drop_tail(0, WIRE)), "queue limit of 0 bytes does not hold one packet"),
        (PacketSettings(Dctcp(), SwitchSettings(kmin_bytes=2e5, kmax_bytes=1e5)), "Kmin is 200000 bytes, above Kmax"),
        (PacketSettings(NewReno(), SwitchSettings(buffer_bytes=100)), "does not hold one packet"),
        (PacketSettings(Hpcc(), spread=PathSpread.SPRAY), "compares telemetry of consecutive packets"),
    ],
)
def test_impossible_networks_are_refused(settings: PacketSettings, says: str) -> None:
    with pytest.raises(InputError, match=says):
        settings.check()


def test_an_unknown_transport_is_refused_with_the_known_names() -> None:
    with pytest.raises(GraphError, match="there is no transport 'quic': did you mean cubic") as caught:
        settings_named("quic")
    assert all(name in str(caught.value) for name in TRANSPORTS)
