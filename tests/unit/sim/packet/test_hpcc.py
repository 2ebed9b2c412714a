"""HPCC: the rate follows telemetry as a plain-Python step does, and queues stay short."""

import numpy as np
import pytest
from packet_worlds import incast_of, run_incast, step_through

from ropewalk.sim.packet import Hpcc, PacketSettings, Roce
from ropewalk.sim.packet import world as w
from ropewalk.sim.packet.hpcc import PORTS

LINE = 12.5e9


class Sender:
    """One HPCC sender behind one switch port, from algorithm 1 of the paper with one rate for all ports."""

    def __init__(self, round_trip: float, add: float, most_stages: int) -> None:
        self.round_trip, self.add, self.most_stages = round_trip, add, most_stages
        self.rate = self.reference = LINE
        self.utilisation, self.stage = 1.0, 0
        self.commit_at: int | None = None
        self.before = (0.0, 0.0, 0.0)

    def on_ack(self, acked: int, sent: int, port: tuple[float, float, float]) -> None:
        if self.commit_at is None:
            self.commit_at, self.before = sent, port
            return
        elapsed = (port[0] - self.before[0]) * 1e-12
        busy = (port[1] - self.before[1]) / elapsed / LINE + min(port[2], self.before[2]) / (LINE * self.round_trip)
        weight = min(elapsed / self.round_trip, 1.0)
        self.utilisation = (1 - weight) * self.utilisation + weight * busy
        self.before = port
        load = self.utilisation / 0.95
        if load >= 1 or self.stage >= self.most_stages:
            rate, stage = self.reference / load + self.add, 0
        else:
            rate, stage = self.reference + self.add, self.stage + 1
        self.rate = min(max(rate, 12.5e6), LINE)
        if acked > self.commit_at:
            self.reference, self.stage, self.commit_at = self.rate, stage, max(self.commit_at, sent)


@pytest.mark.parametrize("most_stages", [0, 5])
def test_rates_of_an_incast_equal_the_plain_step_at_every_acknowledgement(most_stages: int) -> None:
    graph, routes = incast_of([300e3, 200e3, 250e3], bandwidth=LINE)
    round_trip = 4.2e-6
    transport = Hpcc(round_trip_s=round_trip, most_stages=most_stages)
    senders = [Sender(round_trip, 4e-4 * LINE, most_stages) for _ in range(3)]
    sent = np.zeros(3, np.int64)
    compared = []

    def look(world: w.World) -> None:
        for flow, sender in enumerate(senders):
            port = tuple(world.numbers[flow, PORTS : PORTS + 3].tolist())
            if port != sender.before:
                # What was sent before this event: the acknowledgement comes before the packet that it lets out.
                sender.on_ack(int(world.flows["acked"][flow]), int(sent[flow]), port)
                compared.append((float(world.flows["rate"][flow]), sender.rate))
        sent[:] = world.flows["sent"]

    step_through(graph, routes, PacketSettings(transport, header_bytes=90), look)
    ours, expected = zip(*compared, strict=True)
    assert len(ours) == 750
    assert ours == pytest.approx(expected, rel=1e-9)
    assert min(ours) < LINE / 4


def test_a_lone_flow_uses_the_target_part_of_the_line() -> None:
    trace = run_incast([8e6], PacketSettings(Hpcc(), header_bytes=90), bandwidth=LINE)
    assert trace.makespan == pytest.approx(8e6 * 1.09 / LINE / 0.95, rel=0.02)


def test_queues_are_short_where_rdma_without_control_fills_buffers() -> None:
    sizes = [2e6] * 8
    controlled = run_incast(sizes, PacketSettings(Hpcc(), header_bytes=90, sample_every_s=20e-6), bandwidth=LINE)
    wild = run_incast(sizes, PacketSettings(Roce(), header_bytes=90, sample_every_s=20e-6), bandwidth=LINE)
    assert controlled.samples is not None
    assert wild.samples is not None
    # The first round trip is at line rate for all; after it the queue drains and stays away.
    later = controlled.samples.time > 0.1e-3
    assert np.median(controlled.samples.queued_bytes[later].max(axis=1)) < 20 * 1090
    assert np.median(wild.samples.queued_bytes.max(axis=1)) > 500 * 1090
    assert controlled.pauses.sum() == 0
