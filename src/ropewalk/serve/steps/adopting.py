"""A job that already runs, started by somebody else: its GPUs are taken, links are reserved around it."""

from __future__ import annotations

from typing import Any

from ropewalk.serve import answers
from ropewalk.serve.dispatch import dispatch, server_numbers
from ropewalk.serve.job import ServedJob
from ropewalk.serve.operation import Adopt
from ropewalk.serve.outcome import Refused
from ropewalk.serve.state import State
from ropewalk.serve.steps.requeue import put_back
from ropewalk.serve.turn import Turn
from ropewalk.tenancy.allocation import Waiting
from ropewalk.tenancy.pinned import in_rank_order, over_shared_links, pinned


def adopt(turn: Turn, asked: Adopt) -> dict[str, Any]:
    """Take a running job over: with dedicated links where there are any, else unmanaged.

    Jobs that it displaces wait again. A live job of the same external name is that job already.
    """
    state = turn.state
    known = next((job for job in state.jobs.values() if _is_known(job, asked.external)), None)
    if known is not None:
        return answers.job_answer(state, known)
    displaced = [_running(state, job_id) for job_id in asked.displaces]
    gpus = _free_gpus(state, asked, displaced)
    for job in displaced:
        put_back(turn, job, f"{asked.external or asked.name} runs on its servers")
    adopted = _place(turn, asked, gpus)
    state.keep_out()
    turn.tell("job-adopted", adopted, managed=adopted.managed)
    dispatch(turn)
    return answers.job_answer(state, state.job(adopted.id))


def _place(turn: Turn, asked: Adopt, gpus: list[int]) -> ServedJob:
    state = turn.state
    started = turn.now if asked.started_at is None else min(asked.started_at, turn.now)
    job = ServedJob(
        number=state.next_job,
        name=asked.name,
        gpus=len(gpus),
        user=asked.user,
        owner=turn.actor,
        submitted_at=turn.now,
        expected_s=None if asked.expected_s is None else asked.expected_s + turn.now - started,
        requeue=asked.requeue,
        servers=asked.servers,
        labels=asked.labels,
        external=asked.external,
        state="running",
        started_at=started,
        generation=1,
    )
    found = pinned(state.settings.rule, state.occupancy, job.id, gpus)
    managed = not isinstance(found, Waiting)
    held = over_shared_links(state.occupancy, job.id, gpus) if isinstance(found, Waiting) else found
    state.next_job += 1
    state.take(held, on_drained=True)
    return turn.put(job, allocation=held, managed=managed)


def _is_known(job: ServedJob, external: str | None) -> bool:
    return external is not None and job.external == external and job.state != "ended"


def _running(state: State, job_id: str) -> ServedJob:
    job = state.job(job_id)
    if job.state != "running":
        fact = f"job {job.id} is {job.state} and holds no servers"
        raise Refused("wrong-state", fact, "name running jobs as displaced", {"state": job.state})
    return job


def _free_gpus(state: State, asked: Adopt, displaced: list[ServedJob]) -> list[int]:
    """GPUs of the servers that nobody else holds, drained or not, leaf by leaf."""
    plant, size = state.plant, state.plant.gpus_per_server
    numbers = server_numbers(state, asked.servers)
    gpus = asked.gpus or len(numbers) * size
    if not len(numbers) <= gpus <= len(numbers) * size:
        raise Refused(
            "invalid", f"{gpus} GPUs are not {len(numbers)} servers of 1 to {size}",
            "give the GPUs that the job uses, or leave them out if it uses whole servers",
        )  # fmt: skip
    given_back = {gpu for job in displaced if job.allocation for gpu in job.allocation.gpus}
    share = gpus // len(numbers) if gpus % len(numbers) == 0 else size
    chosen: list[int] = []
    for server in in_rank_order(plant, numbers):
        wanted = min(share, gpus - len(chosen))
        mask = int(state.occupancy.free_gpus[server])
        seats = range(server * size, (server + 1) * size)
        free = [gpu for gpu in seats if mask >> gpu % size & 1 or gpu in given_back]
        if len(free) < wanted:
            raise _taken(state, server)
        chosen += free[:wanted]
    return chosen


def _taken(state: State, server: int) -> Refused:
    size = state.plant.gpus_per_server
    running = [job for job in state.jobs.values() if job.state == "running" and job.allocation is not None]
    holders = [job.id for job in running if job.allocation and any(g // size == server for g in job.allocation.gpus)]
    name = state.plant.server_names[server]
    return Refused(
        "conflict", f"GPUs of server {name} belong to {', '.join(holders)}",
        "end those jobs if they do not run there, or name them as displaced", {"server": name, "jobs": holders},
    )  # fmt: skip
