"""Whatever the sizes, queues and losses: every transport ends and delivers each byte once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packet_worlds import incast_of, step_through

from ropewalk.sim.packet import (
    Cubic,
    Dcqcn,
    DcqcnPaper,
    Dctcp,
    Hpcc,
    NewReno,
    PacketSettings,
    Roce,
    SwitchSettings,
    drop_tail,
    simulate_packets,
)  # fmt: skip
from ropewalk.sim.packet import world as w
from ropewalk.sim.packet.tcp_columns import HELD, HELD_MAP
from ropewalk.sim.packet.transport import TransportSettings

WIRE = 1058
TCP = [
    NewReno(min_rto_s=1e-3, ack_delay_s=2e-4),
    Cubic(min_rto_s=1e-3, ack_delay_s=2e-4),
    Dctcp(min_rto_s=1e-3, ack_delay_s=2e-4),
    NewReno(min_rto_s=1e-3, ack_delay_s=2e-4, ack_every=1, initial_window=70, buffer_segments=130),
]
ALL: list[TransportSettings] = [*TCP, Roce(), Dcqcn(), DcqcnPaper(), Hpcc()]

sizes = st.lists(st.integers(1, 150_000), min_size=1, max_size=6)


@pytest.mark.parametrize("transport", ALL, ids=lambda transport: transport.name)
@given(sizes=sizes, queue=st.integers(2, 60), control=st.booleans())
@settings(max_examples=25)
def test_a_lossy_incast_ends_with_every_byte_delivered_once(
    transport: TransportSettings, sizes: list[int], queue: int, control: bool
) -> None:
    # With acknowledgements in the class of the data, they are lost too where the way back is full.
    given_settings = PacketSettings(
        transport, drop_tail(queue, WIRE, mark_above_packets=queue // 2), header_bytes=58, ack_in_control_class=control,
        sample_every_s=1e-3,
    )  # fmt: skip
    graph, routes = incast_of(sizes)
    trace = simulate_packets(graph, routes, given_settings)
    assert trace.samples is not None
    # Received in order and counted once: neither less nor more than was sent.
    assert trace.samples.received_bytes[-1].tolist() == [sum(sizes), *[0] * len(sizes)]
    packets = sum(-(-size // 1000) for size in sizes)
    carried = sum(sizes) + packets * 58
    to_receiver = int(np.flatnonzero(routes.fabric.link_dst == 0)[0])
    assert trace.wire_bytes[to_receiver] >= carried
    # Each packet that was lost was sent again, and sending again is all that losses cost the senders' links.
    uplinks = routes.fabric.link_dst >= routes.fabric.hosts
    sent = trace.wire_bytes[uplinks & (routes.fabric.link_src > 0)].sum()
    assert sent >= carried
    if trace.drops.sum() == 0 and transport in TCP:
        assert sent == carried
    assert trace.makespan >= (sum(sizes) + packets * 58) / 5e9


@pytest.mark.parametrize("transport", ALL, ids=lambda transport: transport.name)
@given(sizes=sizes)
@settings(max_examples=15)
def test_nothing_is_lost_where_ports_pause(transport: TransportSettings, sizes: list[int]) -> None:
    graph, routes = incast_of(sizes)
    small = SwitchSettings(buffer_bytes=220_000)
    trace = simulate_packets(graph, routes, PacketSettings(transport, small, header_bytes=58))
    assert trace.drops.sum() == 0
    assert (trace.end_ps >= 0).all()


@pytest.mark.parametrize("transport", TCP, ids=lambda transport: f"{transport.name}{transport.ack_every}")
@given(sizes=st.lists(st.integers(1, 60_000), min_size=2, max_size=5), queue=st.integers(2, 20))
@settings(max_examples=10)
def test_delivery_is_in_order_and_nothing_stays_held(
    transport: TransportSettings, sizes: list[int], queue: int
) -> None:
    received = np.zeros(len(sizes), np.int64)

    def look(world: w.World) -> None:
        now = world.flows["received"]
        assert (now >= received).all()
        assert (world.flows["acked"] <= now).all()
        assert (world.flows["sent"] - world.flows["acked"] <= world.constants[1] * 1000).all()
        received[:] = now

    world = step_through(*incast_of(sizes), PacketSettings(transport, drop_tail(queue, WIRE), header_bytes=58), look)
    assert received.tolist() == sizes
    assert not world.counts[:, HELD].any()
    assert not world.counts[:, HELD_MAP:].any()
