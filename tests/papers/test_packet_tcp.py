"""TCP on a star of 16 hosts, 1 MB from each to each at 40 Gbps, beside runs of stock ns-3 3.37.

Those runs: CUBIC over port queues of 1000 packets takes 3.54 ms without a loss (ideal 3.2 ms), over 100 packets 202 ms
with 1876 drops and a least timeout of 200 ms; Reno with a least timeout of 10 ms 13.7 to 33 ms. Such makespans count
timeouts, not bandwidth, and depend on every detail of recovery. Two of these differ here: ns-3 has SACK, and its hosts
queue whole windows of one flow behind each other, which makes incasts of an all-to-all. Here a port takes its flows in
turn, packet by packet, and an all-to-all that starts at one instant meets no queue at all; so transfers start within
a tenth of a millisecond. What decides the makespans is compared: no loss, near ideal; losses, one timeout or two.
"""

import numpy as np
import pytest

from ropewalk.fabric import IdealSwitch
from ropewalk.routing import shortest
from ropewalk.sim.packet import Cubic, Dctcp, NewReno, PacketSettings, PacketTrace, drop_tail, simulate_packets
from ropewalk.sim.packet.tcp_columns import Tcp
from ropewalk.task import Sketch

WIRE = 1058


def all_to_all(transport: Tcp, queue_packets: int, within_s: float, mark_above: int | None = None) -> PacketTrace:
    start = np.random.default_rng(1).random((16, 16)) * within_s
    sketch = Sketch()
    for src in range(16):
        for dst in range(16):
            if src != dst:
                sketch.transfer(src, dst, 1e6, start_up=float(start[src, dst]))
    graph = sketch.graph()
    fabric = IdealSwitch(16, bandwidth=5e9, latency=1e-6).build()
    switch = drop_tail(queue_packets, WIRE, mark_above_packets=mark_above)
    settings = PacketSettings(transport, switch, header_bytes=58, ack_bytes=64)
    return simulate_packets(graph, shortest(fabric, graph.place, graph.peer), settings)


def test_an_all_to_all_that_starts_at_one_instant_meets_no_queue() -> None:
    trace = all_to_all(Cubic(), 20, 0.0)
    assert trace.drops.sum() == 0
    # All bytes into one host, with half an acknowledgement for each segment that it sends itself.
    assert trace.makespan == pytest.approx(15e6 * (WIRE + 32) / 1000 / 5e9, rel=0.005)


def test_cubic_over_deep_queues_is_near_ideal() -> None:
    trace = all_to_all(Cubic(), 1000, 1e-4)
    assert trace.drops.sum() == trace.timeouts.sum() == 0
    assert trace.makespan == pytest.approx(3.54e-3, rel=0.1)


def test_cubic_over_shallow_queues_waits_for_a_timeout() -> None:
    trace = all_to_all(Cubic(), 100, 1e-4)
    assert trace.drops.sum() > 0
    assert trace.timeouts.sum() > 0
    # One timeout, and where the segment sent after it is alone, one delayed acknowledgement of 40 ms.
    assert 0.2 < trace.makespan < 0.3


def test_a_least_timeout_of_ten_milliseconds_costs_that_much() -> None:
    trace = all_to_all(NewReno(min_rto_s=10e-3), 100, 1e-4)
    assert trace.drops.sum() > 0
    assert trace.timeouts.max() <= 2
    assert 10e-3 < trace.makespan < 33e-3


def test_dctcp_loses_nothing() -> None:
    trace = all_to_all(Dctcp(), 1000, 1e-3, 80)
    assert trace.drops.sum() == 0
    assert trace.marks.sum() > 0
    assert trace.most_queued.max() < 300 * WIRE
