"""What a packet-level run refuses, with the thing, the fact and the remedy."""

from typing import Any

import numpy as np
import pytest
from packet_fabrics import GBPS, US, star, together

from ropewalk.errors import FabricError, GraphError, RouteError
from ropewalk.fabric import FabricDraft
from ropewalk.routing import shortest
from ropewalk.sim.packet import Dcqcn, DcqcnPaper, PacketSettings, Roce, SwitchSettings, simulate_packets
from ropewalk.task import Sketch

A, B = np.array([0]), np.array([1])
NAN: Any = float("nan")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (PacketSettings(Roce(), payload_bytes=0), "payload of a packet is 0 bytes"),
        (PacketSettings(Roce(), SwitchSettings(buffer_bytes=500)), "does not hold one packet of 1048 bytes"),
        (PacketSettings(Roce(), SwitchSettings(kmin_bytes=9e5, kmax_bytes=1e5)), "Kmin is 900000 bytes, above Kmax"),
        (PacketSettings(Roce(), SwitchSettings(kmin_bytes=9e5)), "only one of Kmin and Kmax"),
        (PacketSettings(Roce(), SwitchSettings(pmax=1.5)), "Pmax is 1.5"),
        (PacketSettings(Roce(timeout_s=0.0)), "retransmission timeout is 0.0 s"),
        (PacketSettings(Roce(), sample_every_s=0.0), "samples every 0.0 s"),
        (PacketSettings(Roce(), payload_bytes=1000.5), "payload_bytes is 1000.5: give a whole number"),
        (PacketSettings(Roce(), header_bytes=-1), "headers of a packet are -1 bytes"),
        (PacketSettings(Roce(), ack_bytes=0), "an acknowledgement has 0 bytes"),
        (PacketSettings(Roce(), seed=-1), "the seed is -1"),
        (PacketSettings(Roce(), seed=2**63), "the seed is 9223372036854775808"),
        (PacketSettings(Roce(), SwitchSettings(buffer_bytes=NAN)), "buffer_bytes is nan: give a whole number"),
        (PacketSettings(Roce(), SwitchSettings(kmin_bytes=1.0, kmax_bytes=NAN)), "Kmax is nan bytes"),
        (PacketSettings(Roce(), SwitchSettings(headroom_bytes=-1)), "headroom of a port is -1 bytes"),
        (PacketSettings(Roce(), SwitchSettings(alpha_shift=31)), "alpha_shift is 31"),
        (PacketSettings(Roce(nack_interval_s=-1e-6)), "interval between NACKs is -1e-06 s"),
        (PacketSettings(Dcqcn(cut_period_s=-4e-6)), "cut period of DCQCN is -4e-06 s"),
        (PacketSettings(Dcqcn(add_per_line=NAN)), "increase of DCQCN is negative or endless"),
        (PacketSettings(DcqcnPaper(grow_bytes=0.0)), "byte counter of DCQCN is not positive"),
        (PacketSettings("rdma"), "'rdma' is not a transport"),
    ],
)
def test_impossible_settings_are_refused_with_a_remedy(settings: PacketSettings, words: str) -> None:
    routes = shortest(star(2), A, B)
    with pytest.raises(GraphError, match=words):
        simulate_packets(together(A, B, 1.0), routes, settings)


def test_a_buffer_that_headroom_eats_up_is_refused() -> None:
    routes = shortest(star(4), A, B)
    small = PacketSettings(Roce(), SwitchSettings(buffer_bytes=60_000))
    with pytest.raises(FabricError, match="switch s keeps 76384 bytes as reserve and headroom for 4 ports"):
        simulate_packets(together(A, B, 1.0), routes, small)


def test_a_cable_with_one_direction_is_refused() -> None:
    draft = FabricDraft("one way")
    draft.add_hosts(["a", "b"])
    draft.add_links(0, 1, 40 * GBPS, US, duplex=False)
    routes = shortest(draft.freeze(), A, B)
    with pytest.raises(RouteError, match="a->b of one way has no opposite direction"):
        simulate_packets(together(A, B, 1.0), routes, PacketSettings(Roce()))


def test_a_host_that_does_not_exist_is_refused() -> None:
    routes = shortest(star(2), A, B)
    with pytest.raises(GraphError, match="names host 7"):
        simulate_packets(together(np.array([0]), np.array([7]), 1.0), routes, PacketSettings(Roce()))


@pytest.mark.parametrize("latency", [-1e-6, NAN, np.inf, 1e7])
def test_a_wire_into_the_past_or_without_end_is_refused(latency: float) -> None:
    routes = shortest(star(3, latency=latency), A, B)
    with pytest.raises(FabricError, match=r"link h0->s has a latency of .*: give zero to 1000 s"):
        simulate_packets(together(A, B, 1.0), routes, PacketSettings(Roce()))


@pytest.mark.parametrize("gbps", [0.0, -40.0, NAN, 1e-9, 1e9])
def test_a_wire_that_carries_nothing_or_everything_is_refused(gbps: float) -> None:
    routes = shortest(star(3, gbps), A, B)
    with pytest.raises(FabricError, match=r"link h0->s carries .* bytes/s: give 1000 to 1e"):
        simulate_packets(together(A, B, 1.0), routes, PacketSettings(Roce()))


def test_a_start_up_before_the_start_is_refused() -> None:
    sketch = Sketch()
    sketch.transfer(0, 1, 1000, start_up=-1e-6)
    with pytest.raises(GraphError, match="negative or infinite start-up"):
        simulate_packets(sketch.graph(), shortest(star(2), A, B), PacketSettings(Roce()))


def test_a_transfer_longer_than_time_is_counted_is_refused() -> None:
    with pytest.raises(GraphError, match=r"a transfer of 1e\+19 bytes, takes up to 2e\+09 s.*simulate it as flows"):
        simulate_packets(together(A, B, 1e19), shortest(star(2), A, B), PacketSettings(Roce()))


def test_a_transfer_without_a_path_is_refused() -> None:
    routes = shortest(star(3), A, B)
    with pytest.raises(RouteError, match="no route from h0 to h2: route every pair"):
        simulate_packets(together(A, np.array([2]), 1.0), routes, PacketSettings(Roce()))


def test_acknowledgements_without_a_path_or_on_another_fabric_are_refused() -> None:
    routes = shortest(star(3), A, B)
    with pytest.raises(RouteError, match="no route from h1 to h0"):
        simulate_packets(together(A, B, 1.0), routes, PacketSettings(Roce()), ack_routes=routes)
    elsewhere = shortest(star(5), B, A)
    with pytest.raises(
        RouteError, match="on star of 3, those of acknowledgements on star of 5: route both on the same"
    ):
        simulate_packets(together(A, B, 1.0), routes, PacketSettings(Roce()), ack_routes=elsewhere)
