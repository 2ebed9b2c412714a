"""What to compare: the moments of a replay, how finely they are simulated, and with whose hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ropewalk.errors import ClusterError
from ropewalk.sim.level import LevelUse
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policies import Policy
from ropewalk.tenancy.question import Conditions

EVENTS = 3e7
"""Of a packet-level run of one moment: times and bytes of its jobs are scaled down until they fit."""
HASHED = ("ecmp",)
"""Routings whose hash has a counterpart in switches."""


@dataclass(frozen=True, eq=False)
class AgreementQuestion:
    """A replay, and when to look at it closely."""

    policy: Policy
    plant: Plant
    jobs: Sequence[Job]
    times_s: Sequence[float]
    conditions: Conditions = field(default_factory=Conditions)
    use: LevelUse = field(default_factory=lambda: LevelUse("packet", most_events=EVENTS))
    iterations: int = 2
    """Of the job whose iterations are longest."""
    scale: float | None = None
    """Of times and bytes; None takes the largest that fits."""
    hop_latency_s: float = 0.0
    port: int | None = None
    """The UDP port whose hash is compared too, as switches compute it; None leaves that out."""
    trace: str = "the trace"

    def check(self) -> None:
        self.use.check()
        if self.use.level != "packet":
            raise ClusterError(f"rates are compared with packets, not with level {self.use.level}: use packet")
        if not self.times_s:
            raise ClusterError("there is no moment to compare: give at least one")
        if self.port is not None and self.policy.routing not in HASHED:
            raise ClusterError(
                f"{self.policy.name} does not hash flows, so there is no other hash: leave it out, or take "
                f"{', '.join(HASHED)}"
            )


def evenly_spread(jobs: Sequence[Job], count: int) -> list[float]:
    """Moments in the middle of equal parts of the time from the first arrival to the last.

    >>> from ropewalk.tenancy.work import Iteration
    >>> evenly_spread([Job(name, 1, at, 1, Iteration(1.0)) for name, at in (("a", 10.0), ("b", 50.0))], 2)
    [20.0, 40.0]
    """
    if count < 1:
        raise ClusterError(f"{count} moments cannot be compared: give 1 or more")
    first, last = min(job.arrival_s for job in jobs), max(job.arrival_s for job in jobs)
    return [first + (number + 0.5) / count * (last - first) for number in range(count)]
