"""HPCC: switches write into each packet how busy they are, and the sender aims at a utilisation just below one.

Li et al., "HPCC: High Precision Congestion Control" (SIGCOMM 2019), algorithm 1, with the constants and the order of
steps of its authors' ns-3 fork. Each acknowledgement brings, for every switch port passed, a time, the bytes sent so
far and the queue; two of them give the utilisation of the port, the busiest port counts. The rate follows with every
acknowledgement, from a reference rate that is renewed once a round trip. Window and rate shrink together. Telemetry is
exact here, where the fork rounds it to the bits of its header. Reliability is that of `roce.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import Findings
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet import roce
from ropewalk.sim.packet.rounding import PS_PER_S, spacing
from ropewalk.sim.packet.transport import HPCC
from ropewalk.sim.packet.world import ACK_SIZE, HEADER, World

MOST_HOPS = 8
"""Switch ports of a path that are followed: as many as fit into a packet's telemetry."""

# Columns of numbers: utilisation, reference rate, round trip in picoseconds; (time, bytes sent, queue) of each port.
UTILISATION, REFERENCE, ROUND_TRIP, PORTS = range(4)
COMMIT_AT, STAGE, STARTED = range(roce.COUNTS, roce.COUNTS + 3)
TARGET, MOST_STAGES, ADD, LEAST_RATE, GIVEN_ROUND_TRIP, FAST_REACTION = range(roce.CONSTANTS, roce.CONSTANTS + 6)


@dataclass(frozen=True)
class Hpcc:
    """RDMA with HPCC; rates in bytes/s. Packets are longer by the telemetry they carry: give 90 bytes of headers.

    >>> Hpcc().name, Hpcc().telemetry
    ('hpcc', True)
    """

    target: float = 0.95
    """Eta: the utilisation aimed at."""
    most_stages: int = 0
    """Round trips of additive increase before a multiplicative one; 5 in the paper, 0 in configurations of the fork."""
    add_per_line: float = 4e-4
    """Additive increase as a part of the line rate: 40 Mbps at 100 Gbps."""
    least_rate: float = 12.5e6
    round_trip_s: float | None = None
    """T: the round trip of an idle network. None: that of each flow's own path."""
    fast_reaction: bool = True
    """Whether the rate follows every acknowledgement, not only one in a round trip."""
    nack_interval_s: float = 500e-6
    timeout_s: float = 1e-3

    name: str = "hpcc"
    code: int = HPCC
    numbers: int = PORTS + 3 * MOST_HOPS
    counts: int = roce.COUNTS + 3
    timers: int = 1
    telemetry: bool = True

    def constants(self) -> NDArray[np.float64]:
        base = roce.Roce(self.nack_interval_s, self.timeout_s).constants()
        round_trip = 0.0 if self.round_trip_s is None else self.round_trip_s * PS_PER_S
        own = [self.target, self.most_stages, self.add_per_line, self.least_rate, round_trip, float(self.fast_reaction)]
        return np.concatenate([base, own])

    def check(self, findings: Findings) -> None:
        roce.Roce(self.nack_interval_s, self.timeout_s).check(findings)
        if not 0 < self.target <= 1:
            findings.add(f"the target utilisation of HPCC is {self.target}: give a fraction such as 0.95")
        if not (0 <= self.most_stages < np.inf and 0 <= self.add_per_line < np.inf):
            findings.add("an increase of HPCC is negative or endless: give zero or more")
        if not 0 < self.least_rate < np.inf:
            findings.add(f"the least rate of HPCC is {self.least_rate} bytes/s: give a positive rate")
        if self.round_trip_s is not None and not 1e-9 <= self.round_trip_s <= 1e3:
            findings.add(f"the round trip of HPCC is {self.round_trip_s} s: give a positive time, such as 13us")


