"""Everything that can be asked, as one table: its path, who may ask, and the operation or the answer behind it.

The service answers from it over HTTP, a state file answers from it without a service, and the description of the
interface (`/openapi.json`) derives from it. Adding one is a function that answers, or an operation, and a line here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ropewalk.errors import ClusterError
from ropewalk.serve import reads
from ropewalk.serve.asked import ReceivedRequest
from ropewalk.serve.operation import Operation, from_document

if TYPE_CHECKING:
    from ropewalk.serve.state import State

Answer = Callable[["State", ReceivedRequest], dict[str, Any]]


@dataclass(frozen=True)
class Endpoint:
    """One thing that can be asked."""

    method: str
    path: str
    role: str
    summary: str
    operation: str | None = None
    """The operation it asks for, where it changes something."""
    answer: Answer | None = None
    """What it reads from the controller's state, where it does not."""
    ahead: bool = False
    """Does the answer look ahead in time? It takes longer then, and uses up a fork of the state."""
    query: tuple[str, ...] = ()
    statuses: tuple[int, ...] = (200,)
    """Of answers that are no refusals."""
    tag: str = "jobs"
    body: Mapping[str, Any] | None = None
    """An example."""
    shows: Mapping[str, Any] = field(default_factory=dict)
    """An example of the answer."""

    @property
    def name(self) -> str:
        """For programs that are generated from the description.

        >>> ENDPOINTS[0].name
        'post-jobs'
        """
        words = [word.strip("{}") for word in self.path.split("/") if word not in ("", "v1")]
        return "-".join([self.method.lower(), *words])

    def operation_of(self, asked: ReceivedRequest) -> Operation:
        """The operation that a request asks for; its body is checked strictly."""
        fixed: dict[str, Any] = {"operation": self.operation}
        if asked.job is not None:
            fixed["job"] = asked.job
        for name in fixed:
            if name in asked.body:
                raise ClusterError(f"{name} is not an entry of the body: remove it")
        asked.check_query(self.query)
        return from_document({**fixed, **asked.body})


def status_of_answer(endpoint: Endpoint, document: Mapping[str, Any]) -> int:
    """201 where a job was submitted and runs, 202 where it waits, else 200."""
    if endpoint.operation == "submit":
        return 202 if document.get("state") == "pending" else 201
    return 200


def _change(path: str, role: str, operation: str, summary: str, **more: Any) -> Endpoint:
    return Endpoint(more.pop("method", "POST"), f"/v1{path}", role, summary, operation=operation, **more)


def _read(path: str, summary: str, answer: Answer, **more: Any) -> Endpoint:
    return Endpoint(more.pop("method", "GET"), f"/v1{path}", "read", summary, answer=answer, **more)


PARTS: dict[str, Any] = {"tag": "plant", "body": {"parts": ["server:server7", "link:leaf3-spine2"], "note": "fan"}}
JOB_BODY = {"name": "train", "gpus": 64, "user": "ada", "expected_s": 3600}
SPEED = {
    "promised_step_s": 0.4,
    "recent_step_s": 0.42,
    "slowdown": 1.05,
    "slow": False,
    "step": 1240,
    "reported_at": 1.7e9,
    "reports": 31,
}
RUNS = {"id": "j17", "name": "train", "gpus": 64, "state": "running", "version": 1}

