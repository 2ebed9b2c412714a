"""Jobs: how many GPUs, when they come, how often they repeat which work, and by when they should be done."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ropewalk.errors import ClusterError, Findings
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.work import Iteration


@dataclass(frozen=True)
class Job:
    """A rigid gang: all of its GPUs at once, from start to finish, never moved and never interrupted by others.

    >>> from ropewalk.tenancy.work import Iteration
    >>> Job("a", gpus=8, arrival_s=0.0, iterations=100, work=Iteration(0.5)).gpus
    8
    """

    name: str
    gpus: int
    arrival_s: float
    iterations: float
    """Usually a whole number; a trace that only knows durations gives what fits them."""
    work: Iteration
    """What one iteration does."""
    deadline_s: float | None = None
    """The moment by which it should be done, on the clock of the arrivals."""
    expected_s: float | None = None
    """How long its user says it runs: what backfill and the shortest-first queue go by. Without it they take the time
    on a quiet network."""
    model: str = ""
    """What it trains, as tables name it."""
    trains: str = ""
    """Where its communication comes from, in words."""
    split: str = ""
    """How its model is split, in words, where that was decided."""

    def findings(self) -> list[str]:
        """What is wrong with this job, each with its remedy."""
        wrong = []
        if flaw := name_flaw(self.name):
            wrong.append(flaw)
        if self.gpus < 1:
            wrong.append(f"job {self.name!r} asks for {self.gpus} GPUs: give 1 or more")
        if not (math.isfinite(self.arrival_s) and self.arrival_s >= 0):
            wrong.append(f"job {self.name!r} arrives at {self.arrival_s} s: give 0 or later")
        if not (math.isfinite(self.iterations) and self.iterations > 0):
            wrong.append(f"job {self.name!r} has {self.iterations} iterations: give more than 0")
        if self.deadline_s is not None and not math.isfinite(self.deadline_s):
            wrong.append(f"job {self.name!r} has a deadline of {self.deadline_s} s: give a time or none")
        if self.expected_s is not None and not (math.isfinite(self.expected_s) and self.expected_s > 0):
            wrong.append(f"job {self.name!r} expects to run {self.expected_s} s: give more than 0, or nothing")
        return wrong


def name_flaw(name: str) -> str | None:
    """What is wrong with the name of a job; names go to terminals, tables and files of other tools.

    >>> name_flaw("a\\nb")
    "job 'a\\\\nb' has characters in its name that cannot be printed: leave them out"
    """
    if not name.strip():
        return "a job has no name: name every job"
    if not name.isprintable():
        return f"job {name!r} has characters in its name that cannot be printed: leave them out"
    return None


def check_jobs(jobs: Sequence[Job], plant: Plant) -> None:
    """Refuse jobs that no cluster, or not this one, could run; all mistakes are reported together."""
    findings = Findings(ClusterError, "jobs")
    if not jobs:
        findings.add("the list is empty: give at least one job")
    for job in jobs:
        for message in job.findings():
            findings.add(message)
        if job.gpus > plant.gpus:
            findings.add(
                f"job {job.name!r} asks for {job.gpus} GPUs, but {plant.name} has {plant.gpus}: give a larger cluster "
                "or leave the job out"
            )
    for name in _twice(job.name for job in jobs):
        findings.add(f"job {name!r} is listed twice: give every job its own name")
    findings.raise_if_any()


def _twice(names: Iterable[str]) -> list[str]:
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    return [name for name, count in seen.items() if count > 1]
