"""How a route asks the controller: changes go to the writer and are answered after the commit, reads see what is
committed."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from litestar import Request, Response

from ropewalk.documents import parse_json
from ropewalk.errors import ClusterError, InputError
from ropewalk.serve.encoding import encode
from ropewalk.serve.http.gate import BODY
from ropewalk.serve.http.roles import ANYBODY, Principal
from ropewalk.serve.http.service import Service
from ropewalk.serve.operation import KINDS, Operation
from ropewalk.serve.outcome import Refused
from ropewalk.serve.problems import Problem
from ropewalk.serve.writer import Answer

if TYPE_CHECKING:
    from ropewalk.serve.state import State

Found = TypeVar("Found")
AnyRequest = Request[Any, Any, Any]
KEY = re.compile(r"[\x21-\x7e]{1,200}")
"""What an idempotency key may be."""
NAMES = {kind: name for name, kind in KINDS.items()}
TAG = re.compile(r'(?:W/)?"(\d{1,18})(?:\.\d{1,18})?"|(\d{1,18})')


def service_of(request: AnyRequest) -> Service:
    found: Service = request.app.state.service
    return found


def principal_of(request: AnyRequest) -> Principal:
    found: Principal | None = request.scope.get("user")
    return found or ANYBODY


async def change(request: AnyRequest, operation: Operation) -> Answer:
    """Have the writer carry out an operation; the answer comes after its commit."""
    service, principal = service_of(request), principal_of(request)
    kind = NAMES[type(operation)]
    key = idempotency_key(request)
    began = time.perf_counter()
    try:
        asked = service.writer.submit(
            operation,
            idempotency_key=None if key is None else f"{principal.actor}:{key}",
            if_match=if_match(request),
            actor=principal.actor,
            own_only=not principal.may("operate"),
        )
        answer = await handed_over(asked)
    except Refused as refusal:
        _told(service, kind, refusal.code, began, principal, {"job": getattr(operation, "job", None)})
        raise
    _told(service, kind, "replayed" if answer.replayed else "done", began, principal, answer.document)
    return answer


async def read(request: AnyRequest, function: Callable[[State], Found]) -> Found:
    """Read the committed state."""
    found = service_of(request).writer.read(lambda controller: function(controller.state))
    return await handed_over(found)


async def handed_over(asked: Future[Found]) -> Found:
    """What the writer's thread answers, on this loop. A client that goes away takes nothing back that was begun."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[Found] = loop.create_future()
    asked.add_done_callback(lambda done: loop.call_soon_threadsafe(_hand_over, waiting, done))
    return await waiting


def _hand_over(waiting: asyncio.Future[Found], done: Future[Found]) -> None:
    if waiting.done():
        return
    problem = done.exception()
    if problem is None:
        waiting.set_result(done.result())
    else:
        waiting.set_exception(problem)


async def ahead(request: AnyRequest, function: Callable[[State], Found]) -> Found:
    """Look ahead on a fork of the committed state, beside the writer and a few at a time."""
    service = service_of(request)
    async with service.looking:
        fork = await read(request, lambda state: state.fork())
        return await asyncio.to_thread(function, fork)


def body_of(request: AnyRequest) -> Mapping[str, Any]:
    """The JSON object of a request, read strictly: no key twice, no deep nests, UTF-8."""
    raw: bytes = request.scope["state"].get(BODY, b"")
    if not raw:
        return {}
    if b"\x00" in raw:
        raise Problem("malformed", "the body has NUL bytes", "send JSON as text")
    try:
        found = parse_json(raw.decode(), "the body", ClusterError)
    except UnicodeDecodeError as problem:
        raise Problem("malformed", f"the body is not UTF-8 (byte {problem.start})", "send UTF-8") from None
    except InputError as problem:
        raise Problem("malformed", str(problem)) from None
    if not isinstance(found, dict):
        raise Problem("malformed", "the body is not a JSON object", 'send an object, such as {"gpus": 8}')
    return found


def answered(document: Mapping[str, Any], status: int = 200, body: bytes | None = None) -> Response[bytes]:
    """A document as an answer; `body` is the document where it is bytes already.

    The ETag of a job is its version, behind a dot how often it has reported its speed, which is no new version.
    """
    headers = {}
    version = document.get("version")
    if version is not None and "id" in document:
        reports = (document.get("speed") or {}).get("reports")
        headers["ETag"] = f'"{version}.{reports}"' if reports else f'"{version}"'
    content = encode(document) if body is None else body
    return Response(content, media_type="application/json", status_code=status, headers=headers)


def idempotency_key(request: AnyRequest) -> str | None:
    given = request.headers.get("idempotency-key")
    if given is not None and not KEY.fullmatch(given):
        raise Problem("malformed", "the Idempotency-Key is invalid", "send 1 to 200 visible ASCII characters")
    return given


def if_match(request: AnyRequest) -> int | None:
    """The version that the client saw last, from If-Match."""
    given = request.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    found = TAG.fullmatch(given.strip())
    if found is None:
        raise Problem("malformed", "If-Match is not a version", 'send the ETag of the job, such as "3"')
    return int(found[1] or found[2])


def _told(
    service: Service, kind: str, result: str, began: float, principal: Principal, answer: Mapping[str, Any]
) -> None:
    seconds = time.perf_counter() - began
    service.metrics.operated(kind, result, seconds)
    facts: dict[str, Any] = {"kind": kind, "result": result, "by": principal.actor, "ms": round(seconds * 1e3, 3)}
    for name in ("job", "id", "name", "state"):
        if answer.get(name) is not None:
            facts["job" if name == "id" else name] = answer[name]
    service.log.say("operation", **facts)
