"""A replay in numbers: times, the tail, fairness, what the network and fragmentation took away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ropewalk.tenancy.record import JobRecord
from ropewalk.tenancy.timeline import Timeline

HOUR = 3600.0
MOST_MODELS = 12


@dataclass(frozen=True)
class Measure:
    """One number of a replay."""

    name: str
    of: Callable[[Timeline], float]
    about: str
    less_is_better: bool | None = True
    """None where neither is."""


def lost_to_the_network_gpu_h(run: Timeline) -> float:
    """GPU-hours that jobs ran longer than on a quiet network."""
    return sum(job.gpus * max(job.jrt_s - job.quiet_s, 0.0) for job in run.jobs) / HOUR


def lost_to_fragmentation_gpu_h(run: Timeline) -> float:
    """GPU-hours that stood idle while waiting jobs could have used them, had only their number counted."""
    curves = run.curves
    return float(((curves.wanted_gpus - curves.used_gpus)[:-1] * np.diff(curves.time_s)).sum()) / HOUR


def fairness(run: Timeline) -> float:
    """Jain's index of how much longer jobs took than alone: 1 where all are stretched alike."""
    stretch = np.array([job.stretch for job in run.jobs])
    return float(stretch.sum() ** 2 / (len(stretch) * (stretch**2).sum())) if len(stretch) else 1.0


def _percentile(run: Timeline, values: Iterable[float], percent: float) -> float:
    return float(np.percentile(np.fromiter(values, float), percent)) if run.jobs else 0.0


MEASURES = (
    Measure("mean_jct_s", lambda run: run.mean_jct_s, "mean completion time, from arrival to finish"),
    Measure("p99_jct_s", lambda run: run.p99_jct_s, "99th percentile of completion time"),
    Measure("mean_jrt_s", lambda run: run.mean_jrt_s, "mean run time"),
    Measure("mean_jwt_s", lambda run: run.mean_jwt_s, "mean waiting time"),
    Measure("mean_slowdown", lambda run: run.mean_slowdown, "run time over uncontended run time, mean over jobs"),
    Measure("p99_slowdown", lambda run: _percentile(run, (job.slowdown for job in run.jobs), 99),
            "99th percentile of the slowdown"),
    Measure("fairness", fairness, "Jain's index of completion time over uncontended run time: 1 is fair", False),
    Measure("contention_ratio", lambda run: run.contention_ratio, "share of flows that were contended"),
    Measure("gpu_utilisation", lambda run: run.gpu_utilisation, "share of GPU time in use", None),
    Measure("utilisation_of_wanted", lambda run: run.utilisation_of_wanted,
            "GPUs in use, relative to those usable by count", False),
    Measure("fragmentation_events", lambda run: float(run.network_fragmentation_events),
            "failed starts only for lack of common spines"),
    Measure("lost_to_the_network_gpu_h", lost_to_the_network_gpu_h, "GPU-hours of run time beyond uncontended run "
        "time"),
    Measure("lost_to_fragmentation_gpu_h", lost_to_fragmentation_gpu_h,
            "idle GPU-hours that waiting jobs could have used by count"),
    Measure("scaling_factor", lambda run: float(np.mean([job.scaling_factor for job in run.jobs])) if run.jobs else 1.0,
            "time on one GPU over n times the time on n, mean over jobs", False),
    Measure("missed_deadlines", lambda run: float(run.missed_deadlines), "jobs finished after their deadline"),
    Measure("refused_jobs", lambda run: float(len(run.refused)), "jobs that can never start, excluded elsewhere"),
)  # fmt: skip
"""In the order of tables."""


@dataclass(frozen=True)
class JobGroup:
    """Some of the jobs of a replay."""

    name: str
    jobs: int
    slowdown: float
    """Mean of running time over that on a quiet network."""
    worst_slowdown: float
    jct_s: float
    scaling_factor: float


def by_size(run: Timeline) -> list[JobGroup]:
    """Jobs by their size, in powers of two.

    >>> from types import SimpleNamespace
    >>> [size_class(gpus) for gpus in (1, 2, 3, 8, 96)]
    ['1', '2', '3-4', '5-8', '65-128']
    """
    sizes = sorted({_power(job.gpus) for job in run.jobs})
    return [_group(size_class(size), [job for job in run.jobs if _power(job.gpus) == size]) for size in sizes]


def by_model(run: Timeline) -> list[JobGroup]:
    """Jobs by what they train, the most common first; those of one GPU, which send nothing, left out."""
    sending = [job for job in run.jobs if job.gpus > 1]
    names = sorted({job.model for job in sending}, key=lambda name: (-sum(job.model == name for job in sending), name))
    return [_group(name or "not said", [job for job in sending if job.model == name]) for name in names[:MOST_MODELS]]


def pooled(seeds: Sequence[Sequence[JobGroup]]) -> list[JobGroup]:
    """The groups of several replays as one: means over the jobs of all of them, `jobs` as in one replay on average.

    >>> one, two = JobGroup("8", 30, 1.0, 1.0, 60.0, 0.9), JobGroup("8", 10, 2.0, 3.0, 80.0, 0.5)
    >>> pooled([[one], [two]])
    [JobGroup(name='8', jobs=20, slowdown=1.25, worst_slowdown=3.0, jct_s=65.0, scaling_factor=0.8)]
    """
    kept: dict[str, list[JobGroup]] = {}
    for groups in seeds:
        for group in groups:
            kept.setdefault(group.name, []).append(group)
    return [_pooled(name, found, len(seeds)) for name, found in kept.items()]


def _pooled(name: str, found: Sequence[JobGroup], seeds: int) -> JobGroup:
    jobs = sum(group.jobs for group in found)

    def mean(of: Callable[[JobGroup], float]) -> float:
        return sum(group.jobs * of(group) for group in found) / jobs

    return JobGroup(
        name, max(round(jobs / seeds), 1), mean(lambda one: one.slowdown), max(one.worst_slowdown for one in found),
        mean(lambda one: one.jct_s), mean(lambda one: one.scaling_factor),
    )  # fmt: skip


def size_class(gpus: int) -> str:
    """Sizes up to a power of two and above the one before."""
    most = _power(gpus)
    least = most // 2 + 1
    return str(most) if most <= 2 else f"{least}-{most}"


def _power(gpus: int) -> int:
    return 1 << (gpus - 1).bit_length()


def _group(name: str, jobs: list[JobRecord]) -> JobGroup:
    slow = [job.slowdown for job in jobs]
    return JobGroup(
        name, len(jobs), float(np.mean(slow)), max(slow), float(np.mean([job.jct_s for job in jobs])),
        float(np.mean([job.scaling_factor for job in jobs])),
    )  # fmt: skip
