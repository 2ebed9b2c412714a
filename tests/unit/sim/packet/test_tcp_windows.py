"""Windows over time, stepped by hand and against a plain-Python TCP: every change of every congestion window."""

from dataclasses import replace

import numpy as np
import pytest
from packet_fabrics import GBPS, US, together
from packet_worlds import changes_of, incast_of
from tcp_reference import Rules, incast

from ropewalk.fabric import FabricDraft
from ropewalk.routing import shortest
from ropewalk.sim.packet import Cubic, Dctcp, NewReno, PacketSettings, SwitchSettings
from ropewalk.sim.packet.rounding import PS_PER_S
from ropewalk.sim.packet.tcp_columns import CWND, FAST_RETRANSMITS, Tcp
from ropewalk.sim.packet.world import World

FLAVOURS: dict[str, Tcp] = {"newreno": NewReno(), "cubic": Cubic(), "dctcp": Dctcp()}
BANDWIDTH = 5e9


def settings_of(transport: Tcp, queue_packets: int, mark_above: int | None = None) -> PacketSettings:
    return PacketSettings(
        transport,
        SwitchSettings(
            pause=False, alpha_shift=0, queue_limit_bytes=queue_packets * 1058, mark=mark_above is not None,
            kmin_bytes=mark_above, kmax_bytes=mark_above, pmax=1.0,
        ),
        header_bytes=58,
        ack_bytes=64,
    )  # fmt: skip


def compare(
    flavour: str, transport: Tcp, segments: list[int], queue_packets: int, mark_above: int | None = None
) -> tuple[list[int], int]:
    """Both runs; asserts that windows, deliveries and drops are the same and returns (fast retransmits, timeouts)."""
    # Starts and latencies without a common measure with a packet, so that no two things happen at once.
    starts = [(1 + 3 * number) * 1_000_003 for number in range(len(segments))]
    latency = [1_000_507 + 7_919 * host for host in range(len(segments) + 1)]
    graph, routes = incast_of(
        [count * 1000 for count in segments],
        starts=[start / PS_PER_S for start in starts], bandwidth=BANDWIDTH,
        latency=[time / PS_PER_S for time in latency],
    )  # fmt: skip
    log, world = changes_of(CWND, graph, routes, settings_of(transport, queue_packets, mark_above))
    rules = Rules(
        flavour=flavour, queue_limit=queue_packets * 1058, mark_above=mark_above or 10**12,
        initial=transport.initial_window, buffer=transport.buffer_segments, start_limit=transport.slow_start_limit,
        ack_every=transport.ack_every, ack_delay=round(transport.ack_delay_s * PS_PER_S),
        min_rto=round(transport.min_rto_s * PS_PER_S),
    )  # fmt: skip
    connections, drops = incast(rules, segments, starts, latency)
    expected = []
    window = dict.fromkeys(range(len(segments)), 0.0)
    for time, flow, cwnd in connections[0].log:
        if window[flow] != cwnd:
            window[flow] = cwnd
            expected.append((time, flow, cwnd))
    assert [entry[:2] for entry in log] == [entry[:2] for entry in expected]
    assert [entry[2] for entry in log] == pytest.approx([entry[2] for entry in expected], rel=1e-9)
    assert world.flows["delivered_at"].tolist() == [connection.delivered_at for connection in connections]
    assert int(world.links["drops"].sum()) == drops
    counted = [(connection.fast_retransmits, connection.timeouts) for connection in connections]
    assert list(zip(world.counts[:, FAST_RETRANSMITS], world.flows["timeouts"], strict=True)) == counted
    return np.array(counted).sum(axis=0).tolist(), drops


DATA_PS, ACK_PS = 846_400, 51_200 + 12_800
"""1058 bytes at 10 Gbps; 64 bytes at 10 and at 40 Gbps."""
ROUND_TRIP_PS = 211_600 + DATA_PS + ACK_PS + 4_000_000


def _into_a_slow_port(segments: int, queue_packets: int) -> tuple[list[tuple[int, float]], World]:
    """Windows of one NewReno flow from a port of 40 Gbps through one of 10 Gbps; every segment is acknowledged."""
    draft = FabricDraft("slow port")
    receiver, sender = draft.add_hosts(["receiver", "sender"])
    switch = draft.add_switches(["switch"], level=1)
    draft.add_links(receiver, switch, 10 * GBPS, US)
    draft.add_links(sender, switch, 40 * GBPS, US)
    graph = together(np.array([sender]), np.array([receiver]), 1000.0 * segments)
    settings = settings_of(NewReno(initial_window=2, ack_every=1, min_rto_s=1e-3), queue_packets)
    log, world = changes_of(CWND, graph, shortest(draft.freeze(), graph.place, graph.peer), settings)
    return [(time, window) for time, _, window in log], world


