"""What to ask about a moment: which jobs, how many iterations, at which level, how much smaller than in truth."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ropewalk.errors import ClusterError
from ropewalk.sim.level import LevelUse
from ropewalk.tenancy.snapshot.tenant import Moment

ITERATIONS = 3
MARGIN = 1.25
"""By how much jobs may be slower than in the model of the replay before the others stop too early."""


@dataclass(frozen=True, eq=False)
class SnapshotQuestion:
    """A moment and how to look at it."""

    moment: Moment
    use: LevelUse = field(default_factory=LevelUse)
    iterations: int = ITERATIONS
    """Of the job whose iterations are longest; the others go on meanwhile."""
    scale: float = 1.0
    """Times and bytes of the jobs are multiplied by this: a packet-level run of whole seconds takes hours."""
    jobs: tuple[str, ...] | None = None
    """Only these; all unless given."""
    hop_latency_s: float = 0.0
    """Of NIC links and cables; the model of the replay has none."""

    def check(self) -> None:
        self.use.check()
        if self.iterations < 1:
            raise ClusterError(f"{self.iterations} iterations are too few: give 1 or more")
        if not 0 <= self.hop_latency_s < math.inf:
            raise ClusterError(f"a hop takes {self.hop_latency_s} s: give 0 or more")


def iterations_of(moment: Moment, iterations: int) -> list[int]:
    """How many iterations every job runs so that all of them run while the longest is looked at.

    A job begins up to one of its iterations after the moment, and the longest is looked at from there on.
    """
    if len(moment.tenants) == 1:
        return [iterations]
    longest = max(pace.iteration_s for pace in moment.assumed())
    begin = max(tenant.start_s for tenant in moment.tenants)
    last_s = begin + (iterations + 1) * longest * MARGIN
    return [
        max(iterations, math.ceil((last_s - tenant.start_s) / tenant.footprint.alone_iteration_s))
        for tenant in moment.tenants
    ]