ENDPOINTS: tuple[Endpoint, ...] = (
    _change(
        "/jobs",
        "submit",
        "submit",
        "Submit a job: it starts at once, waits, or is refused if it can never start.",
        statuses=(201, 202),
        body=JOB_BODY,
        shows=RUNS,
    ),
    _read(
        "/jobs",
        "Jobs in order of id, in pages of `limit` starting after `after`.",
        reads.jobs,
        query=("state", "user", "name", "limit", "after", "full"),
        shows={"jobs": [RUNS], "next": None},
    ),
    _read(
        "/jobs/{job}",
        "One job: its state, its allocation, why it waits. The ETag is its version.",
        reads.job,
        shows=RUNS,
    ),
    _change(
        "/jobs/{job}/end",
        "submit",
        "end",
        "End a job. An ended job stays as it is.",
        body={"outcome": "done"},
        shows=RUNS | {"state": "ended", "outcome": "done", "version": 2},
    ),
    _change(
        "/jobs/{job}/cancel",
        "submit",
        "cancel",
        "Cancel a waiting or running job.",
        body={},
        shows=RUNS | {"state": "ended", "outcome": "cancelled", "version": 2},
    ),
    _change(
        "/jobs/{job}/resize",
        "submit",
        "resize",
        "Resize a running job.",
        body={"gpus": 128},
        shows=RUNS | {"gpus": 128, "version": 2},
    ),
    _change(
        "/jobs/{job}/hold",
        "submit",
        "hold",
        "Hold a waiting job until it is released.",
        body={"note": "data is not ready"},
        shows=RUNS | {"state": "pending", "version": 2},
    ),
    _change(
        "/jobs/{job}/release",
        "submit",
        "release",
        "Release a held job to its place in the queue.",
        body={},
        shows=RUNS | {"version": 3},
    ),
    _change(
        "/jobs/{job}/bind",
        "submit",
        "bind",
        "Bind the job to its name in another scheduler.",
        body={"external": "pbs:123"},
        shows=RUNS | {"external": "pbs:123", "version": 2},
    ),
    _change(
        "/jobs/{job}/progress",
        "submit",
        "progress",
        "A running job reports its speed: so many steps took so many seconds. At most once a second; the latest "
        "60 reports are kept.",
        body={"step": 1240, "steps": 40, "seconds": 16.8},
        shows={"id": "j17", "name": "train", "state": "running", "version": 1, "speed": SPEED},
    ),
    _read(
        "/jobs/{job}/explain",
        "Why a job waits, as text and as codes.",
        reads.explained,
        ahead=True,
        shows={
            "id": "j18",
            "state": "pending",
            "reason": {"code": "gpu-shortage", "message": "32 GPUs are requested, 16 are free"},
        },
    ),
    _read(
        "/jobs/{job}/files",
        "Files for its launcher: node list, host file, rank files, links.",
        reads.files,
        shows={"id": "j17", "files": {"nodes.txt": "server0\nserver1\n"}},
    ),
    _read(
        "/queue",
        "Waiting jobs in queue order, with reasons.",
        reads.queue,
        query=("limit",),
        tag="cluster",
        shows={"order": "fifo", "waiting": [], "held": []},
    ),
    _read(
        "/status",
        "The cluster in a few numbers.",
        reads.status,
        tag="cluster",
        shows={"gpus": {"total": 512, "used": 64, "free": 448}, "jobs": {"running": 1, "pending": 0}},
    ),
    _read(
        "/plant",
        "Servers, leafs, spines and cables, and what is drained or failed.",
        reads.plant,
        tag="plant",
        shows={"name": "leaf-spine:16x32x32", "gpus": 512, "gpus_per_server": 8},
    ),
    _read(
        "/occupancy",
        "Allocations of GPUs and links.",
        reads.occupancy,
        tag="cluster",
        shows={"servers": [{"name": "server0", "free": 0, "jobs": {"j17": [0, 1]}}], "links": []},
    ),
    _read(
        "/what-if",
        "Dry run: would this job start now, when, and what blocks it?",
        reads.what_if,
        method="POST",
        ahead=True,
        tag="cluster",
        body=JOB_BODY,
        shows={"would_start": False, "earliest_start_s": 1800.0, "in_the_way": ["j17"]},
    ),
    _change(
        "/drain",
        "operate",
        "drain",
        "Drain parts: they take no new jobs; running jobs continue.",
        **PARTS,
        shows={"parts": ["server:server7"], "affected": ["j17"]},
    ),
    _change(
        "/restore",
        "operate",
        "restore",
        "Return drained parts to service.",
        **PARTS,
        shows={"parts": ["server:server7"]},
    ),
    _change(
        "/failures",
        "operate",
        "fail",
        "Mark parts as failed: jobs get other links, are requeued or end.",
        **PARTS,
        shows={"parts": ["link:leaf3-spine2"], "affected": ["j17"], "became": {"j17": "moved"}},
    ),
    _change(
        "/repairs",
        "operate",
        "repair",
        "Mark failed parts as working again.",
        **PARTS,
        shows={"parts": ["link:leaf3-spine2"]},
    ),
    _change(
        "/policy",
        "operate",
        "change-policy",
        "Change the policy, queue or backfill.",
        method="PUT",
        tag="cluster",
        body={"policy": "vclos"},
        shows={"settings": {"policy": "vclos", "queue": "fifo", "backfill": "none"}},
    ),
)
"""All of them. What belongs to the service alone (events, history, rules, health, metrics) has routes of its own."""

_PATTERNS = tuple((one, re.compile("^" + re.sub(r"\{job\}", r"(?P<job>[^/]+)", one.path) + "$")) for one in ENDPOINTS)


def endpoint_at(method: str, path: str) -> tuple[Endpoint, str | None]:
    """The endpoint that a path names, and the job in it.

    >>> endpoint_at("POST", "/v1/jobs/j7/end")[1]
    'j7'
    """
    for endpoint, pattern in _PATTERNS:
        found = pattern.match(path)
        if found and endpoint.method == method:
            return endpoint, found.groupdict().get("job")
    raise ClusterError(f"there is no {method} {path}: see /openapi.json")