def test_slow_start_fast_recovery_and_its_end_stepped_by_hand() -> None:
    windows, world = _into_a_slow_port(24, 3)
    # Slow start: acknowledgements come as fast as the slow port sends, each opens the window by one. Round n of it
    # begins n round trips after the start with 2, 4, … acknowledgements; the third loses segment 13 of its burst.
    expected = [(0, 2.0)]
    for number, beginning in ((1, 2), (2, 4), (3, 7)):
        first = 2 + sum(2**n for n in range(1, number))
        expected += [(number * ROUND_TRIP_PS + at * DATA_PS, first + at + 1.0) for at in range(beginning)]
    # Segments 13, 19, 21 and 23 are lost, seven arrive behind the first of them. The third duplicate finds 11 segments
    # out: half of them is the threshold, and three more the window; four more duplicates open it by one each.
    third = windows[len(expected)][0]
    assert third == expected[-1][0] + 3 * DATA_PS
    expected += [(third + at * DATA_PS, 5.5 + 3 + at) for at in range(5)]
    # Each retransmission is acknowledged up to the next hole: less 6, 2 and 2 segments, plus one. The last one ends the
    # recovery with one segment more than are out.
    for number, window in enumerate((12.5 - 6 + 1, 7.5 - 2 + 1, 6.5 - 2 + 1, 1.0 + 1)):
        expected.append((third + (number + 1) * ROUND_TRIP_PS, window))
    assert windows == expected
    assert int(world.links["drops"].sum()) == 4
    assert world.flows["timeouts"].tolist() == [0]


def test_a_timeout_stepped_by_hand() -> None:
    windows, world = _into_a_slow_port(20, 4)
    # The last segment is lost, and nothing comes behind it that could tell. From the third round trip on the slow port
    # never rests: acknowledgements of segments 7 to 19 come at its pace. A millisecond after the last of them the
    # window is one segment, and a round trip later two.
    assert int(world.links["drops"].sum()) == 1
    assert world.flows["timeouts"].tolist() == [1]
    before = 3 * ROUND_TRIP_PS + (19 - 7) * DATA_PS
    assert windows[-2:] == [(before + 10**9, 1.0), (before + 10**9 + ROUND_TRIP_PS, 2.0)]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_lone_flow_opens_its_window_as_the_plain_reference_does(flavour: str) -> None:
    (fast, timeouts), drops = compare(flavour, FLAVOURS[flavour], [300], 1000)
    assert (fast, timeouts, drops) == (0, 0, 0)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_losses_in_an_incast_move_windows_as_the_plain_reference_does(flavour: str) -> None:
    transport = replace(FLAVOURS[flavour], min_rto_s=2e-3, ack_delay_s=5e-4)
    (fast, _), drops = compare(flavour, transport, [700, 600, 500], 12)
    assert fast > 0
    assert drops > 0


@pytest.mark.parametrize("flavour", ["newreno", "cubic"])
def test_a_queue_of_few_packets_makes_timeouts_that_back_off(flavour: str) -> None:
    transport = replace(FLAVOURS[flavour], min_rto_s=1e-3, ack_delay_s=2e-4)
    (_, timeouts), _ = compare(flavour, transport, [120, 90, 100, 80, 110, 60, 70, 95], 4)
    assert timeouts > 2


def test_marks_above_a_threshold_move_dctcp_as_the_plain_reference_does() -> None:
    (fast, timeouts), drops = compare("dctcp", Dctcp(), [700, 650, 600], 1000, mark_above=20 * 1058)
    assert (fast, timeouts, drops) == (0, 0, 0)


@pytest.mark.parametrize("ack_every", [1, 2, 3])
def test_acknowledging_more_or_fewer_segments_together_changes_windows_as_in_the_reference(ack_every: int) -> None:
    compare(
        "newreno", NewReno(ack_every=ack_every, slow_start_limit=1, initial_window=3, ack_delay_s=1e-4), [200, 150], 30
    )


def test_a_small_buffer_caps_the_window() -> None:
    transport = NewReno(buffer_segments=16)
    compare("newreno", transport, [200], 1000)
    log, _ = changes_of(CWND, *incast_of([200e3]), settings_of(transport, 1000))
    assert max(cwnd for _, _, cwnd in log) == 16
