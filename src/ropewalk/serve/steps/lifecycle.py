"""Jobs come, start, end, are held, bound and expire."""

from __future__ import annotations

from heapq import heappop
from typing import Any

from ropewalk.serve import answers
from ropewalk.serve.dispatch import check_possible, dispatch
from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import Bind, Cancel, End, Expire, Hold, Release, RulesGone, Submit
from ropewalk.serve.outcome import Refused
from ropewalk.serve.state import opens_links
from ropewalk.serve.turn import Turn

MOST_WAITING = 10_000
"""Jobs of one owner that wait at a time: nobody fills the memory of the controller with them."""


def submit(turn: Turn, asked: Submit) -> dict[str, Any]:
    """A job joins the queue; one that can never start is refused, and so is one of too many that wait."""
    state = turn.state
    if state.waiting_of[turn.actor] >= MOST_WAITING:
        raise Refused(
            "queue-full", f"{MOST_WAITING} jobs of {turn.actor or 'this file'} wait already",
            "submit more when some have started, or cancel those that are not needed", {"waiting": MOST_WAITING},
        )  # fmt: skip
    job = ServedJob(
        number=state.next_job,
        name=asked.name,
        gpus=asked.gpus,
        user=asked.user,
        owner=turn.actor,
        submitted_at=turn.now,
        expected_s=asked.expected_s,
        deadline_s=None if asked.deadline_s is None else turn.now + asked.deadline_s,
        priority=asked.priority,
        requeue=asked.requeue,
        servers=asked.servers,
        labels=asked.labels,
        external=asked.external,
        held=asked.hold,
        promised_step_s=asked.promised_step_s,
        expires_at=None if asked.expires_s is None or asked.external else turn.now + asked.expires_s,
    )
    check_possible(state, job)
    state.next_job += 1
    job = turn.put(job)
    state.watch_expiry(job)
    turn.tell("job-submitted", job)
    if not job.held:
        state.enqueue(job)
        dispatch(turn)
    return answers.job_answer(state, state.job(job.id))


def end(turn: Turn, asked: End) -> dict[str, Any]:
    """A job is over, and what it held is free; an ended job stays as it was."""
    return _over(turn, asked.job, asked.outcome, asked.note)


def cancel(turn: Turn, asked: Cancel) -> dict[str, Any]:
    return _over(turn, asked.job, "cancelled", asked.note)


def _over(turn: Turn, job_id: str, outcome: str, note: str) -> dict[str, Any]:
    state = turn.state
    job = state.job(job_id)
    if job.state != "ended":
        finish(turn, job, outcome, note)
        dispatch(turn)
    return answers.job_answer(state, state.job(job_id))


def finish(turn: Turn, job: ServedJob, outcome: str, note: str = "") -> ServedJob:
    """End a job that waits or runs; whoever may start now is started by the caller."""
    state = turn.state
    releasing, ran_on = job.releasing, None
    if job.allocation is not None:
        ran_on = answers.allocation_document(state.occupancy.plant, job.allocation)
        releasing = turn.let_go(job)
    elif job.number in state.line:
        state.dequeue(job.number)
    opened = opens_links(job)
    ended = turn.put(
        job, state="ended", outcome=outcome, note=note, ended_at=turn.now, held=False, again=False,
        expires_at=None, releasing=releasing, allocation=None, ran_on=ran_on,
    )  # fmt: skip
    if opened:
        state.keep_out()
    turn.tell("job-ended", ended, note=note)
    return ended


def hold(turn: Turn, asked: Hold) -> dict[str, Any]:
    state = turn.state
    job = _pending(turn, asked.job, "held")
    if not job.held:
        state.dequeue(job.number)
        held = turn.put(job, held=True, note=asked.note)
        turn.tell("job-held", held, note=asked.note)
        dispatch(turn)
    return answers.job_answer(state, state.job(job.id))


def release(turn: Turn, asked: Release) -> dict[str, Any]:
    state = turn.state
    job = _pending(turn, asked.job, "released")
    if job.held:
        check_possible(state, job)
        released = turn.put(job, held=False, note="")
        turn.tell("job-released", released)
        state.enqueue(released)
        dispatch(turn)
    return answers.job_answer(state, state.job(job.id))


def _pending(turn: Turn, job_id: str, what: str) -> ServedJob:
    job = turn.state.job(job_id)
    if job.state != "pending":
        remedy = "end or cancel it instead" if job.state == "running" else "submit it again"
        fact = f"job {job.id} is {job.state}, and only waiting jobs can be {what}"
        raise Refused("wrong-state", fact, remedy, {"state": job.state})
    return job


def bind(turn: Turn, asked: Bind) -> dict[str, Any]:
    """A job gets its name in another scheduler; bound to the same name again it stays as it is."""
    state = turn.state
    job = state.job(asked.job)
    if job.state == "ended":
        raise Refused(
            "wrong-state", f"job {job.id} has ended as {job.outcome}", "submit it again", {"state": job.state}
        )
    if job.external not in (None, asked.external):
        raise Refused(
            "conflict", f"job {job.id} is bound to {job.external}", "bind another job", {"external": job.external}
        )
    if job.external is None or job.expires_at is not None:
        turn.tell("job-bound", turn.put(job, external=asked.external, expires_at=None))
    return answers.job_answer(state, state.job(job.id))


def expire(turn: Turn, _: Expire) -> dict[str, Any]:
    """Reservations that nobody has bound in time end as lost."""
    state = turn.state
    lost = []
    while state.expiries and state.expiries[0][0] <= turn.now:
        at, number = heappop(state.expiries)
        job = state.jobs.get(f"j{number}")
        if job is not None and job.expires_at == at and job.state != "ended":
            finish(turn, job, "lost", "it was not bound in time")
            lost.append(job.id)
    if lost:
        dispatch(turn)
    return {"expired": lost}


def rules_gone(turn: Turn, asked: RulesGone) -> dict[str, Any]:
    """Links of earlier allocations of a job are free again; saying it twice changes nothing."""
    state = turn.state
    job = state.job(asked.job)
    gone = [number for number, _ in job.releasing if asked.generation is None or number <= asked.generation]
    if gone:
        for number in gone:
            state.occupancy.free_links(f"{job.id}/{number}")
        state.changes += 1
        turn.freed = True
        left = tuple(one for one in job.releasing if one[0] not in gone)
        turn.tell("links-released", turn.put(job, releasing=left), generations=gone)
        dispatch(turn)
    return answers.job_answer(state, state.job(asked.job))
