"""What a Slurm job asks of the controller: so many whole servers, or a reason to leave it to Slurm.

Partitions of the plant are exclusive (`OverSubscribe=EXCLUSIVE`), so a job has whole nodes and all their GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ropewalk.errors import FabricError
from ropewalk.serve.slurm.mark import printable
from ropewalk.serve.slurm.queue import LONGEST_NAME, RESTRICTIONS, SlurmJob
from ropewalk.tenancy.imports.hostlist import expand

_GPUS = re.compile(r"(?:^|,)(?:gres[:/])?gpu(?::[A-Za-z]\w*)?[:=](\d{1,6})(?=,|$)")


@dataclass(frozen=True)
class JobRequest:
    """Servers for one job."""

    name: str
    user: str
    nodes: int
    servers: tuple[str, ...] = ()
    """Exactly these, where the user named them all."""
    limit_s: float | None = None


@dataclass(frozen=True)
class NotNow:
    """The controller is not asked yet."""

    why: str
    hold: bool = True
    """Whether Slurm must not start it meanwhile. Slurm does not look at dependencies of a held job."""


@dataclass(frozen=True)
class NotOurs:
    """The controller is not asked: Slurm places the job by itself."""

    why: str


def of_form(
    form: Mapping[str, str], gpus_per_server: int, partitions: Collection[str]
) -> JobRequest | NotNow | NotOurs:
    """What `job_submit.lua` sends at submission. Fields that are not set are not sent.

    >>> of_form({"name": "train", "user": "ada", "nodes": "4"}, 8, ())
    JobRequest(name='train', user='ada', nodes=4, servers=(), limit_s=None)
    >>> of_form({"name": "train", "user": "ada", "gpus": "gres:gpu:24"}, 8, ()).nodes
    3
    """
    if partitions and form.get("partition", "") not in partitions:
        return NotOurs(f"partition {printable(form.get('partition', ''), 64)!r} is not one of ropewalk's")
    if "het" in form:
        return NotOurs("it is part of a heterogeneous job")
    for field, words in RESTRICTIONS.items():
        if form.get(field):
            return NotOurs(f"it {words}")
    if form.get("priority") == "0":
        return NotNow("it is held by its user", hold=False)
    if form.get("dependency"):
        return NotNow("it waits for other jobs", hold=False)
    if form.get("array"):
        return NotNow("its array tasks are placed one by one")
    if form.get("begin"):
        return NotNow("it has a later begin time")
    nodes = _nodes(form, gpus_per_server)
    if nodes is None:
        return NotOurs("it gives a number of tasks but no number of nodes (-N)")
    try:
        required = tuple(expand(form["required"])) if form.get("required") else ()
    except FabricError:
        return NotOurs("its list of nodes cannot be read")
    if required and len(set(required)) != nodes:
        return NotOurs("it names some but not all of its nodes")
    minutes = _count(form.get("limit"))
    return JobRequest(
        printable(form.get("name", "") or "job", LONGEST_NAME),
        printable(form.get("user", ""), LONGEST_NAME),
        nodes,
        required,
        60.0 * minutes if minutes else None,
    )


def of_job(job: SlurmJob, partitions: Collection[str], now: float) -> JobRequest | NotNow | NotOurs:
    """What a job that already waits in Slurm asks for."""
    if partitions and job.partition not in partitions:
        return NotOurs(f"partition {printable(job.partition, 64)!r} is not one of ropewalk's")
    if job.restricted:
        return NotOurs(f"it {job.restricted}")
    if job.waits_for:
        return NotNow("it waits for other jobs", hold=False)
    if job.held and not job.mark.hold:
        return NotNow("it is held by its user", hold=False)
    if job.eligible_at > now:
        return NotNow("it has a later begin time")
    if not job.most_nodes and job.tasks > 1:
        return NotOurs("it gives a number of tasks but no number of nodes (-N)")
    nodes = max(1, job.asked_nodes)
    # What an earlier grant wrote there is not the user's wish.
    required = () if set(job.required) == set(job.mark.nodes) else job.required
    if required and len(set(required)) != nodes:
        return NotOurs("it names some but not all of its nodes")
    return JobRequest(job.name or "job", job.user, nodes, required, job.limit_s)


def _nodes(form: Mapping[str, str], gpus_per_server: int) -> int | None:
    nodes, tasks, per_node = (_count(form.get(key)) for key in ("nodes", "tasks", "tasks_per_node"))
    if nodes:
        return nodes
    gpus = _GPUS.search(form.get("gpus", ""))
    if gpus:
        return max(1, -(-int(gpus[1]) // gpus_per_server))
    if tasks and per_node:
        return -(-tasks // per_node)
    return 1 if not tasks or tasks == 1 else None


def _count(text: str | None) -> int:
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text) else 0
