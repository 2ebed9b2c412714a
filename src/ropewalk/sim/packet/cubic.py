"""CUBIC: the window is a cubic of the time since the last loss, and never below what NewReno would have (RFC 9438).

Where round trips are microseconds the cubic hardly moves between two losses, so in a data centre CUBIC lives in its
Reno-friendly region. HyStart, the early end of slow start that operating systems add, is deliberately absent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.errors import Findings
from ropewalk.sim.flow.kernel import kernel
from ropewalk.sim.packet.helpers import now
from ropewalk.sim.packet.rounding import PS_PER_S
from ropewalk.sim.packet.tcp_columns import CONSTANTS, COUNTS, CWND, NUMBERS, SRTT, Tcp
from ropewalk.sim.packet.transport import CUBIC
from ropewalk.sim.packet.world import World

# Segments at the last loss, seconds until the cubic is back there, what NewReno would have, the window before the loss.
PEAK, UNTIL_PEAK, FRIENDLY, PRIOR = range(NUMBERS, NUMBERS + 4)
EPOCH, IN_EPOCH = range(COUNTS, COUNTS + 2)
SCALE, BETA, FAST_CONVERGENCE = range(CONSTANTS, CONSTANTS + 3)


@dataclass(frozen=True)
class Cubic(Tcp):
    """TCP CUBIC.

    >>> Cubic().name, float(Cubic().constants()[BETA])
    ('cubic', 0.7)
    """

    scale: float = 0.4
    """C: segments that the window grows in the cube of a second."""
    beta: float = 0.7
    """What is left of the window after a loss."""
    fast_convergence: bool = True
    """A flow that loses at a lower window than before makes room for others."""

    @property
    def name(self) -> str:
        return "cubic"

    @property
    def code(self) -> int:
        return CUBIC

    def own_constants(self) -> list[float]:
        return [self.scale, self.beta, float(self.fast_convergence)]

    def check(self, findings: Findings) -> None:
        super().check(findings)
        if not 0 < self.scale < 1e9:
            findings.add(f"C of CUBIC is {self.scale}: give a positive number, such as 0.4")
        if not 0 < self.beta < 1:
            findings.add(f"beta of CUBIC is {self.beta}: give a number between 0 and 1, such as 0.7")


@kernel
def avoid_congestion(world: World, flow: int, segments: float) -> None:
    """An acknowledgement of some segments beyond slow start."""
    numbers, counts = world.numbers[flow], world.counts[flow]
    scale, beta = world.constants[SCALE], world.constants[BETA]
    cwnd = numbers[CWND]
    if counts[IN_EPOCH] == 0:
        counts[IN_EPOCH] = 1
        counts[EPOCH] = now(world)
        numbers[FRIENDLY] = cwnd
        # No peak above the window, at the first time or after a timeout: the cubic starts at its flat part.
        numbers[PEAK] = max(numbers[PEAK], cwnd)
        numbers[UNTIL_PEAK] = np.cbrt((numbers[PEAK] - cwnd) / scale)
    elapsed = (now(world) - counts[EPOCH]) / PS_PER_S
    here = numbers[PEAK] + scale * (elapsed - numbers[UNTIL_PEAK]) ** 3
    increase = 1.0 if numbers[FRIENDLY] >= numbers[PRIOR] else 3 * (1 - beta) / (1 + beta)
    numbers[FRIENDLY] += increase * segments / cwnd
    if here < numbers[FRIENDLY]:
        numbers[CWND] = max(cwnd, numbers[FRIENDLY])
        return
    ahead = elapsed + numbers[SRTT] / PS_PER_S - numbers[UNTIL_PEAK]
    target = min(max(numbers[PEAK] + scale * ahead**3, cwnd), 1.5 * cwnd)
    numbers[CWND] = cwnd + (target - cwnd) * segments / cwnd


@kernel
def after_loss(world: World, flow: int, flight: float, timeout: bool) -> float:
    """The slow start threshold after a loss with so many segments out; a new epoch begins."""
    numbers = world.numbers[flow]
    beta = world.constants[BETA]
    numbers[PRIOR] = numbers[CWND]
    world.counts[flow, IN_EPOCH] = 0
    if timeout:
        numbers[PEAK] = 0.0
    elif world.constants[FAST_CONVERGENCE] == 1.0 and numbers[CWND] < numbers[PEAK]:
        numbers[PEAK] = numbers[CWND] * (1 + beta) / 2
    else:
        numbers[PEAK] = numbers[CWND]
    return max(flight * beta, 2.0)
