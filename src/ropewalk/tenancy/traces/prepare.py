"""What studies do to a trace before they replay it, step by step; each step is a pure function of the jobs.

The vClos study takes Helios' jobs, clips durations to [1,000, 100,000] s and floors them to 100 s, rounds sizes up to
powers of two, maps them onto TPU v4 slices by quantiles, caps them at 512 GPUs, and lets them arrive as a Poisson
process: real submit times are not used. `VCLOS_STUDY` is that preparation; every part of it can be left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ropewalk.errors import ClusterError
from ropewalk.tenancy.traces.job import TraceJob
from ropewalk.tenancy.traces.published import TPU_V4_SLICES, Sizes

Jobs = tuple[TraceJob, ...]


@dataclass(frozen=True)
class Preparation:
    """Which steps are taken, in the order of the fields; None or False leaves one out."""

    shortest_s: float | None = None
    longest_s: float | None = None
    floor_s: float | None = None
    """Durations are cut down to a multiple of this."""
    power_of_two: bool = False
    slices: Sizes | None = None
    most_gpus: int | None = None
    """Larger jobs are cut down to this."""

    def __post_init__(self) -> None:
        shortest, longest = self.shortest_s or 0.0, math.inf if self.longest_s is None else self.longest_s
        if shortest < 0 or longest <= 0 or longest < shortest:
            raise ClusterError(
                f"durations cannot be clipped to {shortest:g} … {longest:g} s: give the shorter one first"
            )
        if self.floor_s is not None and self.floor_s <= 0:
            raise ClusterError(f"durations cannot be floored to {self.floor_s:g} s: give more than 0")
        if self.floor_s is not None and self.floor_s > shortest:
            raise ClusterError(
                f"flooring to {self.floor_s:g} s would leave nothing of shorter jobs: clip durations to that or more"
            )
        if self.most_gpus is not None and self.most_gpus < 1:
            raise ClusterError(f"jobs cannot be cut down to {self.most_gpus} GPUs: give 1 or more")


VCLOS_STUDY = Preparation(1000.0, 100_000.0, 100.0, power_of_two=True, slices=TPU_V4_SLICES, most_gpus=512)


def prepare(jobs: Sequence[TraceJob], steps: Preparation, seed: int = 0) -> Jobs:
    """The jobs after every step. Iterations follow a changed duration, so that an iteration stays as long as it was.

    >>> jobs = [TraceJob("a", gpus=3, arrival_s=0.0, duration_s=1250.0)]
    >>> prepare(jobs, Preparation(shortest_s=100, floor_s=100, power_of_two=True))[0].gpus
    4
    """
    sizes = [power_of_two_from(job.gpus) if steps.power_of_two else job.gpus for job in jobs]
    if steps.slices is not None:
        sizes = matched(sizes, steps.slices, seed)
    most = max(sizes, default=1) if steps.most_gpus is None else steps.most_gpus
    return tuple(_prepared(job, min(gpus, most), steps) for job, gpus in zip(jobs, sizes, strict=True))


def power_of_two_from(gpus: int) -> int:
    """The smallest power of two that is at least so many."""
    return 1 << (gpus - 1).bit_length()


def matched(gpus: Sequence[int], sizes: Sizes, seed: int = 0) -> list[int]:
    """For every job the size that has the same rank in the other distribution: larger jobs stay larger.

    Equally large jobs stand in random order, drawn with the seed: in the order of arrival, the mix of sizes would
    drift over the trace.

    >>> matched([8, 1, 2, 64], Sizes.of_counts("half", {4: 2, 16: 2}))
    [16, 4, 4, 16]
    """
    shuffled = np.random.default_rng(seed).permutation(len(gpus))
    by_size = np.lexsort((shuffled, np.array(gpus)))
    quantiles = np.empty(len(gpus))
    quantiles[by_size] = (np.arange(len(gpus)) + 0.5) / max(len(gpus), 1)
    return [int(size) for size in sizes.at(quantiles)]


def _prepared(job: TraceJob, gpus: int, steps: Preparation) -> TraceJob:
    duration, iterations = job.duration_s, job.iterations
    if job.duration_s is not None:
        longest = math.inf if steps.longest_s is None else steps.longest_s
        duration = min(max(job.duration_s, steps.shortest_s or 0.0), longest)
        if steps.floor_s is not None:
            duration = duration // steps.floor_s * steps.floor_s
        if iterations is not None and duration != job.duration_s:
            iterations = max(1, round(iterations * duration / job.duration_s))
    return replace(job, gpus=gpus, duration_s=duration, iterations=iterations)
