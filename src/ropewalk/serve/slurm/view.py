"""The controller's jobs as the bridge compares them with Slurm's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ropewalk.documents.numbers import is_count
from ropewalk.export.cluster.ranks import node_names
from ropewalk.serve.controller import Controller
from ropewalk.serve.job import ServedJob
from ropewalk.serve.slurm.seen import Ours
from ropewalk.serve.state import State

TOKEN = "slurm-token"
"""The label that ties a job to the AdminComment of one of Slurm's."""
ARRAY = "slurm-array"
"""The label that says which job array it is a task of."""
BY_SLURM = "by Slurm: "
"""Begins the note of a job that ended because Slurm said so; any other end of it is somebody's wish."""


@dataclass(frozen=True)
class ControllerView:
    """What the bridge needs of the controller at one moment."""

    ours: tuple[Ours, ...]
    servers: frozenset[str]
    cancelled: frozenset[str]
    """Tokens of jobs that somebody cancelled here."""
    drained: frozenset[str]
    """Servers that take no new jobs."""


def view_of(controller: Controller) -> ControllerView:
    """Runs on the writer's thread, between two batches."""
    state = controller.state
    ours = tuple(_ours(state, job) for job in state.jobs.values() if job.state != "ended")
    names = state.plant.server_names
    return ControllerView(ours, frozenset(names), frozenset(_cancelled(state.ended.values())), _drained(state))


def _ours(state: State, job: ServedJob) -> Ours:
    held = job.allocation if job.state == "running" else None
    since = job.started_at if job.state == "running" else job.submitted_at
    array = job.labels.get(ARRAY, "")
    return Ours(
        id=job.id,
        state="running" if held is not None else "pending",
        user=job.user,
        since=since or 0.0,
        servers=() if held is None else tuple(node_names(state.occupancy.plant, held)),
        token=job.labels.get(TOKEN, ""),
        external=job.external or "",
        array=int(array) if is_count(array) else 0,
    )


def _cancelled(ended: Collection[ServedJob]) -> set[str]:
    return {
        job.labels[TOKEN]
        for job in ended
        if job.outcome == "cancelled" and TOKEN in job.labels and not job.note.startswith(BY_SLURM)
    }


def _drained(state: State) -> frozenset[str]:
    out = state.drained | state.failed
    return frozenset(state.plant.server_names[server] for server in out.servers)
