"""Degraded jobs get dedicated links back: when parts come back, and when others let go of theirs."""

from __future__ import annotations

from ropewalk.serve.job import ServedJob
from ropewalk.serve.turn import Turn
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.pinned import pinned

MOST_TRIED = 4
"""Degraded jobs that are tried when links become free: a dead spine can degrade all jobs of a cluster at once."""


def heal(turn: Turn, most: int | None = None) -> None:
    """Give degraded jobs dedicated links where there are any; of many, `most`, of which others have their turn next."""
    state = turn.state
    if state.settings.rule.shares:
        return
    degraded = sorted((state.jobs[job] for job in state.degraded), key=lambda job: job.number)
    if most is not None and len(degraded) > most:
        first = state.next_job % len(degraded)
        degraded = [*degraded[first:], *degraded[:first]][:most]
    for job in degraded:
        _heal(turn, job)


def other_links(turn: Turn, job: ServedJob, held: Allocation) -> Allocation | None:
    """Links for the same GPUs, while the job holds none; what it holds stays as it was."""
    state = turn.state
    with state.set_aside(job):
        found = pinned(state.settings.rule, state.occupancy, job.id, held.gpus, held)
    return found if isinstance(found, Allocation) and found.stage != "shared" else None


def _heal(turn: Turn, job: ServedJob) -> None:
    assert job.allocation is not None
    found = other_links(turn, job, job.allocation)
    if found is not None:
        turn.tell("job-rerouted", turn.move(job, found, degraded=False))
        turn.state.keep_out()
