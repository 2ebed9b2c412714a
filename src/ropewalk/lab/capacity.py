"""What a machine can carry: all links of a lab share its cores, so their speeds must leave the cores idle enough.

Ring all-reduces of 8 to 32 hosts over leaf-spine networks of namespaces, on two cores: while all hosts together sent up
to 320 Mbit/s, times were within 1 % of the ideal; up to 1.6 Gbit/s within 4 %.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import floor, log10

from ropewalk.units import show_bandwidth, show_percent

EXACT_BITS_OF_CORE, ROUGH_BITS_OF_CORE = 160e6, 800e6
EXACT, ROUGH = 0.01, 0.04
"""Errors of times that were measured up to these sums."""
_STEPS = (1, 2, 5, 10)


@dataclass(frozen=True)
class Capacity:
    """What the hosts of a lab can send together, beside what the cores of this machine carry."""

    injected_bits: float
    cores: int

    @property
    def exact_bits(self) -> float:
        return self.cores * EXACT_BITS_OF_CORE

    @property
    def error(self) -> float | None:
        """How far times are off at most when all hosts send; None where nobody knows."""
        if self.injected_bits <= self.exact_bits:
            return EXACT
        return ROUGH if self.injected_bits <= self.cores * ROUGH_BITS_OF_CORE else None

    def said(self) -> str:
        """The sentence that people read before a lab is built.

        >>> Capacity(320e6, cores=2).said()
        'all hosts together send up to 320 Mbps; 2 cores carry 320 Mbps within 1 %'
        """
        sent = f"all hosts together send up to {show_bandwidth(self.injected_bits / 8)}; {self.cores} cores carry "
        if self.error is None:
            most = show_bandwidth(self.cores * ROUGH_BITS_OF_CORE / 8)
            return f"{sent}{most} within {show_percent(ROUGH, 0)} and less beyond"
        carried = self.exact_bits if self.error == EXACT else self.cores * ROUGH_BITS_OF_CORE
        return f"{sent}{show_bandwidth(carried / 8)} within {show_percent(self.error, 0)}"


def capacity_for(injected_bits: float) -> Capacity:
    """What this process may use of the machine."""
    return Capacity(injected_bits, len(os.sched_getaffinity(0)))


def exact_scale(injected_bits: float, exact_bits: float) -> int:
    """The smallest of 1, 2, 5, 10, … by which speeds must be divided to be exact; 1 where they are already.

    >>> exact_scale(16 * 100e9, 320e6), exact_scale(100e6, 320e6)
    (5000, 1)
    """
    needed = injected_bits / exact_bits
    if needed <= 1:
        return 1
    power = int(10.0 ** floor(log10(needed)))
    return next(step * power for step in _STEPS if step * power >= needed * (1 - 1e-9))
