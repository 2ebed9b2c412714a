"""Everything that a request can be refused for, as a document: {"error": {code, message, remedy, details}}."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

STATUS_OF_CODE = {
    "malformed": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not-found": 404,
    "method-not-allowed": 405,
    "request-timeout": 408,
    "conflict": 409,
    "idempotency-conflict": 409,
    "wrong-state": 409,
    "version-conflict": 412,
    "too-large": 413,
    "unsupported-media-type": 415,
    "impossible": 422,
    "invalid": 422,
    "too-many-requests": 429,
    "queue-full": 429,
    "head-too-large": 431,
    "internal": 500,
    "not-ready": 503,
    "too-slow": 503,
}
"""Codes that clients may act on, and the status each is sent with; what is not here is a conflict."""

JSON_TYPE = b"application/json"
INTERFACE, VERSION = "Ropewalk-API", "1"
"""A header of every answer, so that clients see that it is no other service that answers them in JSON."""


class Problem(Exception):
    """A request that is refused; sent as a document, never as a traceback.

    >>> Problem("forbidden", "your role is read", "ask for a token with role submit").status
    403
    """

    def __init__(
        self,
        code: str,
        message: str,
        remedy: str = "",
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.remedy = code, message, remedy
        self.details = dict(details or {})
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        return status_of(self.code)

    def document(self) -> dict[str, Any]:
        return problem_document(self.code, self.message, self.remedy, self.details)


def status_of(code: str) -> int:
    """The status that a refusal is sent with."""
    return STATUS_OF_CODE.get(code, 409)


def problem_document(
    code: str, message: str, remedy: str = "", details: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The one shape of all refusals."""
    return {"error": {"code": code, "message": message, "remedy": remedy, "details": dict(details or {})}}


def problem_bytes(problem: Problem) -> bytes:
    return json.dumps(problem.document()).encode()


def too_many(what: str, retry_s: float, remedy: str = "wait for the time in Retry-After, then retry") -> Problem:
    """429 with the seconds after which it is worth trying again."""
    seconds = max(1, int(retry_s + 0.999))
    return Problem("too-many-requests", what, remedy, {"retry_after_s": seconds}, {"Retry-After": str(seconds)})
