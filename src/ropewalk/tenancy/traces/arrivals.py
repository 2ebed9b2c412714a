"""When jobs come, and how much of a cluster they ask for: the load, and Poisson arrivals that produce it.

Load = sum over classes of jobs (GPUs * mean duration * share of the class) / (mean gap * GPUs of the cluster): the part
of all GPU time that would be busy if nobody ever waited or slowed down. From about 1 on queues only grow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ropewalk.errors import ClusterError
from ropewalk.tenancy.traces.job import TraceJob


def mean_gpu_seconds(jobs: Sequence[TraceJob]) -> float:
    """What a job asks for on average; the sum over classes in the formula of the load."""
    if not jobs:
        raise ClusterError("there is no job to take the mean of: give at least one")
    total = math.fsum(job.gpu_seconds for job in jobs)
    if math.isnan(total):
        nameless = next(job.name for job in jobs if job.duration_s is None)
        raise ClusterError(f"job {nameless!r} has no duration, so its load is not known: give durations or a mean gap")
    return total / len(jobs)


def load_of(jobs: Sequence[TraceJob], mean_gap_s: float, cluster_gpus: int) -> float:
    """The load that jobs put on a cluster when they come with this mean gap.

    >>> load_of([TraceJob("a", gpus=4, arrival_s=0.0, duration_s=60.0)], mean_gap_s=30.0, cluster_gpus=16)
    0.5
    """
    _positive(mean_gap_s, "mean gap")
    return mean_gpu_seconds(jobs) / (mean_gap_s * _positive(cluster_gpus, "number of GPUs"))


def mean_gap_for(jobs: Sequence[TraceJob], load: float, cluster_gpus: int) -> float:
    """The mean gap between arrivals at which jobs put this load on a cluster."""
    return mean_gpu_seconds(jobs) / (_positive(load, "load") * _positive(cluster_gpus, "number of GPUs"))


def poisson(jobs: Sequence[TraceJob], mean_gap_s: float, seed: int = 0) -> tuple[TraceJob, ...]:
    """The jobs in their order with exponential gaps, the first after a gap too; the times of the log are not used.

    Deadlines keep their distance from the arrival.
    """
    gaps = np.random.default_rng(seed).exponential(_positive(mean_gap_s, "mean gap"), len(jobs))
    times = np.cumsum(gaps).tolist()
    return tuple(_moved(job, time) for job, time in zip(jobs, times, strict=True))


def reordered(jobs: Sequence[TraceJob], seed: int) -> tuple[TraceJob, ...]:
    """The same jobs with blocks of them in another order: what might have come as well.

    Blocks have about as many jobs as there are blocks; inside one, jobs keep their order and their distance. Deadlines
    keep their distance from the arrival.

    >>> jobs = [TraceJob(name, gpus=1, arrival_s=at) for name, at in (("a", 0.0), ("b", 1.0), ("c", 5.0), ("d", 7.0))]
    >>> [(job.name, job.arrival_s) for job in reordered(jobs, seed=3)]
    [('c', 4.0), ('d', 6.0), ('a', 6.0), ('b', 7.0)]
    """
    count = max(1, round(math.sqrt(len(jobs))))
    blocks = np.array_split(np.arange(len(jobs)), count)
    order = np.concatenate([blocks[at] for at in np.random.default_rng(seed).permutation(count)]).tolist()
    before = [0.0, *(job.arrival_s for job in jobs)]
    gaps = [jobs[at].arrival_s - before[at] for at in order]
    times = np.cumsum(gaps).tolist()
    return tuple(_moved(jobs[at], time) for at, time in zip(order, times, strict=True))


def _moved(job: TraceJob, arrival_s: float) -> TraceJob:
    deadline = None if job.deadline_s is None else arrival_s + (job.deadline_s - job.arrival_s)
    return replace(job, arrival_s=arrival_s, deadline_s=deadline)


def _positive(value: float, what: str) -> float:
    if not 0 < value < math.inf:
        raise ClusterError(f"the {what} must be above 0, got {value:g}")
    return value
