"""What a loader hands over: jobs in order of arrival, and what it left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ropewalk.errors import ClusterError
from ropewalk.tenancy.traces.job import TraceJob

Skip = Callable[[str], None]
"""Called with the reason for every job that is left out."""


@dataclass(frozen=True)
class JobTrace:
    """The jobs of a log in order of arrival, the first of them at 0 s unless the caller kept the clock."""

    jobs: tuple[TraceJob, ...]
    format: str
    skipped: tuple[tuple[str, int], ...] = ()
    """(reason, jobs) for everything that was read and left out: nothing is dropped unseen."""


@dataclass(frozen=True)
class Selection:
    """Which jobs of a log are wanted, on the log's own clock (seconds since 1970 where it has dates)."""

    since_s: float | None = None
    until_s: float | None = None
    states: frozenset[str] | None = None
    """How jobs ended, in the words of the log; None takes all of them."""
    least_gpus: int = 1
    most_gpus: int | None = None
    first: int | None = None
    """Only so many jobs, in order of arrival."""

    def reason_against(self, job: TraceJob) -> str | None:
        """Why a job is left out; None keeps it."""
        if self.since_s is not None and job.arrival_s < self.since_s:
            return "arrived too early"
        if self.until_s is not None and job.arrival_s >= self.until_s:
            return "arrived too late"
        if self.states is not None and job.state not in self.states:
            return "ended in another state"
        if job.gpus < self.least_gpus:
            return "requested too few GPUs"
        if self.most_gpus is not None and job.gpus > self.most_gpus:
            return "requested too many GPUs"
        return None


EVERYTHING = Selection()


def gather(
    path: Path,
    format_name: str,
    found: Iterable[TraceJob],
    skipped: Counter[str],
    selection: Selection = EVERYTHING,
    keep_clock: bool = False,
) -> JobTrace:
    """Select, sort by arrival (ties in the order of the log) and let the clock begin with the first job."""
    kept = sorted(_selected(found, skipped, selection), key=lambda job: job.arrival_s)
    if selection.first is not None:
        if len(kept) > selection.first:
            skipped["arrived after the last wanted job"] += len(kept) - selection.first
        kept = kept[: selection.first]
    if not kept:
        left_out = "; ".join(f"{count} {reason}" for reason, count in sorted(skipped.items()))
        raise ClusterError(
            f"trace {path} has no job to replay ({left_out or 'it lists none'}): "
            "give a trace with jobs, or select less strictly"
        )
    begin = 0.0 if keep_clock else kept[0].arrival_s
    jobs = tuple(_earlier(job, begin) if begin else job for job in kept)
    return JobTrace(jobs, format_name, tuple(sorted(skipped.items())))


def _selected(found: Iterable[TraceJob], skipped: Counter[str], selection: Selection) -> Iterator[TraceJob]:
    for job in found:
        reason = selection.reason_against(job)
        if reason is None:
            yield job
        else:
            skipped[reason] += 1


def _earlier(job: TraceJob, begin: float) -> TraceJob:
    deadline = None if job.deadline_s is None else job.deadline_s - begin
    return replace(job, arrival_s=job.arrival_s - begin, deadline_s=deadline)
