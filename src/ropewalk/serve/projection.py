"""What will happen if jobs end when they are expected to: the same state machine, run ahead of time on a fork."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any

from ropewalk.serve import answers
from ropewalk.serve.controller import Controller
from ropewalk.serve.dispatch import place_of
from ropewalk.serve.explaining import explain, in_the_way
from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import ChangePolicy, End, Submit
from ropewalk.serve.state import State
from ropewalk.tenancy.allocation import Waiting

MOST_ENDS = 20_000
"""Ends of jobs that are looked ahead; beyond it nothing is promised."""


@dataclass(frozen=True)
class Projection:
    """When a job should start."""

    start_at: float | None
    """None where it cannot be known, or lies too far ahead."""
    after: tuple[str, ...]
    """Jobs that are expected to end before."""


def project(state: State, job_id: str) -> Projection:
    """Let jobs end as expected until this one runs. The state is used up: give a fork.

    Jobs that do not say how long they run are taken never to end, and rules of ended jobs to be gone at once.
    """
    controller = Controller(state)
    if state.settings.keep_links:
        controller.apply(ChangePolicy(keep_links=False), state.now)
    ends = [(job.expected_end, job.number) for job in state.jobs.values() if _ends(job)]
    heapify(ends)
    passed: list[str] = []
    while state.job(job_id).state == "pending" and ends and len(passed) < MOST_ENDS:
        at, number = heappop(ends)
        assert at is not None
        outcome = controller.apply(End(f"j{number}"), max(at, state.now))
        passed.append(f"j{number}")
        for job in outcome.changed:
            if _ends(job):
                heappush(ends, (job.expected_end, job.number))
    found = state.job(job_id)
    return Projection(found.started_at if found.state == "running" else None, tuple(passed))


def what_if(state: State, asked: Submit) -> dict[str, Any]:
    """Would this job start now, where, and else when and what is in its way? The state is used up: give a fork.

    One that can never start is refused as it would be when submitted.
    """
    before = state.fork()
    answer = Controller(state).apply(replace(asked, expires_s=None), state.now).answer
    job = state.job(answer["id"])
    if job.state == "running":
        assert job.allocation is not None
        place = answers.allocation_document(state.occupancy.plant, job.allocation)
        return {
            "would_start": True,
            "now": place,
            "earliest_start_s": 0.0,
            "earliest_start_at": state.now,
            "in_the_way": [],
        }
    return {"would_start": False, "now": None, **_reasons(state, before, job)}


def explanation(state: State, job_id: str) -> dict[str, Any]:
    """Everything about why a job waits and until when. The state is used up: give a fork."""
    job = state.job(job_id)
    document: dict[str, Any] = {"id": job.id, "name": job.name, "gpus": job.gpus, "state": job.state}
    if job.state != "pending":
        return document | {"outcome": job.outcome, "reason": None}
    return document | _reasons(state, state, job)


def _reasons(state: State, alone: State, job: ServedJob) -> dict[str, Any]:
    """Why it waits; `alone` is the state in which the place it would get were the queue empty is looked for."""
    reason = explain(state, job)
    lack = place_of(alone, alone.occupancy, job)
    ahead = list(reason["details"].get("ahead", []))
    if isinstance(lack, Waiting):
        reason["details"] |= in_the_way(state, job, lack)
        if reason["code"] == "behind-in-queue":
            reason["details"]["also"] = {"code": lack.reason.value, "message": lack.explanation}
    now = state.now
    found = Projection(None, ()) if job.held else project(state, job.id)
    wait = None if found.start_at is None else max(found.start_at - now, 0.0)
    in_way = [*ahead, *(one for one in reason["details"].get("blocking", []) if one not in ahead)]
    return {
        "reason": reason | {"earliest_start_s": wait},
        "earliest_start_s": wait,
        "earliest_start_at": found.start_at,
        "in_the_way": in_way,
    }


def _ends(job: ServedJob) -> bool:
    return job.state == "running" and job.expected_end is not None
