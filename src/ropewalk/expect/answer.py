"""What is answered: a line for every benchmark and size, as nccl-tests prints them, each with an interval."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.expect.benchmarks import BENCHMARKS
from ropewalk.expect.interval import Interval
from ropewalk.expect.question import ExpectQuestion


@dataclass(frozen=True)
class Row:
    """One line: bandwidths are bytes/s."""

    benchmark: str
    ranks: int
    size_bytes: int
    seconds: float
    healthy: Interval
    runs: str
    """Algorithm and protocol."""

    @property
    def algbw(self) -> float:
        return self.size_bytes / self.seconds

    @property
    def busbw(self) -> float:
        return self.busbw_at(self.seconds)

    def busbw_at(self, seconds: float) -> float:
        """Bus bandwidth of a run that takes so long."""
        return self.size_bytes * BENCHMARKS[self.benchmark].factor(self.ranks) / seconds

    def as_json(self) -> dict[str, object]:
        return {
            "benchmark": self.benchmark,
            "size_bytes": self.size_bytes,
            "seconds": self.seconds,
            "seconds_low": self.healthy.low,
            "seconds_high": self.healthy.high,
            "algbw": self.algbw,
            "busbw": self.busbw,
            "busbw_low": self.busbw_at(self.healthy.high),
            "busbw_high": self.busbw_at(self.healthy.low),
            "runs": self.runs,
        }


@dataclass(frozen=True, eq=False)
class ExpectAnswer:
    """Everything about one cluster."""

    question: ExpectQuestion
    rows: tuple[Row, ...]

    def rows_of(self, benchmark: str) -> list[Row]:
        return [row for row in self.rows if row.benchmark == benchmark]

    def as_json(self) -> dict[str, object]:
        """One object for programs; bandwidths are bytes/s."""
        return {
            "cluster": self.question.cluster.said,
            "ranks": self.question.cluster.gpus,
            "expected": [row.as_json() for row in self.rows],
        }
