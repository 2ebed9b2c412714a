"""What answers look like, for the description of the interface; tests hold every real answer to it."""

from __future__ import annotations

from typing import Any

import msgspec


class Shape(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An answer without surprises: no entry but these."""


class Seats(Shape):
    name: str
    gpus: list[int]
    """Places in the server, in rank order."""


class AllocationShape(Shape):
    stage: str
    guarantee: str
    leafs: list[str]
    spines: list[str]
    links: int
    servers: list[Seats] | msgspec.UnsetType = msgspec.UNSET


class ReasonShape(Shape):
    code: str
    message: str
    details: dict[str, Any]
    remedy: str | msgspec.UnsetType = msgspec.UNSET
    earliest_start_s: float | msgspec.UnsetType | None = msgspec.UNSET


class MeasuredShape(Shape):
    at: float
    step: int
    steps: int
    seconds: float
    step_s: float
    generation: int
    """Counts the job's allocations: an earlier one may have had another speed."""


class SpeedShape(Shape):
    promised_step_s: float | None
    recent_step_s: float | None
    """Mean over the latest reports from where the job runs now."""
    slowdown: float | None
    """Recent over promised; above 1 it is slower than promised."""
    slow: bool
    """Clearly and for several reports; the events `job-slow` and `job-as-promised` tell of a change."""
    step: int | None
    reported_at: float | None
    reports: int
    history: list[MeasuredShape] | msgspec.UnsetType = msgspec.UNSET
    """The latest reports; only where one job is asked for."""


class JobShape(msgspec.Struct, kw_only=True):
    """A job; further entries may be added."""

    id: str
    name: str
    user: str
    owner: str
    """Who has submitted it: the name of a token and its id."""
    gpus: int
    state: str
    outcome: str | None
    version: int
    seq: int
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    expected_s: float | None
    priority: float
    requeue: bool
    held: bool
    external: str | None
    labels: dict[str, str]
    note: str
    generation: int
    allocation: AllocationShape | None
    speed: SpeedShape | None
    reason: ReasonShape | msgspec.UnsetType = msgspec.UNSET


class ReportedShape(Shape):
    id: str
    name: str
    state: str
    version: int
    speed: SpeedShape


class JobsShape(Shape):
    jobs: list[JobShape]
    next: str | None
    """Give it as `after` for the next page; null on the last."""


class EventShape(msgspec.Struct, kw_only=True):
    """An event; what else it says depends on its kind."""

    seq: int
    at: float
    kind: str
    job: str | None


class HistoryShape(Shape):
    events: list[EventShape]
    next: int | None


class FilesShape(Shape):
    id: str
    name: str
    generation: int
    files: dict[str, str]


class ErrorShape(Shape):
    code: str
    message: str
    remedy: str
    details: dict[str, Any]


class ProblemShape(Shape):
    error: ErrorShape


class HealthShape(Shape):
    status: str


ANSWERS: dict[str, Any] = {
    "post-jobs": JobShape,
    "get-jobs": JobsShape,
    "get-jobs-job": JobShape,
    "post-jobs-job-end": JobShape,
    "post-jobs-job-cancel": JobShape,
    "post-jobs-job-resize": JobShape,
    "post-jobs-job-hold": JobShape,
    "post-jobs-job-release": JobShape,
    "post-jobs-job-bind": JobShape,
    "post-jobs-job-progress": ReportedShape,
    "get-jobs-job-files": FilesShape,
    "get-history": HistoryShape,
    "get-healthz": HealthShape,
    "get-readyz": HealthShape,
}
"""By the name of an endpoint; the others answer with an object whose example says what is in it."""
