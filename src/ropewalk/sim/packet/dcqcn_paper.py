"""DCQCN as in the paper (Zhu et al., SIGCOMM 2015): the receiver paces notifications, every one of them cuts at once.

The rate grows when a timer or a byte counter runs full: fast recovery while both have done so fewer than F times, hyper
increase when both have more often, additive increase in between. As in `dcqcn.py` the timers cost no events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import Findings
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet import roce
from ropewalk.sim.packet.helpers import now
from ropewalk.sim.packet.rounding import PS_PER_S
from ropewalk.sim.packet.transport import DCQCN_PAPER
from ropewalk.sim.packet.world import NEVER, World

ALPHA, TARGET = range(2)
STARTED, ALPHA_AT, GROW_AT, TIMER_STAGE, BYTE_STAGE, BYTES, NOTIFIED_AT = range(roce.COUNTS, roce.COUNTS + 7)

NOTIFY_PERIOD, ALPHA_PERIOD, GROW_PERIOD, GROW_BYTES, GAIN, FAST_STAGES, ADD, ADD_MORE, LEAST_RATE = range(
    roce.CONSTANTS, roce.CONSTANTS + 9
)


@dataclass(frozen=True)
class DcqcnPaper:
    """RDMA with the DCQCN of the paper; rates in bytes/s."""

    notify_period_s: float = 50e-6
    """The receiver of a flow notifies its sender at most once in this time."""
    alpha_period_s: float = 55e-6
    grow_period_s: float = 55e-6
    grow_bytes: float = 10e6
    gain: float = 1 / 256
    fast_stages: int = 5
    add_rate: float = 5e6
    add_more_rate: float = 50e6
    least_rate: float = 12.5e6
    nack_interval_s: float = 500e-6
    timeout_s: float = 1e-3

    name: str = "rdma-paper"
    code: int = DCQCN_PAPER
    numbers: int = 2
    counts: int = roce.COUNTS + 7
    timers: int = 1
    telemetry: bool = False

    def constants(self) -> NDArray[np.float64]:
        periods = np.array([self.notify_period_s, self.alpha_period_s, self.grow_period_s]) * PS_PER_S
        rest = [self.grow_bytes, self.gain, self.fast_stages, self.add_rate, self.add_more_rate, self.least_rate]
        return np.concatenate([roce.Roce(self.nack_interval_s, self.timeout_s).constants(), periods, rest])

    def check(self, findings: Findings) -> None:
        roce.Roce(self.nack_interval_s, self.timeout_s).check(findings)
        for label, value in (("alpha", self.alpha_period_s), ("increase", self.grow_period_s)):
            if not 1e-9 <= value < 1e6:
                findings.add(f"the {label} period of DCQCN is {value} s: give a time of at least 1ns")
        if not self.notify_period_s >= 0:
            findings.add(f"the notification period of DCQCN is {self.notify_period_s} s: give zero or more")
        if not 0 < self.gain <= 1:
            findings.add(f"the gain of DCQCN is {self.gain}: give a number above 0 and up to 1, such as 1/256")
        if not (0 < self.least_rate < np.inf and 0 < self.grow_bytes < np.inf):
            findings.add("the least rate or the byte counter of DCQCN is not positive: give bytes/s and bytes above 0")
        if not all(0 <= step < np.inf for step in (self.add_rate, self.add_more_rate, self.fast_stages)):
            findings.add("an increase of DCQCN is negative or endless: give zero or more")


@kernel
def begin(world: World, flow: int) -> None:
    world.numbers[flow, ALPHA] = 1.0
    world.numbers[flow, TARGET] = world.flows[flow].rate
    world.counts[flow, NOTIFIED_AT] = -NEVER


@kernel
def on_data(world: World, flow: int, packet: int) -> None:
    """Let a mark go back only where the last one went back long enough ago."""
    if world.packets[packet].mark == 0:
        return
    time = now(world)
    if time - world.counts[flow, NOTIFIED_AT] < np.int64(world.constants[NOTIFY_PERIOD]):
        world.packets[packet].mark = 0
    else:
        world.counts[flow, NOTIFIED_AT] = time


@kernel
def on_ack(world: World, flow: int, packet: int) -> None:
    if world.packets[packet].mark == 0:
        return
    advance(world, flow)
    counts = world.counts[flow]
    state = world.flows[flow]
    gain = world.constants[GAIN]
    alpha = world.numbers[flow, ALPHA]
    world.numbers[flow, TARGET] = state.rate
    state.rate = max(world.constants[LEAST_RATE], state.rate * (1 - alpha / 2))
    world.numbers[flow, ALPHA] = (1 - gain) * alpha + gain
    time = now(world)
    counts[STARTED] = 1
    counts[ALPHA_AT] = time + np.int64(world.constants[ALPHA_PERIOD])
    counts[GROW_AT] = time + np.int64(world.constants[GROW_PERIOD])
    counts[TIMER_STAGE] = 0
    counts[BYTE_STAGE] = 0
    counts[BYTES] = 0


@kernel
def on_sent(world: World, flow: int, packet: int) -> None:
    counts = world.counts[flow]
    if counts[STARTED] == 0:
        return
    advance(world, flow)
    counts[BYTES] += world.packets[packet].size
    if counts[BYTES] >= world.constants[GROW_BYTES]:
        counts[BYTES] -= np.int64(world.constants[GROW_BYTES])
        counts[BYTE_STAGE] += 1
        _grow(world, flow)


@kernel
def advance(world: World, flow: int) -> None:
    """Replay what the two timers of a flow did up to now."""
    counts = world.counts[flow]
    if counts[STARTED] == 0:
        return
    time = now(world)
    while min(counts[ALPHA_AT], counts[GROW_AT]) <= time:
        if counts[ALPHA_AT] <= counts[GROW_AT]:
            world.numbers[flow, ALPHA] *= 1 - world.constants[GAIN]
            counts[ALPHA_AT] += np.int64(world.constants[ALPHA_PERIOD])
        else:
            counts[GROW_AT] += np.int64(world.constants[GROW_PERIOD])
            counts[TIMER_STAGE] += 1
            _grow(world, flow)


@kernel
def _grow(world: World, flow: int) -> None:
    counts = world.counts[flow]
    state = world.flows[flow]
    fast = np.int64(world.constants[FAST_STAGES])
    least = min(counts[TIMER_STAGE], counts[BYTE_STAGE])
    target = world.numbers[flow, TARGET]
    if max(counts[TIMER_STAGE], counts[BYTE_STAGE]) >= fast:
        target += world.constants[ADD_MORE] * (least - fast) if least > fast else world.constants[ADD]
        target = min(target, state.line_rate)
        world.numbers[flow, TARGET] = target
    state.rate = (state.rate + target) / 2
