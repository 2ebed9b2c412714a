"""One job of a trace, as the cluster's log tells it: who came when, with how many GPUs, for how long."""

from __future__ import annotations

import math
from dataclasses import dataclass

POSITIVE = ("duration_s", "deadline_s", "expected_s")
NOT_NEGATIVE = ("arrival_s", "compute_s")
LATEST_S = 1e11
"""Three thousand years after 1970: beyond it a time is a slip, and differences of such times are lost in rounding."""
COUNTS = ("gpus", "iterations", "batch", "tensor", "pipeline", "expert")


@dataclass(frozen=True, slots=True)
class TraceJob:
    """What a log says of one job; None where it says nothing. Times are seconds on the clock of the trace.

    >>> TraceJob("a", gpus=8, arrival_s=0.0, duration_s=60.0).gpu_seconds
    480.0
    """

    name: str
    gpus: int
    arrival_s: float
    duration_s: float | None = None
    """How long it ran in the log: on the network of that cluster, whatever it was."""
    iterations: int | None = None
    model: str | None = None
    batch: int | None = None
    collective: str | None = None
    """`ring`, `hierarchical-ring`, `halving-doubling`, `all-to-all`, …; None leaves the choice to the work model."""
    communication_share: float | None = None
    """Part of a quiet iteration that is spent in the exchange, 0 to 1."""
    volume_bytes: int | None = None
    """What one iteration exchanges, per GPU."""
    compute_s: float | None = None
    """What one iteration computes."""
    deadline_s: float | None = None
    """When it should be done, on the same clock as `arrival_s`."""
    expected_s: float | None = None
    """How long its user said that it would run."""
    user: str | None = None
    state: str | None = None
    """How it ended, in the words of the log."""
    tensor: int | None = None
    pipeline: int | None = None
    expert: int | None = None
    """How the model is split; what is left of the GPUs are its copies."""
    device: str | None = None
    """What it runs on, where its computing is to be priced by the model."""

    @property
    def is_split(self) -> bool:
        """Does it say how its model is to be lowered?"""
        return any((self.tensor, self.pipeline, self.expert, self.device))

    @property
    def gpu_seconds(self) -> float:
        """GPUs times duration; nan where the log has no duration."""
        return math.nan if self.duration_s is None else self.gpus * self.duration_s

    def flaws(self) -> list[str]:
        """Everything about this job that cannot be."""
        found = [] if self.name else ["the job has no name: give it one"]
        for field in COUNTS:
            value = getattr(self, field)
            if value is not None and value < 1:
                found.append(f"{field} is {value}: give 1 or more")
        for field in POSITIVE:
            value = getattr(self, field)
            if value is not None and not 0 < value <= LATEST_S:
                found.append(f"{field} is {value:g}: give more than 0 seconds and at most {LATEST_S:g}")
        for field in NOT_NEGATIVE:
            value = getattr(self, field)
            if value is not None and not 0 <= value <= LATEST_S:
                found.append(f"{field} is {value:g}: give 0 seconds or more and at most {LATEST_S:g}")
        if self.volume_bytes is not None and self.volume_bytes < 0:
            found.append(f"volume_bytes is {self.volume_bytes}: give 0 bytes or more")
        if self.communication_share is not None and not 0 <= self.communication_share < 1:
            found.append(f"communication_share is {self.communication_share:g}: give 0 or more and less than 1")
        if self.deadline_s is not None and self.deadline_s <= self.arrival_s:
            found.append(
                f"deadline_s is {self.deadline_s:g}, not after its arrival at {self.arrival_s:g}: "
                "write deadlines on the clock of arrival_s"
            )
        return found
