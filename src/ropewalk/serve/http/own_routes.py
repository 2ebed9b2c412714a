"""Routes that belong to the service itself: events and history, rules, health, metrics, the description of it all."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from litestar import Request, Response, get, post
from litestar.response import Stream

from ropewalk.documents.numbers import is_count
from ropewalk.serve.asked import ReceivedRequest
from ropewalk.serve.http.ask import AnyRequest, answered, principal_of, read, service_of
from ropewalk.serve.http.openapi import description
from ropewalk.serve.http.routes import ROLE, asked_of
from ropewalk.serve.problems import Problem

READS, OPERATES = {ROLE: "read"}, {ROLE: "operate"}
READY_S = 5.0


@get("/v1/events", opt=READS, name="get-events")
async def events(request: Request[Any, Any, Any]) -> Stream:
    """Events as they happen (server-sent events)."""
    service = service_of(request)
    asked = asked_of(request)
    asked.check_query(("after",))
    client = principal_of(request).actor
    service.broadcast.admit(client)
    return Stream(
        service.broadcast.stream(client, _after(request, asked)),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@get("/v1/history", opt=READS, name="get-history")
async def history(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Past events, in pages, or the latest of them."""
    service = service_of(request)
    asked = asked_of(request)
    asked.check_query(("after", "limit", "latest"))
    after, limit = asked.number("after") or 0, asked.limit(most=service.settings.list_limit)
    if asked.flag("latest"):
        after = max(after, service.broadcast.last_seq - limit)
    found = await asyncio.to_thread(service.store.events, after, limit)
    rows = [event.as_document() for event in found]
    more = len(rows) == limit and not asked.flag("latest")
    return answered({"events": rows, "next": rows[-1]["seq"] if more else None})


@get("/v1/jobs/{job:str}/rules", opt=READS, name="get-jobs-job-rules")
async def rules_of_job(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Rules of a job, wanted and present."""
    service, job = service_of(request), str(request.path_params["job"])
    found = await read(request, lambda state: state.job(job))
    if service.rules is None:
        return answered({"id": found.id, "driver": None, "rules": []})
    return answered(await asyncio.to_thread(service.rules.rules_of_job, found.id))


@post("/v1/reconcile", opt=OPERATES, name="post-reconcile", status_code=200)
async def reconcile(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Compare rules that are wanted with those that are present, now, and repair."""
    service = service_of(request)
    if service.rules is None:
        return answered({"driver": None, "added": 0, "removed": 0, "repaired": 0, "failed": 0})
    return answered(await asyncio.to_thread(service.rules.reconcile))


@get("/healthz", name="get-healthz")
async def healthz(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Liveness."""
    return answered({"status": "alive"})


@get("/readyz", name="get-readyz")
async def readyz(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Can it answer: does the writer, and is it not about to end?"""
    service = service_of(request)
    if service.closing:
        raise Problem("not-ready", "the service is shutting down", "retry after it has restarted")
    try:
        async with asyncio.timeout(READY_S):
            await read(request, lambda state: None)
    except TimeoutError:
        raise Problem("not-ready", f"the writer has not answered for {READY_S:g} s", "check the disk") from None
    return answered({"status": "ready"})


@get("/metrics", opt=READS, name="get-metrics")
async def metrics(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Metrics for Prometheus."""
    text = await asyncio.to_thread(service_of(request).metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@get("/openapi.json", name="get-openapi")
async def openapi(request: Request[Any, Any, Any]) -> Response[bytes]:
    """This interface, described for programs."""
    return Response(msgspec.json.encode(description()), media_type="application/json")


def _after(request: AnyRequest, asked: ReceivedRequest) -> int | None:
    """The last event that a client has seen: from the header that browsers send, or from the query."""
    header = request.headers.get("last-event-id")
    if header is None:
        return asked.number("after")
    if not is_count(header):
        raise Problem("malformed", "Last-Event-ID is not an event number", "send the id of the last event you saw")
    return int(header)


OWN_ROUTES = [events, history, rules_of_job, reconcile, healthz, readyz, metrics, openapi]
