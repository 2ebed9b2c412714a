"""What people ask of the controller without changing it: a job, the queue, the status. `projection` looks ahead."""

from __future__ import annotations

from typing import Any

from ropewalk.serve.explaining import explain as explain
from ropewalk.serve.job import ServedJob
from ropewalk.serve.speed import speed_document
from ropewalk.serve.state import State
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.fibres import free_fibres
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_fibres import free_pod_fibres
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.parts import part_names
from ropewalk.tenancy.plant import Plant


def job_answer(state: State, job: ServedJob) -> dict[str, Any]:
    """A job by the names of the plant; a waiting one says why it waits."""
    document = job_document(state.occupancy.plant, job)
    if job.state == "pending":
        document["reason"] = explain(state, job)
    return document


def job_document(plant: Plant, job: ServedJob) -> dict[str, Any]:
    """What everybody may read of a job."""
    document: dict[str, Any] = {
        "id": job.id,
        "name": job.name,
        "user": job.user,
        "owner": job.owner,
        "gpus": job.gpus,
        "state": job.state,
        "outcome": job.outcome,
        "version": job.version,
        "seq": job.seq,
        "submitted_at": job.submitted_at,
        "started_at": job.started_at,
        "ended_at": job.ended_at,
        "expected_s": job.expected_s,
        "expected_end": job.expected_end if job.state == "running" else None,
        "deadline_at": job.deadline_s,
        "expires_at": job.expires_at,
        "priority": job.priority,
        "requeue": job.requeue,
        "restarts": job.restarts,
        "held": job.held,
        "managed": job.managed,
        "degraded": job.degraded,
        "external": job.external,
        "labels": job.labels,
        "note": job.note,
        "generation": job.generation,
        "releasing": [number for number, _ in job.releasing],
        "speed": speed_document(job),
    }
    document["allocation"] = job.ran_on if job.allocation is None else allocation_document(plant, job.allocation)
    return document


def allocation_document(plant: Plant, held: Allocation) -> dict[str, Any]:
    """Servers in rank order with the GPUs used in each, leafs, spines and how many links are the job's own."""
    return {
        "stage": held.stage,
        "guarantee": held.guarantee,
        "servers": servers_in_rank_order(plant, held),
        "leafs": [plant.leaf_names[leaf] for leaf in held.leafs],
        "spines": [plant.spine_names[spine] for spine in held.spines],
        "links": len(held.links),
        **({"cores": _cores_of(plant, held), "core_links": len(held.core_links)} if held.core_links else {}),
    }


def _cores_of(plant: Plant, held: Allocation) -> list[str]:
    """The cores that a job has links of its own to."""
    return [plant.core_names[core] for core in sorted({core for _, core in held.core_links})]


def servers_in_rank_order(plant: Plant, held: Allocation) -> list[dict[str, Any]]:
    """Ranks go through the servers in this order, and through the GPUs of each in the order in which they stand."""
    size, gpus, names = plant.gpus_per_server, held.gpus, plant.server_names
    whole = list(range(size))
    found: list[dict[str, Any]] = []
    at = 0
    while at < len(gpus):
        server, place = divmod(gpus[at], size)
        if not place and gpus[at : at + size] == tuple(range(gpus[at], gpus[at] + size)):
            found.append({"name": names[server], "gpus": whole})
            at += size
            continue
        first = at
        while at < len(gpus) and gpus[at] // size == server:
            at += 1
        found.append({"name": names[server], "gpus": [gpu % size for gpu in gpus[first:at]]})
    return found


def _free_links(occupancy: Occupancy) -> int:
    """Cables of leafs that a new job may use; where optical switches are in the middle, fibres without a circuit."""
    plant = occupancy.plant
    if isinstance(plant, OpticalPlant):
        return int(free_fibres(occupancy).leaf.sum())
    if isinstance(plant, PodOpticalPlant):
        return int(free_pod_fibres(occupancy).leaf.sum())
    return int(occupancy.ports_of_leaf.sum())


def status(state: State) -> dict[str, Any]:
    """The cluster in a few numbers."""
    plant, occupancy = state.occupancy.plant, state.occupancy
    running = [job for job in state.jobs.values() if job.state == "running"]
    waiting = [job for job in state.jobs.values() if job.state == "pending"]
    return {
        "plant": plant.name,
        "settings": state.settings.as_document(),
        "gpus": {"total": plant.gpus, "used": occupancy.used, "free": occupancy.free},
        "links": {"total": int(plant.cables.sum()), "free": _free_links(occupancy)},
        "jobs": {
            "running": len(running),
            "pending": len(waiting),
            "held": sum(job.held for job in waiting),
            "releasing": sum(bool(job.releasing) for job in state.jobs.values()),
        },
        "drained": list(part_names(plant, state.drained)),
        "failed": list(part_names(plant, state.failed)),
    }


def queue(state: State, limit: int | None = None) -> dict[str, Any]:
    """Waiting jobs in order, the held ones after them; a job says in one line why it waits, `explain` says it all."""
    first = state.line.first(len(state.line) if limit is None else limit)
    waiting = [{**_line(job), "reason": _brief(explain(state, job))} for job in (state.jobs[f"j{n}"] for n in first)]
    held = [job for job in state.jobs.values() if job.state == "pending" and job.held]
    return {
        "order": state.settings.queue,
        "backfill": state.settings.backfill,
        "length": len(state.line),
        "waiting": waiting,
        "held": [{**_line(job), "reason": _brief(explain(state, job))} for job in held[:limit]],
        "held_count": len(held),
    }


def _brief(reason: dict[str, Any]) -> dict[str, Any]:
    return {"code": reason["code"], "message": reason["message"]}


def _line(job: ServedJob) -> dict[str, Any]:
    return {
        "id": job.id, "name": job.name, "user": job.user, "gpus": job.gpus, "priority": job.priority,
        "submitted_at": job.submitted_at, "expected_s": job.expected_s,
    }  # fmt: skip
