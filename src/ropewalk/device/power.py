"""The clock that a device keeps under its power limit.

A GPU that multiplies without a pause wants more power than it may draw, and lowers its clock until it fits. Kernels
that are measured in short bursts do not show that; a step that runs for hours does. Every kernel has an energy: of a
FLOP, by how numbers are multiplied, or of a byte of memory. What a step draws at full clock follows, and from it the
clock at which it draws what it may: products slow down with the clock, memory does not, and a FLOP costs less energy at
a lower clock because the voltage falls with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ropewalk.workload.kernel import PRODUCTS, Kernel

FALLING_ENERGY = 0.343
"""Part of a FLOP's energy that falls with the fourth power of the clock. From products of 8192 x 8192 on an H200 held
at 300 to 700 W (tests/papers/test_h200_sustained.py)."""
STEPS = 50
"""Halvings in which the clock is found."""


@dataclass(frozen=True)
class Power:
    """What a device may draw, and what work costs it at full clock."""

    limit: float
    """Watts that it may draw for long."""
    idle: float
    """Watts that it draws at full clock with nothing to do."""
    flop: Mapping[str, float]
    """Joules of a FLOP of products, by precision; of attention under its own name."""
    byte: float
    """Joules of a byte that kernels limited by memory move."""
    kept: bool = False
    """Are the device's rates those that it keeps under its limit? Then full clock is the clock it has there."""

    def joules(self, kernel: Kernel, multiplied: str, element_bytes: float) -> float:
        """Energy of a kernel at full clock, beyond what the idle device draws.

        A FLOP of a precision whose energy was not measured, as float32 outside of tensor cores, counts as one of bf16.
        """
        if kernel.kind == "attention":
            return self.flop["attention"] * kernel.flops
        if kernel.kind in PRODUCTS:
            return self.flop.get(multiplied, self.flop["bf16"]) * kernel.flops
        return self.byte * kernel.moved_bytes(element_bytes)

    def clock(self, clocked_s: float, other_s: float, joules: float) -> float:
        """Part of the full clock at which work takes no more power than the limit.

        `clocked_s` slow down with the clock, `other_s` do not.

        >>> held = Power(700, 120, {"bf16": 1e-12}, 1e-10)
        >>> held.clock(1.0, 0.0, 580), round(held.clock(1.0, 0.0, 780), 2)
        (1.0, 0.87)
        """
        at_limit_s = joules / (self.limit - self.idle)
        if at_limit_s <= clocked_s + other_s:
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(STEPS):
            middle = (low + high) / 2
            if at_limit_s * falling(middle) > clocked_s / middle + other_s:
                high = middle
            else:
                low = middle
        return low


def falling(clock: float) -> float:
    """Energy of a FLOP at a part of the full clock, against that at full clock."""
    return float(1 - FALLING_ENERGY * (1 - clock**4))
