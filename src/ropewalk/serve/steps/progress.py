"""A running job says how fast it trains."""

from __future__ import annotations

from math import ceil
from typing import Any

from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import Progress
from ropewalk.serve.outcome import Refused
from ropewalk.serve.speed import EVERY_S, KEPT, MeasuredSpeed, is_slow, recent_step_s, speed_document
from ropewalk.serve.turn import Turn


def progress(turn: Turn, asked: Progress) -> dict[str, Any]:
    """Keep a report; one that is kept already changes nothing. The version of the job stays: nobody has changed it."""
    job = turn.state.job(asked.job)
    if job.state != "running":
        fact = f"job {job.id} is {job.state}, and only running jobs report their speed"
        raise Refused("wrong-state", fact, "report when it runs", {"state": job.state})
    if any((asked.step, asked.steps, asked.seconds) == (one.step, one.steps, one.seconds) for one in job.measured):
        return _answer(job)
    since_s = turn.now - job.measured[-1].at if job.measured else EVERY_S
    if since_s < EVERY_S:
        raise Refused(
            "too-many-requests", f"job {job.id} has reported {since_s:.1f} s ago",
            f"report every {EVERY_S:g} s or less often: give the steps and seconds since the last report",
            {"retry_after_s": ceil(EVERY_S - since_s)},
        )  # fmt: skip
    new = MeasuredSpeed(turn.now, asked.step, asked.steps, asked.seconds, job.generation)
    told = job.changed({"measured": (*job.measured, new)[-KEPT:], "reports": job.reports + 1})
    slow = is_slow(told)
    if slow != job.slow:
        facts = {"recent_step_s": recent_step_s(told), "promised_step_s": told.promised_step_s}
        turn.tell("job-slow" if slow else "job-as-promised", told, **facts)
    return _answer(turn.note(told, slow=slow))


def _answer(job: ServedJob) -> dict[str, Any]:
    return {
        "id": job.id, "name": job.name, "state": job.state, "version": job.version, "speed": speed_document(job)
    }  # fmt: skip
