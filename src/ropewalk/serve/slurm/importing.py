"""Jobs that Slurm runs already, for a controller that is new to the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ropewalk.errors import ClusterError
from ropewalk.serve.operation import Adopt
from ropewalk.serve.slurm.act import new_token
from ropewalk.serve.slurm.queue import SlurmJob
from ropewalk.serve.slurm.view import TOKEN

MOST_JOBS = 10_000
FIELDS = frozenset({"id", "name", "user", "nodes", "limit_s"})


def import_document(jobs: Iterable[SlurmJob]) -> dict[str, Any]:
    """Running jobs, as the service takes them."""
    return {
        "jobs": [
            {
                "id": job.id,
                "name": job.name or "job",
                "user": job.user,
                "nodes": list(job.nodes),
                "limit_s": job.limit_s,
            }
            for job in jobs
            if job.phase == "active" and not job.completing and job.nodes
        ]
    }


def read_import(document: Mapping[str, Any]) -> list[Adopt]:
    """The adoptions that a document asks for."""
    jobs = document.get("jobs")
    if not isinstance(jobs, list) or len(jobs) > MOST_JOBS:
        raise ClusterError(f"jobs is not a list of at most {MOST_JOBS}: use `ropewalk serve import-slurm`")
    return [_adoption(job) for job in jobs]


def _adoption(job: Any) -> Adopt:
    if not isinstance(job, Mapping) or job.keys() != FIELDS:
        raise ClusterError(f"a job does not have exactly the fields {', '.join(sorted(FIELDS))}: send all of them")
    number, nodes, limit = job["id"], job["nodes"], job["limit_s"]
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ClusterError(f"id is {number!r}: give the number of the job in Slurm")
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        raise ClusterError(f"nodes of job {number} are not names: list the nodes it runs on")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)):
        raise ClusterError(f"limit_s of job {number} is {limit!r}: give seconds or null")
    return Adopt(
        name=str(job["name"]),
        servers=tuple(nodes),
        user=str(job["user"]),
        expected_s=None if limit is None else float(limit),
        labels={TOKEN: new_token()},
        external=f"slurm:{number}",
    )
