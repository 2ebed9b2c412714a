"""A job gets another number of GPUs: those that it has stay where that is possible."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ropewalk.serve import answers
from ropewalk.serve.dispatch import check_possible, dispatch
from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import Resize
from ropewalk.serve.outcome import Refused
from ropewalk.serve.turn import Turn
from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.pinned import pinned
from ropewalk.tenancy.policies import Policy
from ropewalk.tenancy.regrown import regrown


def resize(turn: Turn, asked: Resize) -> dict[str, Any]:
    """The same job on more or fewer GPUs, or refused with what is missing; a waiting one asks for another number.

    The step time that was promised for the old number of GPUs is promised no more.
    """
    state = turn.state
    job = state.job(asked.job)
    if job.state == "ended":
        fact = f"job {job.id} has ended as {job.outcome}"
        raise Refused("wrong-state", fact, "submit it again", {"state": job.state})
    if job.servers and job.state == "pending":
        raise Refused("conflict", f"job {job.id} waits for {len(job.servers)} exact servers", "submit it again instead")
    if job.gpus == asked.gpus:
        return answers.job_answer(state, job)
    if job.state == "pending":
        _ask_for(turn, job, asked.gpus)
        return answers.job_answer(state, state.job(job.id))
    held = job.allocation
    assert held is not None
    found = _find(turn, job, held, asked)
    kept = len(set(held.gpus) & set(found.gpus))
    resized = turn.move(job, found, degraded=False, managed=True, servers=(), promised_step_s=None, slow=False)
    state.keep_out()
    turn.tell("job-resized", resized, before=held.size, kept=kept)
    dispatch(turn)
    return answers.job_answer(state, state.job(job.id)) | {"kept_gpus": kept}


def _ask_for(turn: Turn, job: ServedJob, gpus: int) -> None:
    state = turn.state
    check_possible(state, replace(job, gpus=gpus))
    if not job.held:
        state.dequeue(job.number)
    asked = turn.put(job, gpus=gpus, promised_step_s=None)
    turn.tell("job-resized", asked, before=job.gpus, kept=0)
    if not job.held:
        state.enqueue(asked)
        state.tried = None
        dispatch(turn)


def _find(turn: Turn, job: ServedJob, held: Allocation, asked: Resize) -> Allocation:
    """The first choice with the guarantees of the policy; the state is as before when this returns."""
    state, rule = turn.state, turn.state.settings.rule
    with state.set_aside(job):
        for gpus in regrown(state.occupancy, held, asked.gpus, equal=rule.isolates and rule.name != "laas"):
            found = pinned(rule, state.occupancy, job.id, gpus, held)
            if isinstance(found, Allocation) and _is_as_good(rule, found):
                return found
        fresh = rule.make(state.occupancy, job.id, asked.gpus)
    if isinstance(fresh, Allocation) and not asked.keep_all:
        return fresh
    raise _refused(job, asked, fresh)


def _is_as_good(rule: Policy, found: Allocation) -> bool:
    """Does it promise what the policy promises?"""
    return rule.shares or found.guarantee in ("contention-free", "isolated") or rule.name == "laas"


def _refused(job: ServedJob, asked: Resize, fresh: Allocation | Waiting) -> Refused:
    if isinstance(fresh, Allocation):
        return Refused(
            "conflict", f"job {job.id} cannot keep its GPUs and have {asked.gpus}",
            "let it move (keep_all: false), or ask for another number", {"gpus": asked.gpus},
        )  # fmt: skip
    code = "impossible" if fresh.never else "conflict"
    remedy = "ask for another number" if fresh.never else "try again when jobs have ended, or ask for another number"
    return Refused(code, f"job {job.id} cannot have {asked.gpus} GPUs: {fresh.explanation}", remedy,
                   {"reason": fresh.reason.value, "gpus": asked.gpus})  # fmt: skip
