"""DCQCN as NICs do it: marks come back in acknowledgements, and three periodic timers of the sender do the rest.

This is the algorithm of the RDMA fork of ns-3 of the HPCC authors ("mlx"), which differs from the paper (SIGCOMM 2015,
`dcqcn_paper.py`): no packets for congestion notification and no pacing of them at the receiver; the first cut comes one
period after the first mark; alpha decays by its own clock for the rest of the flow; no byte counter; hyper increase
does not grow with the stage; a new rate spaces the packets after the next one.

The timers cost no events. Nothing asks for the rate between two packets, so `advance` replays what the timers did
since it was last asked, in the order of time.
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
from ropewalk.sim.packet.transport import DCQCN
from ropewalk.sim.packet.world import NEVER, World

# Columns of numbers, and of integers behind those of RoCE.
ALPHA, TARGET = range(2)
STARTED, ALPHA_AT, ALPHA_SEEN, CUT_AT, CUT_SEEN, GROW_AT, STAGE = range(roce.COUNTS, roce.COUNTS + 7)

# Constants, behind those of RoCE.
ALPHA_PERIOD, CUT_PERIOD, GROW_PERIOD, GAIN, FAST_STAGES, ADD, ADD_MORE, LEAST_RATE, CLAMP, FIRST_RATE = range(
    roce.CONSTANTS, roce.CONSTANTS + 10
)

_CUT_AFTER_ALPHA = 1000
"""Picoseconds by which the clock of the cuts runs behind that of alpha: alpha is always new when a cut uses it."""


@dataclass(frozen=True)
class Dcqcn:
    """RDMA with DCQCN; rates in bytes/s. The defaults are those of the reference runs at 40 Gbps ("mlx")."""

    alpha_period_s: float = 1e-6
    cut_period_s: float = 4e-6
    grow_period_s: float = 300e-6
    gain: float = 1 / 256
    fast_stages: int = 1
    add_per_line: float = 2e-4
    """Additive increase as a part of the line rate: 8 Mbps at 40 Gbps."""
    add_more_per_line: float = 2e-3
    least_rate: float = 12.5e6
    clamp_target: bool = False
    """Whether every cut lowers the target rate, not only the first one after an increase."""
    rate_on_first_mark: float = 1.0
    nack_interval_s: float = 500e-6
    timeout_s: float = 1e-3

    name: str = "rdma"
    code: int = DCQCN
    numbers: int = 2
    counts: int = roce.COUNTS + 7
    timers: int = 1
    telemetry: bool = False

    def constants(self) -> NDArray[np.float64]:
        periods = np.array([self.alpha_period_s, self.cut_period_s, self.grow_period_s]) * PS_PER_S
        rest = [self.gain, self.fast_stages, self.add_per_line, self.add_more_per_line, self.least_rate]
        base = roce.Roce(self.nack_interval_s, self.timeout_s).constants()
        return np.concatenate([base, periods, rest, [float(self.clamp_target), self.rate_on_first_mark]])

    def check(self, findings: Findings) -> None:
        roce.Roce(self.nack_interval_s, self.timeout_s).check(findings)
        for label, value in (
            ("alpha", self.alpha_period_s),
            ("cut", self.cut_period_s),
            ("increase", self.grow_period_s),
        ):
            if not 1e-9 <= value < 1e6:
                findings.add(f"the {label} period of DCQCN is {value} s: give a time of at least 1ns")
        if not 0 < self.gain <= 1:
            findings.add(f"the gain of DCQCN is {self.gain}: give a number above 0 and up to 1, such as 1/256")
        if not 0 < self.least_rate < np.inf:
            findings.add(f"the least rate of DCQCN is {self.least_rate} bytes/s: give a positive rate")
        if not 0 < self.rate_on_first_mark <= 1:
            findings.add(
                f"the rate on the first mark is {self.rate_on_first_mark} of the rate: give a fraction such as 0.9"
            )
        if not all(0 <= step < np.inf for step in (self.add_per_line, self.add_more_per_line, self.fast_stages)):
            findings.add("an increase of DCQCN is negative or endless: give zero or more")


@kernel
def begin(world: World, flow: int) -> None:
    world.numbers[flow, ALPHA] = 1.0
    world.numbers[flow, TARGET] = world.flows[flow].rate


@kernel
def on_sent(world: World, flow: int) -> None:
    if world.counts[flow, STARTED] == 1:
        advance(world, flow)


@kernel
def on_ack(world: World, flow: int, packet: int) -> None:
    if world.packets[packet].mark == 0:
        return
    counts = world.counts[flow]
    if counts[STARTED] == 1:
        advance(world, flow)
        counts[ALPHA_SEEN] = 1
        counts[CUT_SEEN] = 1
        return
    time = now(world)
    state = world.flows[flow]
    state.rate *= world.constants[FIRST_RATE]
    world.numbers[flow, TARGET] = state.rate
    world.numbers[flow, ALPHA] = 1.0
    counts[STARTED] = 1
    counts[ALPHA_AT] = time + np.int64(world.constants[ALPHA_PERIOD])
    counts[ALPHA_SEEN] = 0
    counts[CUT_AT] = time + np.int64(world.constants[CUT_PERIOD]) + _CUT_AFTER_ALPHA
    counts[CUT_SEEN] = 1
    counts[GROW_AT] = NEVER
    counts[STAGE] = 0


@kernel
def advance(world: World, flow: int) -> None:
    """Replay what the timers of a flow did up to now; at the same time alpha comes first, then increases, then cuts."""
    counts = world.counts[flow]
    time = now(world)
    while True:
        due = min(counts[ALPHA_AT], counts[CUT_AT], counts[GROW_AT])
        if due > time:
            return
        if due == counts[ALPHA_AT]:
            _move_alpha(world, flow)
        elif due == counts[GROW_AT]:
            _grow(world, flow)
        else:
            _cut(world, flow)


@kernel
def _move_alpha(world: World, flow: int) -> None:
    counts = world.counts[flow]
    gain = world.constants[GAIN]
    alpha = (1 - gain) * world.numbers[flow, ALPHA]
    if counts[ALPHA_SEEN] == 1:
        alpha += gain
    world.numbers[flow, ALPHA] = alpha
    counts[ALPHA_SEEN] = 0
    counts[ALPHA_AT] += np.int64(world.constants[ALPHA_PERIOD])


@kernel
def _cut(world: World, flow: int) -> None:
    counts = world.counts[flow]
    due = counts[CUT_AT]
    counts[CUT_AT] += np.int64(world.constants[CUT_PERIOD])
    if counts[CUT_SEEN] == 0:
        return
    state = world.flows[flow]
    if world.constants[CLAMP] == 1.0 or counts[STAGE] > 0:
        world.numbers[flow, TARGET] = state.rate
    state.rate = max(world.constants[LEAST_RATE], state.rate * (1 - world.numbers[flow, ALPHA] / 2))
    counts[STAGE] = 0
    counts[CUT_SEEN] = 0
    counts[GROW_AT] = due + np.int64(world.constants[GROW_PERIOD])


@kernel
def _grow(world: World, flow: int) -> None:
    """Fast recovery, then additive, then hyper increase of the target; the rate goes half-way to it."""
    counts = world.counts[flow]
    state = world.flows[flow]
    fast = np.int64(world.constants[FAST_STAGES])
    if counts[STAGE] >= fast:
        step = world.constants[ADD] if counts[STAGE] == fast else world.constants[ADD_MORE]
        target = world.numbers[flow, TARGET] + step * world.links[state.port].speed
        world.numbers[flow, TARGET] = min(target, state.line_rate)
    state.rate = (state.rate + world.numbers[flow, TARGET]) / 2
    counts[STAGE] += 1
    counts[GROW_AT] += np.int64(world.constants[GROW_PERIOD])
