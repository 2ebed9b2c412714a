"""What comes of an operation: an answer with what has changed, or a refusal that has changed nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.serve.job import ServedJob


class Refused(InputError):
    """An operation that the controller does not carry out; nothing has changed.

    >>> str(Refused("not-found", "there is no job j7", "list jobs with GET /v1/jobs"))
    'there is no job j7: list jobs with GET /v1/jobs'
    """

    def __init__(self, code: str, message: str, remedy: str = "", details: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.code = code
        """One of `CODES`."""
        self.message = message
        self.remedy = remedy
        self.details = dict(details or {})

    def as_document(self) -> dict[str, Any]:
        """The refusal as programs read it."""
        return {"code": self.code, "message": self.message, "remedy": self.remedy, "details": self.details}


CODES = {
    "invalid": "an invalid value",
    "impossible": "a job that can never start on this plant",
    "forbidden": "a job of somebody else or of Slurm, for a role that may change its own only",
    "not-found": "a job or part that does not exist",
    "wrong-state": "the job is in the wrong state for this",
    "conflict": "blocked at present",
    "version-conflict": "the job has changed since the version that the request names",
    "idempotency-conflict": "the key was used for another request",
    "too-many-requests": "it was asked for a moment ago; details say when to ask again",
    "queue-full": "as many jobs of this owner wait as may",
    "internal": "internal error of the service; nothing has changed",
}
"""Every code of a refusal, and when it is given."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, in the order of `seq`; the store numbers it when it is committed."""

    at: float
    kind: str
    job: str | None
    document: dict[str, Any] = field(default_factory=dict)
    seq: int = 0

    def as_document(self) -> dict[str, Any]:
        return {"seq": self.seq, "at": self.at, "kind": self.kind, "job": self.job, **self.document}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an operation has done."""

    answer: dict[str, Any]
    changed: tuple[ServedJob, ...] = ()
    """Every job that is not as it was, each once, in the order of its number."""
    events: tuple[Event, ...] = ()
    parts: bool = False
    """Have drained or failed parts changed?"""
    settings: bool = False
    """Have policy, queue or another setting changed?"""
