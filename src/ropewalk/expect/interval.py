"""How far a healthy cluster may be from its expectation.

Latencies scatter more than bandwidths: NCCL's are of its developers' machines, and at medium sizes the buffers of a
pipeline fill more slowly than the sum of latency and bytes says. So the two parts of a time have a spread each.
"""

from __future__ import annotations

from dataclasses import dataclass

LATENCY = (0.5, 2.5)
"""A healthy latency as parts of the expected one."""
BYTES = (0.88, 1.2)
"""The same of the time that bytes take: Simple fills 0.7 to 0.8 of NVLink and 0.8 to 0.97 of a NIC on clusters that
their owners and NCCL's developers call healthy; 0.71 (A100), 0.82 (H100) and 0.94 are expected."""


@dataclass(frozen=True)
class Interval:
    """Seconds from the fastest to the slowest healthy run.

    >>> interval(10e-6, 100e-6).holds(120e-6), interval(10e-6, 100e-6).holds(160e-6)
    (True, False)
    """

    low: float
    high: float

    def holds(self, seconds: float) -> bool:
        return self.low <= seconds <= self.high


def interval(latency_s: float, bytes_s: float) -> Interval:
    """The interval of a time with these two parts."""
    low, high = (latency_s * a + bytes_s * b for a, b in zip(LATENCY, BYTES, strict=True))
    return Interval(low, high)