@kernel
def begin(world: World, flow: int) -> None:
    state = world.flows[flow]
    numbers = world.numbers[flow]
    numbers[UTILISATION] = 1.0
    numbers[REFERENCE] = state.rate
    numbers[ROUND_TRIP] = world.constants[GIVEN_ROUND_TRIP]
    if numbers[ROUND_TRIP] == 0.0:
        numbers[ROUND_TRIP] = _idle_round_trip(world, flow)
    _set_window(world, flow)


@kernel
def _idle_round_trip(world: World, flow: int) -> float:
    """Picoseconds that a packet and its acknowledgement take on the path of a flow when nobody else sends."""
    path = world.paths[world.flows[flow].path]
    size = world.flows[flow].payload + world.knobs[HEADER]
    total = 0.0
    for hop in range(path.first, path.last + 1):
        link = world.links[world.hops[hop]]
        total += link.latency + world.wire[link.speed_class, size]
    for hop in range(path.back_first, path.back_last + 1):
        link = world.links[world.hops[hop]]
        total += link.latency + world.wire[link.speed_class, world.knobs[ACK_SIZE]]
    return total


@kernel
def _set_window(world: World, flow: int) -> None:
    """A round trip at the present rate may be out."""
    state = world.flows[flow]
    state.window = max(np.int64(state.rate * world.numbers[flow, ROUND_TRIP] / PS_PER_S), 1)


@kernel
def on_ack(world: World, flow: int, packet: int) -> None:
    """Move the rate by what the telemetry of an acknowledgement says. `roce.on_ack` has come before."""
    state = world.flows[flow]
    counts = world.counts[flow]
    came = world.packets[packet]
    if counts[STARTED] == 0:
        counts[STARTED] = 1
        counts[COMMIT_AT] = state.sent
        _note_ports(world, flow, packet)
        return
    commit = came.seq > counts[COMMIT_AT]
    if not commit and world.constants[FAST_REACTION] == 0.0:
        return
    _measure(world, flow, packet)
    _note_ports(world, flow, packet)
    numbers = world.numbers[flow]
    load = numbers[UTILISATION] / world.constants[TARGET]
    add = world.constants[ADD] * world.links[state.port].speed
    stage = counts[STAGE] + 1
    rate = numbers[REFERENCE] + add
    if load >= 1 or counts[STAGE] >= world.constants[MOST_STAGES]:
        stage = 0
        rate = numbers[REFERENCE] / load + add
    rate = min(max(rate, world.constants[LEAST_RATE]), state.line_rate)
    # A packet that already waits for its time goes earlier or later with the new rate.
    size = state.payload + world.knobs[HEADER]
    state.next_send += spacing(world, size, rate) - spacing(world, size, state.rate)
    state.rate = rate
    _set_window(world, flow)
    if commit:
        numbers[REFERENCE] = rate
        counts[STAGE] = stage
        counts[COMMIT_AT] = max(counts[COMMIT_AT], state.sent)


@kernel
def _note_ports(world: World, flow: int, packet: int) -> None:
    for hop in range(world.packets[packet].passed):
        for column in range(3):
            world.numbers[flow, PORTS + 3 * hop + column] = world.telemetry[packet, hop, column]


@kernel
def _measure(world: World, flow: int, packet: int) -> None:
    """Average the utilisation of the busiest port of the path over about a round trip."""
    numbers = world.numbers[flow]
    round_trip = numbers[ROUND_TRIP]
    most = 0.0
    elapsed = 0.0
    for hop in range(world.packets[packet].passed):
        seen = world.telemetry[packet, hop]
        before = numbers[PORTS + 3 * hop : PORTS + 3 * hop + 3]
        time = seen[0] - before[0]
        if time <= 0:
            continue
        sending = (seen[1] - before[1]) / (time / PS_PER_S) / seen[3]
        queueing = min(seen[2], before[2]) / (seen[3] * round_trip / PS_PER_S)
        if sending + queueing > most:
            most = sending + queueing
            elapsed = time
    part = min(elapsed, round_trip) / round_trip
    numbers[UTILISATION] = (1 - part) * numbers[UTILISATION] + part * most
