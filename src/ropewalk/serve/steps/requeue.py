"""A job that was started goes back into the queue, first in line."""

from __future__ import annotations

from typing import Any

from ropewalk.serve import answers
from ropewalk.serve.dispatch import dispatch
from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import Requeue
from ropewalk.serve.outcome import Refused
from ropewalk.serve.state import opens_links
from ropewalk.serve.turn import Turn


def requeue(turn: Turn, asked: Requeue) -> dict[str, Any]:
    """Another scheduler did not start it where it was to run; a job that waits already stays as it is."""
    state = turn.state
    job = state.job(asked.job)
    if job.state == "ended":
        raise Refused(
            "wrong-state", f"job {job.id} has ended as {job.outcome}", "submit it again", {"state": job.state}
        )
    if job.state == "running":
        put_back(turn, job, asked.note)
        dispatch(turn)
    return answers.job_answer(state, state.job(job.id))


def put_back(turn: Turn, job: ServedJob, note: str = "") -> ServedJob:
    """Take back what a running job holds and let it wait before everybody else; the caller dispatches."""
    releasing, opened = turn.let_go(job), opens_links(job)
    waiting = turn.put(
        job, state="pending", note=note, started_at=None, allocation=None, again=True, restarts=job.restarts + 1,
        releasing=releasing, degraded=False, managed=True,
    )  # fmt: skip
    if opened:
        turn.state.keep_out()
    turn.tell("job-requeued", waiting, note=note)
    turn.state.enqueue(waiting)
    return waiting
