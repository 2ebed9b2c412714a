"""Crux (Cao et al., SIGCOMM 2024): which jobs go first on links that several use.

GPU intensity is the computing of an iteration over the time that its bytes take on the link where they take longest,
I_j = W_j / max_e (M_je / B_e): what a second of that link is worth in computing. The published priority is
P_j = k_j I_j, with a correction k_j against a reference job for the length of iterations and for overlap. Its formula
is not at hand; here it is exact for two jobs on one link that are not in step: P_j / P_ref is what j loses behind the
reference over what the reference loses behind j, so j goes first exactly where that costs less computing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

from ropewalk.tenancy.footprint import Footprint

WORTHLESS = 1e-12
MOST = 1e12
"""How much more a job may be worth than the reference."""


@dataclass(frozen=True)
class Rival:
    """A job as the link sees it: one iteration."""

    work: float
    """GPU-seconds of computing."""
    link_s: float
    """On the link where its bytes take longest."""
    iteration_s: float
    """Alone."""
    hidden_s: float = 0.0
    """Of the computing, what runs beside its communication."""

    @property
    def intensity(self) -> float:
        return self.work / self.link_s if self.link_s > 0 else inf


def rival_of(footprint: Footprint) -> Rival:
    """A job by what it does to the network."""
    work = footprint.work
    return Rival(
        footprint.gpus * work.arithmetic_s,
        footprint.busiest_link_s,
        footprint.alone_iteration_s,
        sum(one.overlap_s for one in work.exchanges),
    )


def delay_behind(first: Rival, second: Rival) -> float:
    """Mean seconds that a communication of the second job waits for the first, which goes first on the link.

    The first is on the link for t of every T seconds; the second begins at any moment, needs u seconds of the link and
    gets those that the first leaves free, f = T - t of every period. It meets k = ceil(u / f) busy stretches if it
    begins in one, and that many or one fewer if not: the mean is t (t (k - 1/2) + u) / T.

    >>> delay_behind(Rival(1, 1.0, 2.0), Rival(1, 0.5, 2.0))
    0.5
    """
    busy, period, needed = first.link_s, first.iteration_s, second.link_s
    if needed <= 0 or busy <= 0:
        return 0.0
    free = period - busy
    if free <= WORTHLESS * period:
        return inf
    return busy * (busy * (ceil(needed / free - 1e-12) - 0.5) + needed) / period


def loss_behind(first: Rival, second: Rival) -> float:
    """Computing per second that the second job loses because the first goes first."""
    delay = delay_behind(first, second)
    if delay == inf:
        return second.work / second.iteration_s
    exposed = max(second.link_s + delay - second.hidden_s, 0.0) - max(second.link_s - second.hidden_s, 0.0)
    return second.work / second.iteration_s - second.work / (second.iteration_s + exposed)


def priorities(jobs: Sequence[Rival]) -> list[float]:
    """P_j of every job, larger first; the reference is the one that is longest on its link.

    >>> small, large = Rival(1.0, 0.5, 1.0), Rival(8.0, 0.5, 1.0)
    >>> priorities([small, large])[1] > priorities([small, large])[0]
    True
    """
    reference = max(jobs, key=lambda job: job.link_s / job.iteration_s)
    return [_against(reference, job) for job in jobs]


def _against(reference: Rival, job: Rival) -> float:
    if job is reference:
        return reference.intensity
    behind, ahead = loss_behind(reference, job), loss_behind(job, reference)
    if behind <= WORTHLESS and ahead <= WORTHLESS:
        return job.intensity  # neither feels the other
    return reference.intensity * min(behind / max(ahead, WORTHLESS), MOST)
