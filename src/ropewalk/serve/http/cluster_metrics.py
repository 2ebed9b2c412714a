"""The cluster as gauges: read from the controller when somebody asks for the metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from ropewalk.serve import answers
from ropewalk.serve.http.metrics import Family, Sample
from ropewalk.serve.http.service import Service
from ropewalk.serve.speed import recent_step_s

if TYPE_CHECKING:
    from ropewalk.serve.state import State

READ_S = 10.0
REASONS = ("gpu-shortage", "server-fragmentation", "network-fragmentation", "behind-in-queue", "held")
MOST_SPEEDS = 2000
"""Step times that are told: two of a job."""
MOST_EXPLAINED = 1000
"""Waiting jobs whose reasons are counted; those behind them wait because they are behind."""


def gauges(service: Service) -> Iterable[Family]:
    """What is now."""
    found = service.writer.read(lambda controller: _facts(controller.state)).result(READ_S)
    status, reasons = found["status"], found["reasons"]
    jobs, gpus, links = status["jobs"], status["gpus"], status["links"]
    drained = gpus["total"] - gpus["used"] - gpus["free"]
    yield (
        "ropewalk_jobs",
        "Jobs by state.",
        ("state",),
        [(("running",), jobs["running"]), (("pending",), jobs["pending"]), (("releasing",), jobs["releasing"])],
    )
    yield (
        "ropewalk_gpus",
        "GPUs by state; drained GPUs are idle and not allocated.",
        ("state",),
        [(("used",), gpus["used"]), (("free",), gpus["free"]), (("drained",), drained)],
    )
    yield (
        "ropewalk_links",
        "Leaf-spine cables by availability.",
        ("state",),
        [(("reserved",), links["total"] - links["free"]), (("free",), links["free"])],
    )
    yield (
        "ropewalk_waiting_jobs",
        "Waiting jobs by reason.",
        ("reason",),
        [((reason,), reasons.get(reason, 0)) for reason in REASONS],
    )
    yield (
        "ropewalk_parts_out_of_service",
        "Servers, leafs, spines and links that take no jobs.",
        ("kind",),
        [(("drained",), len(status["drained"])), (("failed",), len(status["failed"]))],
    )
    yield (
        "ropewalk_job_step_seconds",
        "Seconds per step of running jobs that report their speed, and of those that say so what their plan promised.",
        ("job", "name", "what"),
        found["speeds"],
    )
    yield ("ropewalk_writer_waiting", "Requests queued for the writer.", (), [((), service.writer.waiting)])
    yield ("ropewalk_http_connections", "Open connections.", (), [((), service.doors.open)])
    if service.rules is not None:
        yield (
            "ropewalk_rules",
            "State of the reconciler.",
            ("what",),
            [((name,), value) for name, value in service.rules.metrics().items()],
        )
    for name, facts in sorted(service.beside.items()):
        yield (
            f"ropewalk_{name}",
            f"Counters of {name.capitalize()}.",
            ("what",),
            [((what,), value) for what, value in facts().items()],
        )


def counted(service: Service) -> Iterable[Family]:
    """What happened to connections that never reached a route."""
    yield (
        "ropewalk_http_refused",
        "Refused connections and requests, by reason.",
        ("code",),
        [((code,), number) for code, number in sorted(service.doors.refused.items())],
    )


def _facts(state: State) -> dict[str, Any]:
    reasons: Counter[str] = Counter()
    waiting = list(state.queued())
    for one in waiting[:MOST_EXPLAINED]:
        reasons[answers.explain(state, one)["code"]] += 1
    reasons["behind-in-queue"] += max(0, len(waiting) - MOST_EXPLAINED)
    status = answers.status(state)
    reasons["held"] += status["jobs"]["held"]
    return {"status": status, "reasons": reasons, "speeds": list(islice(_speeds(state), MOST_SPEEDS))}


def _speeds(state: State) -> Iterator[Sample]:
    for job in state.jobs.values():
        if job.state == "running" and (job.measured or job.promised_step_s is not None):
            times = (("measured", recent_step_s(job)), ("promised", job.promised_step_s))
            yield from (((job.id, job.name, what), step_s) for what, step_s in times if step_s is not None)
