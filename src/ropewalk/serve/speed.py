"""How fast a job trains: what it reports while it runs, beside the step time that its plan promised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ropewalk.serve.job import ServedJob

KEPT = 60
"""Reports of a job that are kept, the latest; one more and the oldest is forgotten."""
RECENT = 5
"""Reports whose steps are averaged to what is compared with the promise."""
EVERY_S = 1.0
"""A job reports no more often than this: reports are committed like everything else."""


ENOUGH = 3
"""Reports that it takes to call a job slow."""
SLOW, FINE = 1.10, 1.05
"""A job is slow from so many times the promised step time on, and fine again below the other; between the two it stays
what it was, so that nobody is told of every wobble."""


class MeasuredSpeed(NamedTuple):
    """Some steps of a job, timed by the job itself."""

    at: float
    """When it was reported, in Unix time."""
    step: int
    """The last of these steps, counted from the beginning of training."""
    steps: int
    seconds: float
    """All of these steps together."""
    generation: int
    """The allocation that the job had: its speed on an earlier one says nothing about this one."""

    @property
    def step_s(self) -> float:
        return self.seconds / self.steps

    def as_document(self) -> dict[str, Any]:
        return self._asdict() | {"step_s": self.step_s}


def measured_of(document: Sequence[Sequence[Any]]) -> tuple[MeasuredSpeed, ...]:
    """Reports as a store or a file keeps them; anything else raises ValueError or TypeError."""
    found = tuple(MeasuredSpeed(*one) for one in document)
    for one in found:
        whole = (one.step, one.steps, one.generation)
        if any(type(number) is not int for number in whole) or any(
            type(number) not in (int, float) for number in (one.at, one.seconds)
        ):
            raise ValueError(f"a report is {list(one)!r}")
        if not (one.steps > 0 and one.seconds > 0):
            raise ValueError(f"a report is of {one.steps} steps in {one.seconds} s")
    return found


def recent_step_s(job: ServedJob) -> float | None:
    """Seconds per step over the latest reports from where the job runs now; None before the first."""
    here = [one for one in job.measured if one.generation == job.generation][-RECENT:]
    return sum(one.seconds for one in here) / sum(one.steps for one in here) if here else None


def slowdown(job: ServedJob) -> float | None:
    """How many times as long as promised a step takes lately; None where one of the two is not known."""
    recent = recent_step_s(job)
    return None if recent is None or job.promised_step_s is None else recent / job.promised_step_s


def is_slow(job: ServedJob) -> bool:
    """Are its steps clearly longer than promised? Fewer than `ENOUGH` reports do not say so."""
    factor = slowdown(job)
    here = sum(one.generation == job.generation for one in job.measured[-RECENT:])
    if factor is None or here < ENOUGH:
        return False
    return factor >= (FINE if job.slow else SLOW)


def speed_document(job: ServedJob, *, history: bool = False) -> dict[str, Any] | None:
    """What a job was promised and what it has reported; None where there is neither."""
    if job.promised_step_s is None and not job.measured:
        return None
    last = job.measured[-1] if job.measured else None
    document: dict[str, Any] = {
        "promised_step_s": job.promised_step_s,
        "recent_step_s": recent_step_s(job),
        "slowdown": slowdown(job),
        "slow": job.slow,
        "step": None if last is None else last.step,
        "reported_at": None if last is None else last.at,
        "reports": job.reports,
    }
    return document | ({"history": [one.as_document() for one in job.measured]} if history else {})
