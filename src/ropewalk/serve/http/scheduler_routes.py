"""What schedulers ask, described: their routes are made in `serve.slurm.routes` and `serve.kubernetes.routes`."""

from __future__ import annotations

from typing import Any, NamedTuple

JSON, LINES = "application/json", "text/plain"
FORM = "application/vnd.ropewalk.form"


class SchedulerRoute(NamedTuple):
    """One of them, with an example of its answer and, where it takes one, of its body."""

    path: str
    name: str
    summary: str
    role: str
    media: str
    example: Any
    body: tuple[str, Any] | None = None
    method: str = "post"


NODES = ["server0", "server1", "server2"]
POD = {
    "metadata": {"name": "train-0", "namespace": "ml", "labels": {"ropewalk.io/job": "train", "ropewalk.io/pods": "2"}},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]},
}
ASKED = (JSON, {"Pod": POD, "NodeNames": NODES})
TAKEN = {"id": 12, "name": "train", "user": "ada", "nodes": NODES[:2], "limit_s": None}

SCHEDULER_ROUTES = (
    SchedulerRoute(
        "/v1/slurm",
        "get-slurm",
        "Whether Slurm answers, and the state of its jobs.",
        "read",
        JSON,
        {"reachable": True, "rounds": 7},
        method="get",
    ),
    SchedulerRoute(
        "/v1/slurm/submit",
        "post-slurm-submit",
        "Servers for a job that is being submitted to Slurm.",
        "submit",
        LINES,
        "decision start\ncomment ropewalk token=00c0ffee00c0ffee nodes=server[0-1]\nnodes server[0-1]\ncount 2\n",
        (FORM, "name=train&user=ada&nodes=2"),
    ),
    SchedulerRoute(
        "/v1/slurm/started",
        "post-slurm-started",
        "A job is about to start in Slurm; the answer waits until its rules are in place.",
        "submit",
        LINES,
        "job j17\nguarantee contention-free\nrules in place\n",
        (FORM, "job=12&wait=5"),
    ),
    SchedulerRoute(
        "/v1/slurm/ended",
        "post-slurm-ended",
        "A hint that a job has ended in Slurm.",
        "submit",
        LINES,
        "noted yes\n",
        (FORM, "job=12"),
    ),
    SchedulerRoute(
        "/v1/slurm/alive",
        "post-slurm-alive",
        "Whether the controller manages Slurm's jobs.",
        "submit",
        LINES,
        "alive yes\n",
        (FORM, ""),
    ),
    SchedulerRoute(
        "/v1/slurm/import",
        "post-slurm-import",
        "Adopt jobs that run in Slurm already.",
        "operate",
        JSON,
        {"adopted": [{"external": "slurm:12", "id": "j17", "managed": True}], "known": [], "left": []},
        (JSON, {"jobs": [TAKEN]}),
    ),
    SchedulerRoute(
        "/v1/kubernetes/filter",
        "post-kubernetes-filter",
        "Nodes that a pod may use (ExtenderArgs to ExtenderFilterResult).",
        "submit",
        JSON,
        {
            "Nodes": None,
            "NodeNames": NODES[:2],
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": {"server2": "ropewalk: not one of the servers of job j17"},
            "Error": "",
        },
        ASKED,
    ),
    SchedulerRoute(
        "/v1/kubernetes/prioritize",
        "post-kubernetes-prioritize",
        "The node of a pod's rank first (ExtenderArgs to HostPriorityList).",
        "submit",
        JSON,
        [{"Host": "server0", "Score": 10}],
        ASKED,
    ),
    SchedulerRoute(
        "/v1/kubernetes/bind",
        "post-kubernetes-bind",
        "Bind a pod to a node of its job (ExtenderBindingArgs to ExtenderBindingResult).",
        "submit",
        JSON,
        {"Error": ""},
        (JSON, {"PodName": "train-0", "PodNamespace": "ml", "PodUID": "7d1c0e0a", "Node": "server0"}),
    ),
)
