"""The last day of a live cluster: which jobs waited and ran when, and how many GPUs were in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropewalk.serve.state import KEPT_ENDED

if TYPE_CHECKING:
    from ropewalk.serve.job import ServedJob
    from ropewalk.serve.state import State

DAY_S = 86_400.0
MOST_BARS = 400
"""Jobs that are drawn; of more, those with the most GPU-hours."""
MOST_CHANGES = 4_000


def day(state: State, now: float) -> dict[str, Any]:
    """Jobs of the last day with their times, and the course of GPUs in use; times are Unix seconds."""
    since = now - DAY_S
    ended = list(state.ended.values())
    if len(ended) >= KEPT_ENDED:
        since = max(since, ended[0].ended_at or since)  # those before are no longer in memory
    jobs = [job for job in (*state.jobs.values(), *ended) if (job.ended_at or now) > since]
    course = [(at, used) for at, used in _course(jobs) if at >= since]
    before = sum(job.gpus for job in jobs if job.started_at is not None and job.started_at <= since)
    shown = sorted(jobs, key=lambda job: -_gpu_seconds(job, now))[:MOST_BARS]
    return {
        "now": now,
        "since": since,
        "gpus": state.occupancy.plant.gpus,
        "jobs": [_bar(job) for job in sorted(shown, key=lambda job: job.number)],
        "left_out": len(jobs) - len(shown),
        "used": [[since, before], *map(list, course[-MOST_CHANGES:])],
    }


def _bar(job: ServedJob) -> dict[str, Any]:
    return {
        "id": job.id, "name": job.name, "user": job.user, "gpus": job.gpus, "state": job.state, "outcome": job.outcome,
        "submitted_at": job.submitted_at, "started_at": job.started_at, "ended_at": job.ended_at,
    }  # fmt: skip


def _gpu_seconds(job: ServedJob, now: float) -> float:
    """What it has used; a waiting job counts from when it was submitted, because people look for it."""
    began = job.started_at if job.started_at is not None else job.submitted_at
    return job.gpus * max(0.0, (job.ended_at or now) - began)


def _course(jobs: list[ServedJob]) -> list[tuple[float, int]]:
    """GPUs in use after every start and end."""
    changes: dict[float, int] = {}
    for job in jobs:
        if job.started_at is None:
            continue
        changes[job.started_at] = changes.get(job.started_at, 0) + job.gpus
        if job.ended_at is not None:
            changes[job.ended_at] = changes.get(job.ended_at, 0) - job.gpus
    used, found = 0, []
    for at in sorted(changes):
        used += changes[at]
        found.append((at, used))
    return found
