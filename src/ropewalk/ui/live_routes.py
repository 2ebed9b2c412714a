"""Pages of a live cluster, where a controller runs: the cluster as it is, and each of its jobs."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from litestar import Request, Response, get

from ropewalk.serve.http.ask import answered, read, service_of
from ropewalk.ui.day import day
from ropewalk.ui.live import live
from ropewalk.ui.routes import READS, page

MOST_EVENTS = 200
"""Of one job."""


@get("/ui/cluster", name="get-ui-cluster")
async def cluster_page(request: Request[Any, Any, Any]) -> Response[str]:
    return page(request, "cluster.html")


@get("/ui/jobs/{job:str}", name="get-ui-job")
async def job_page(request: Request[Any, Any, Any]) -> Response[str]:
    return page(request, "job.html", job=str(request.path_params["job"])[:64])


@get("/v1/ui/live", opt=READS, name="get-live")
async def live_document(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The cluster as its page draws it, and the number of the latest event."""
    latest = service_of(request).writer.news.last_seq
    return answered({**await read(request, live), "latest_event": latest})


@get("/v1/ui/day", opt=READS, name="get-day")
async def day_document(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Jobs of the last day, and GPUs in use."""
    return answered(await read(request, lambda state: day(state, time.time())))


@get("/v1/ui/jobs/{job:str}/events", opt=READS, name="get-job-events")
async def job_events(request: Request[Any, Any, Any]) -> Response[bytes]:
    """What happened to one job, the latest of it, and the number of the latest event of all."""
    service, name = service_of(request), str(request.path_params["job"])
    latest = service.writer.news.last_seq
    job = await read(request, lambda state: state.job(name))
    found = await asyncio.to_thread(service.store.events_of_job, job.id, job.submitted_at, MOST_EVENTS)
    return answered({"events": [event.as_document() for event in found], "latest": latest})


LIVE_ROUTES = [cluster_page, job_page, live_document, day_document, job_events]
"""Routes that need a controller."""
