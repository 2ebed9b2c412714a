"""What is answered: a line for every benchmark and size, as nccl-tests prints them, each with an interval."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.expect.benchmarks import BENCHMARKS
from ropewalk.expect.diagnosis import Diagnosis
from ropewalk.expect.interval import Interval
from ropewalk.expect.question import ExpectQuestion
from ropewalk.expect.series import JudgedMeasurement, Series


@dataclass(frozen=True)
class ExpectRow:
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
    rows: tuple[ExpectRow, ...]
    diagnosis: Diagnosis | None = None
    """Of the files that were read."""
    names: tuple[str, ...] = ()
    """Of the GPUs, by number."""

    def rows_of(self, benchmark: str) -> list[ExpectRow]:
        return [row for row in self.rows if row.benchmark == benchmark]

    def as_json(self) -> dict[str, object]:
        """One object for programs; bandwidths are bytes/s."""
        return {
            "cluster": self.question.cluster.said,
            "ranks": self.question.cluster.gpus,
            "expected": [row.as_json() for row in self.rows],
        } | ({} if self.diagnosis is None else self._verdict(self.diagnosis))

    def _verdict(self, found: Diagnosis) -> dict[str, object]:
        return {
            "healthy": found.healthy,
            "explained": found.explains,
            "unexplained_score": found.unexplained,
            "causes": [cause.as_json() for cause in found.causes],
            "measured": [self._measured(one, row) for one in found.series for row in one.rows],
        }

    def _measured(self, one: Series, row: JudgedMeasurement) -> dict[str, object]:
        low, high = row.healthy_busbw
        return {
            "benchmark": one.benchmark,
            "groups": [[self.names[gpu] for gpu in group] for group in one.groups],
            "size_bytes": row.measured.size_bytes,
            "seconds": row.measured.seconds,
            "expected_seconds": row.expected.seconds,
            "busbw": row.busbw,
            "busbw_low": low,
            "busbw_high": high,
            "state": row.state,
            "wrong_values": row.measured.wrong,
            "source": row.measured.source,
        }
