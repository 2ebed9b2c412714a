"""Synthetic traces: as many jobs as wanted, with published sizes and durations, at a load that is a parameter."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ropewalk.errors import ClusterError
from ropewalk.tenancy.traces.arrivals import mean_gap_for, poisson
from ropewalk.tenancy.traces.job import TraceJob
from ropewalk.tenancy.traces.mix import Mix
from ropewalk.tenancy.traces.published import DURATIONS, HISTOGRAM_10000, Durations, Sizes

MOST_JOBS = 10_000_000
"""Of a trace that is made: it is held in memory."""
STREAMS = ("sizes", "durations", "arrivals", "deadlines")
"""Each draws from its own stream, so that changing one distribution leaves the others as they were."""


@dataclass(frozen=True)
class Synthetic:
    """A trace that can be made again: everything that it depends on.

    >>> jobs = Synthetic(jobs=3, cluster_gpus=512, load=0.8, seed=1).build()
    >>> [job.gpus for job in jobs]
    [8, 1, 8]
    """

    jobs: int
    cluster_gpus: int
    load: float | None = None
    mean_gap_s: float | None = None
    """Either the load or the mean gap between arrivals is given; the other follows."""
    sizes: Sizes = HISTOGRAM_10000
    durations: Durations = DURATIONS["helios"]
    mix: Mix = field(default_factory=Mix)
    iteration_s: float = 1.0
    """A quiet iteration; a job has as many as fit its duration, at least one."""
    slack: float | None = None
    """Deadlines: duration times 1 to this after arrival, evenly spread; None gives none."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ClusterError(f"a trace of {self.jobs} jobs is empty: ask for 1 or more")
        if self.jobs > MOST_JOBS:
            raise ClusterError(f"a trace of {self.jobs:,} jobs is too long: ask for {MOST_JOBS:,} or fewer")
        if (self.load is None) == (self.mean_gap_s is None):
            raise ClusterError("the load and the mean gap between arrivals are alternatives: give exactly one")
        if self.iteration_s <= 0:
            raise ClusterError(f"iteration time must be above 0 s, got {self.iteration_s:g} s")
        if self.slack is not None and self.slack < 1:
            raise ClusterError(f"a slack of {self.slack:g} puts deadlines before the end of jobs: give 1 or more")
        if self.seed < 0:
            raise ClusterError(f"the seed is {self.seed}: give 0 or more")

    def build(self) -> tuple[TraceJob, ...]:
        """The jobs in order of arrival. The load is met by what was drawn, not only by what was expected."""
        streams = dict(zip(STREAMS, np.random.SeedSequence(self.seed).spawn(len(STREAMS)), strict=True))
        draws = {name: np.random.default_rng(stream) for name, stream in streams.items()}
        sizes = self.sizes.up_to(self.cluster_gpus).at(draws["sizes"].random(self.jobs)).tolist()
        durations = self.durations.draw(draws["durations"], self.jobs).tolist()
        made = tuple(self._job(number, sizes[number], durations[number]) for number in range(self.jobs))
        gap = self.mean_gap_s if self.load is None else mean_gap_for(made, self.load, self.cluster_gpus)
        assert gap is not None
        arrived = poisson(made, gap, int(draws["arrivals"].integers(2**63)))
        if self.slack is None:
            return arrived
        spread = draws["deadlines"].uniform(1.0, self.slack, self.jobs).tolist()
        return tuple(_with_deadline(job, factor) for job, factor in zip(arrived, spread, strict=True))

    def _job(self, number: int, gpus: int, duration_s: float) -> TraceJob:
        collective, (model, batch) = self.mix.draw(self.seed, number, gpus)
        return TraceJob(
            name=f"job{number}",
            gpus=gpus,
            arrival_s=0.0,
            duration_s=duration_s,
            iterations=max(1, round(duration_s / self.iteration_s)),
            model=model,
            batch=batch,
            collective=collective,
        )


def _with_deadline(job: TraceJob, factor: float) -> TraceJob:
    assert job.duration_s is not None
    return replace(job, deadline_s=job.arrival_s + factor * job.duration_s, expected_s=job.duration_s)
