"""RoCEv2: every packet is acknowledged, what is lost is sent again from there on (go-back-N), nothing slows the sender.

By itself this is RDMA with priority flow control only: a flow sends at line rate whenever its class is not paused.
DCQCN adds a rate to it. The receiver answers a gap with one negative acknowledgement in a while; a packet lost at the
end of a message is found by a timer. Since nothing is lost on a healthy lossless fabric, the timer runs only from the
first loss of a flow on.

Where packets of a flow take several paths they overtake each other; then the receiver counts them in any order, which
needs a fabric that loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import Findings
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.helpers import arm, now
from ropewalk.sim.packet.rounding import PS_PER_S, spacing
from ropewalk.sim.packet.transport import PFC_ONLY, REPLY, SILENT
from ropewalk.sim.packet.world import ACK, NACK, NO_WINDOW, SPRAY, World

# Columns of integers.
LAST_NACK, NACK_AGAIN_AT, PROGRESS_AT, TIMER_RUNS = range(4)
COUNTS = 4

# Constants.
NACK_INTERVAL, TIMEOUT = range(2)
CONSTANTS = 2


@dataclass(frozen=True)
class Roce:
    """RDMA without congestion control: line rate, paused by priority flow control alone."""

    nack_interval_s: float = 500e-6
    """At most one negative acknowledgement for the same gap in this time."""
    timeout_s: float = 1e-3
    """Without progress for this long, a flow that lost packets sends again from the last one acknowledged."""

    name: str = "rdma-pfc"
    code: int = PFC_ONLY
    numbers: int = 0
    counts: int = COUNTS
    timers: int = 1
    telemetry: bool = False

    def constants(self) -> NDArray[np.float64]:
        return np.array([self.nack_interval_s, self.timeout_s]) * PS_PER_S

    def check(self, findings: Findings) -> None:
        if not self.nack_interval_s >= 0:
            findings.add(f"the interval between NACKs is {self.nack_interval_s} s: give a time of zero or more")
        if not 0 < self.timeout_s < 1e6:
            findings.add(f"the retransmission timeout is {self.timeout_s} s: give a positive time, such as 1ms")


@kernel
def begin(world: World, flow: int) -> None:
    state = world.flows[flow]
    state.rate = state.line_rate
    state.window = NO_WINDOW
    world.counts[flow, LAST_NACK] = -1


@kernel
def on_sent(world: World, flow: int, packet: int) -> None:
    state = world.flows[flow]
    state.next_send = now(world) + spacing(world, world.packets[packet].size, state.rate)


@kernel
def on_data(world: World, flow: int, packet: int) -> int:
    state = world.flows[flow]
    came = world.packets[packet]
    came.kind = ACK
    if came.seq == state.received or (world.knobs[SPRAY] == 1 and state.paths > 1):
        state.received += came.payload
    elif came.seq > state.received:
        time = now(world)
        if time < world.counts[flow, NACK_AGAIN_AT] and world.counts[flow, LAST_NACK] == state.received:
            return SILENT
        world.counts[flow, NACK_AGAIN_AT] = time + np.int64(world.constants[NACK_INTERVAL])
        world.counts[flow, LAST_NACK] = state.received
        came.kind = NACK
    came.seq = state.received
    return REPLY


@kernel
def on_ack(world: World, flow: int, packet: int) -> None:
    state = world.flows[flow]
    came = world.packets[packet]
    if came.seq > state.acked:
        state.acked = came.seq
        world.counts[flow, PROGRESS_AT] = now(world)
        state.sent = max(state.sent, state.acked)
    if came.kind == NACK:
        state.sent = state.acked


@kernel
def on_loss(world: World, flow: int) -> None:
    """From its first loss on, a flow that makes no progress for a while goes back."""
    if world.counts[flow, TIMER_RUNS] == 0:
        world.counts[flow, TIMER_RUNS] = 1
        arm(world, flow, 0, now(world) + np.int64(world.constants[TIMEOUT]))


@kernel
def on_timer(world: World, flow: int, which: int) -> None:
    state = world.flows[flow]
    timeout = np.int64(world.constants[TIMEOUT])
    due = world.counts[flow, PROGRESS_AT] + timeout
    time = now(world)
    if due > time:
        arm(world, flow, 0, due)
        return
    state.sent = state.acked
    state.timeouts += 1
    world.counts[flow, PROGRESS_AT] = time
    arm(world, flow, 0, time + timeout)
