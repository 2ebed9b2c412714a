"""What the service answers besides its endpoints, described: its routes are made in `own_routes`."""

from __future__ import annotations

from typing import Any, NamedTuple

JSON = "application/json"

Parameter = tuple[str, str, tuple[dict[str, Any], str] | None]
"""Name, place, and schema with a sentence; None where endpoints have the same parameter."""


class OwnRoute(NamedTuple):
    """One of them, with an example of its answer."""

    path: str
    name: str
    summary: str
    tag: str
    role: str | None
    example: Any
    parameters: tuple[Parameter, ...] = ()
    media: str = JSON
    method: str = "get"


AFTER: Parameter = ("after", "query", ({"type": "integer"}, "The last event seen."))
LIMIT: Parameter = ("limit", "query", None)
LATEST: Parameter = ("latest", "query", None)
LAST: Parameter = ("Last-Event-ID", "header", ({"type": "integer"}, "Sent by browsers when they reconnect."))
JOB: Parameter = ("job", "path", ({"type": "string"}, "The id of a job."))
EVENT = 'id: 42\nevent: job-started\ndata: {"seq": 42, "kind": "job-started", "job": "j17"}\n\n'
PAGE = {"events": [{"seq": 42, "at": 0.0, "kind": "job-started", "job": "j17"}], "next": None}
RULES: dict[str, Any] = {"id": "j17", "driver": None, "rules": []}
REPAIRED = {"added": 0, "removed": 0, "repaired": 0, "failed": 0}
METRICS = 'ropewalk_gpus{state="free"} 448\n'

DESCRIBED_ROUTES = (
    OwnRoute(
        "/v1/events", "get-events", "Events as they happen (server-sent events).", "events", "read", EVENT,
        (AFTER, LAST), "text/event-stream",
    ),
    OwnRoute("/v1/history", "get-history", "Past events, in pages.", "events", "read", PAGE, (AFTER, LIMIT, LATEST)),
    OwnRoute("/v1/jobs/{job}/rules", "get-jobs-job-rules", "Rules of a job on devices.", "jobs", "read", RULES, (JOB,)),
    OwnRoute(
        "/v1/reconcile", "post-reconcile", "Compare rules wanted and present now, and repair.", "plant", "operate",
        REPAIRED, method="post",
    ),
    OwnRoute("/healthz", "get-healthz", "Liveness.", "service", None, {"status": "alive"}),
    OwnRoute("/readyz", "get-readyz", "Readiness.", "service", None, {"status": "ready"}),
    OwnRoute("/metrics", "get-metrics", "Metrics for Prometheus.", "service", "read", METRICS, media="text/plain"),
    OwnRoute("/openapi.json", "get-openapi", "This document.", "service", None, {"openapi": "3.1.0"}),
)  # fmt: skip
