"""Where the pods of a job may go: one job of the controller stands for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ropewalk.export.cluster.ranks import node_names
from ropewalk.serve.answers import explain
from ropewalk.serve.job import ServedJob
from ropewalk.serve.kubernetes.pods import Pod
from ropewalk.serve.operation import Submit
from ropewalk.serve.state import State

GANG = "kubernetes"
"""The label of a job that says which job of the cluster it is."""
PER_POD = "kubernetes-gpus-per-pod"
ACTOR = "kubernetes"
"""Who submits and ends jobs for pods: a job of anybody else does not count, whatever its labels say."""


@dataclass(frozen=True)
class PodGang:
    """A job of the controller that pods belong to."""

    id: str
    servers: tuple[str, ...]
    """In rank order; empty while it waits."""
    waits: str = ""
    """Why, while it waits."""


def find_gang(state: State, pod: Pod) -> PodGang | None:
    """The live job of a pod."""
    for job in state.jobs.values():
        if job.state != "ended" and job.owner == ACTOR and job.labels.get(GANG) == pod.gang:
            waits = "" if job.state == "running" else str(explain(state, job)["message"])
            return PodGang(job.id, _servers(state, job), waits)
    return None


def gang_of_answer(answer: Mapping[str, Any]) -> PodGang:
    """The job that a submission has made."""
    held = answer.get("allocation")
    if answer["state"] == "running" and held:
        return PodGang(answer["id"], tuple(server["name"] for server in held["servers"]))
    return PodGang(answer["id"], (), str((answer.get("reason") or {}).get("message", "it waits in the queue")))


def submission(pod: Pod) -> Submit:
    """All GPUs of all pods of the job at once: a part of them would wait for the others for ever."""
    labels = {GANG: pod.gang, PER_POD: str(pod.gpus)}
    return Submit(name=pod.job, gpus=pod.pods * pod.gpus, user=pod.namespace, labels=labels)


def own_server(pod: Pod, servers: Sequence[str], gpus_per_server: int) -> str | None:
    """The server of a pod with an index: ranks fill the servers in order.

    >>> pod = Pod("default", "train-3", "u", gpus=4, job="train", pods=4, index=3)
    >>> own_server(pod, ["server7", "server2"], gpus_per_server=8)
    'server2'
    """
    if pod.index is None or not pod.gpus:
        return None
    place = pod.index * pod.gpus // gpus_per_server
    return servers[place] if place < len(servers) else None


def _servers(state: State, job: ServedJob) -> tuple[str, ...]:
    if job.state != "running" or job.allocation is None:
        return ()
    return tuple(node_names(state.occupancy.plant, job.allocation))
