"""A running job: how many iterations are left, at which pace, and what it has met so far.

Progress is kept in iterations, so in bytes, never in time: when the pace changes, what is done stays done and only what
is left takes longer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.rates import JobPace
from ropewalk.tenancy.record import Stretch


@dataclass(eq=False)
class Running:
    """One job from its start to its finish."""

    number: int
    allocation: Allocation
    start_s: float
    left: float
    """Iterations at `since_s`."""
    since_s: float
    """The last moment at which progress was written down; later than now while circuits are still being set."""
    pace: JobPace
    quiet_iteration_s: float
    sent_flows: float
    """Of one iteration."""
    flows: float = 0.0
    met_flows: float = 0.0
    rerouted: bool = False
    """Flows of it go over links that are not its own, because one of these died."""

    @property
    def finish_s(self) -> float:
        return self.since_s + self.left * self.pace.iteration_s

    def advance(self, now_s: float) -> None:
        """Write progress down up to now."""
        if now_s <= self.since_s:
            return
        done = min(self.left, (now_s - self.since_s) / self.pace.iteration_s)
        self._count(done)
        self.left -= done
        self.since_s = now_s

    def change(self, now_s: float, pace: JobPace) -> None:
        """Go on at another pace."""
        self.advance(now_s)
        self.pace = pace

    def finish(self) -> None:
        """All that is left is done."""
        self.since_s = self.finish_s
        self._count(self.left)
        self.left = 0.0

    def _count(self, iterations: float) -> None:
        self.flows += iterations * self.sent_flows
        self.met_flows += iterations * self.pace.met_flows


@dataclass(eq=False)
class Past:
    """What a job did before a failure threw it out."""

    stretches: list[Stretch] = field(default_factory=list)
    left: float | None = None
    flows: float = 0.0
    met_flows: float = 0.0
    quiet_s: float = 0.0
    """What the iterations that are done would have taken on a quiet network."""
