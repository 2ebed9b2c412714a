"""Flows that take turns at ports, and hosts that put all that windows allow into the queue of their port."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim.packet import Cubic, PacketSettings, drop_tail, simulate_packets
from ropewalk.sim.packet.fair import insert_in_turn
from ropewalk.sim.packet.network import build_world
from ropewalk.task import Sketch

TCP = PacketSettings(
    Cubic(initial_window=20, buffer_segments=20, initial_rto_s=10.0, min_rto_s=10.0),
    switch=drop_tail(1000),
    host_queue=True,
)
FAIR = replace(TCP, switch=replace(TCP.switch, fair=True), ack_in_control_class=True)


def three_senders(fabric_bandwidth=1e6):
    """Hosts 0, 1 and 2 send to host 3."""
    sketch = Sketch()
    for host in range(3):
        sketch.transfer(host, 3, 1e5)
    fabric = IdealSwitch(4, bandwidth=fabric_bandwidth).build()
    return sketch.graph(), shortest(fabric, np.array([0, 1, 2]), np.array([3, 3, 3]))


def tags_by_hand(arrivals: list[tuple[int, int]]) -> list[int]:
    """Which packet leaves when nothing has left yet: by tag, and by arrival where tags are equal."""
    last: dict[int, int] = {}
    tags = []
    for flow, size in arrivals:
        last[flow] = last.get(flow, 0) + size
        tags.append(last[flow])
    return sorted(range(len(tags)), key=lambda at: (tags[at], at))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 1500)), min_size=1, max_size=25))
def test_packets_leave_by_the_bytes_that_their_flow_has_sent(arrivals):
    graph, routes = three_senders()
    world = build_world(graph, routes, FAIR)
    world.queues["head"] = -1
    for packet, (flow, size) in enumerate(arrivals):
        world.packets[packet]["flow"], world.packets[packet]["size"] = flow, size
        world.packets[packet]["path"] = world.flows[flow]["path_first"]
        world.packets[packet]["hop"] = world.paths[world.packets[packet]["path"]]["first"]
        insert_in_turn(world, 1, 0, packet)
    order, packet = [], int(world.queues[1]["head"])
    while packet >= 0:
        order.append(packet)
        packet = int(world.packets[packet]["next"])
    assert order == tags_by_hand(arrivals)
    assert world.queues[1]["tail"] == order[-1]


def test_a_host_that_hands_over_queues_a_whole_window():
    graph, routes = three_senders()
    handed, asked = (simulate_packets(graph, routes, one) for one in (TCP, replace(TCP, host_queue=False)))
    own = routes.link[routes.link_start[0]]
    assert handed.most_queued[own] >= 18 * TCP.wire_bytes
    assert asked.most_queued[own] == 0
    assert (handed.drops == 0).all()


def test_turns_end_equal_flows_together():
    graph, routes = three_senders()
    run = simulate_packets(graph, routes, FAIR)
    wire = 3e5 * TCP.wire_bytes / TCP.payload_bytes
    assert np.ptp(run.end) <= 6 * TCP.wire_bytes / 1e6
    assert run.makespan < (wire + 3 * TCP.wire_bytes) / 1e6


def test_a_token_bucket_lets_a_packet_pass_and_waits_afterwards():
    sketch = Sketch()
    sketch.transfer(0, 1, 2000)
    routes = shortest(IdealSwitch(2, bandwidth=1e6).build(), np.array([0]), np.array([1]))
    wired, shaped = (
        simulate_packets(sketch.graph(), routes, replace(TCP, token_buckets=shaped)) for shaped in (False, True)
    )
    packet_ps = TCP.wire_bytes * 10**6
    assert wired.makespan_ps == 3 * packet_ps  # two packets on the first link, the last one on the second
    assert shaped.makespan_ps == packet_ps  # the second packet waits for the first alone
