"""Measurements of one benchmark by one group of GPUs, beside what is expected of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ropewalk.expect.benchmarks import BENCHMARKS
from ropewalk.expect.interval import Interval, interval
from ropewalk.expect.prices import CollectivePrices, ExpectedTime
from ropewalk.expect.read.who import Groups, Measurement
from ropewalk.progress import Progress, silent

LATENCIES = 2.0
"""Times the slowest healthy latency from which on latencies alone make a cluster unhealthy."""


@dataclass(frozen=True)
class JudgedMeasurement:
    """One measurement and its expectation."""

    measured: Measurement
    expected: ExpectedTime
    healthy: Interval

    @property
    def tells(self) -> bool:
        """Do its bytes take longer than its latency?"""
        return self.expected.bytes_s >= 2 * self.expected.latency_s

    @property
    def ratio(self) -> float:
        """Measured over expected time."""
        return self.measured.seconds / self.expected.seconds

    @property
    def state(self) -> str:
        if self.measured.wrong:
            return "wrong"
        if self.measured.seconds > self.healthy.high:
            return "slow"
        return "fast" if self.measured.seconds < self.healthy.low else "healthy"

    @property
    def place(self) -> tuple[bool, float, int]:
        """Its place in a sorted table: wrong results first, then what falls short most."""
        return not self.measured.wrong, -self.measured.seconds / self.healthy.high, self.measured.size_bytes

    @property
    def busbw(self) -> float:
        """As measured, bytes/s."""
        return self._busbw(self.measured.seconds)

    @property
    def healthy_busbw(self) -> tuple[float, float]:
        return self._busbw(self.healthy.high), self._busbw(self.healthy.low)

    def _busbw(self, seconds: float) -> float:
        ranks = len(self.measured.groups[0])
        return self.measured.size_bytes * BENCHMARKS[self.measured.benchmark].factor(ranks) / seconds


@dataclass(frozen=True)
class Series:
    """All sizes, smallest first."""

    benchmark: str
    groups: Groups
    rows: tuple[JudgedMeasurement, ...]

    @property
    def telling(self) -> tuple[JudgedMeasurement, ...]:
        """Sizes at which bytes take longer than latency: they tell about wires. All sizes where there are none."""
        return tuple(row for row in self.rows if row.tells) or self.rows

    @property
    def ratio(self) -> float:
        """Measured over expected time, of the telling sizes."""
        return median(row.ratio for row in self.telling)

    @property
    def largest(self) -> JudgedMeasurement:
        return self.rows[-1]

    @property
    def excess(self) -> float:
        """Its time over the slowest healthy one; of latencies alone, which scatter most, half of that."""
        most = 1.0 if self.telling[0].tells else LATENCIES
        return median(row.measured.seconds / row.healthy.high for row in self.telling) / most

    @property
    def wrong(self) -> bool:
        """Did values come out wrong?"""
        return any(row.measured.wrong for row in self.rows)

    @property
    def slow(self) -> bool:
        """Slower than its intervals."""
        return self.excess > 1


def series_of(measured: Sequence[Measurement], prices: CollectivePrices, progress: Progress = silent) -> list[Series]:
    """Every measurement priced, sorted into series."""
    found: dict[tuple[str, Groups], list[JudgedMeasurement]] = {}
    prices.prepare((BENCHMARKS[one.benchmark], one.groups) for one in measured)
    for done, one in enumerate(measured):
        if done % 16 == 0:
            progress(done, len(measured), "simulating what was measured")
        expected = prices.expected(BENCHMARKS[one.benchmark], one.size_bytes, one.groups)
        judged = JudgedMeasurement(one, expected, interval(expected.latency_s, expected.bytes_s))
        found.setdefault((one.benchmark, one.groups), []).append(judged)
    return [
        Series(benchmark, groups, tuple(sorted(rows, key=lambda row: row.measured.size_bytes)))
        for (benchmark, groups), rows in found.items()
    ]
