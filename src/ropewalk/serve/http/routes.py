"""The routes of the table of endpoints, and what becomes of their refusals."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from litestar import Request, Response, route
from litestar.connection import ASGIConnection
from litestar.enums import HttpMethod
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.types import ExceptionHandlersMap

from ropewalk.errors import InputError
from ropewalk.serve import reads
from ropewalk.serve.asked import ReceivedRequest
from ropewalk.serve.endpoints import ENDPOINTS, Endpoint, status_of_answer
from ropewalk.serve.http.ask import AnyRequest, ahead, answered, body_of, change, principal_of, read, service_of
from ropewalk.serve.http.roles import Principal
from ropewalk.serve.outcome import Refused
from ropewalk.serve.problems import Problem, problem_bytes
from ropewalk.serve.slurm.claims import refuse_claim

ROLE = "role"
LOGGER = logging.getLogger("litestar")


async def may_ask(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Refuse who has too small a role for a route; routes without a role are open to everybody.

    Asynchronous, though it awaits nothing: a plain function would be sent to a thread for every request.
    """
    needed = handler.opt.get(ROLE)
    principal: Principal | None = connection.scope.get("user")
    if needed is None or (principal is not None and principal.may(needed)):
        return
    role = "none" if principal is None else principal.role
    raise Problem(
        "forbidden",
        f"this needs the role {needed}, yours is {role}",
        f"ask the operator for a token with the role {needed}",
        {"needed": needed, "role": role},
    )


def handler_of(endpoint: Endpoint) -> HTTPRouteHandler:
    """The route of one endpoint."""

    async def answer(request: Request[Any, Any, Any]) -> Response[bytes]:
        asked = asked_of(request, endpoint.method)
        if endpoint.operation is not None:
            operation = endpoint.operation_of(asked)
            if not principal_of(request).may("operate"):
                refuse_claim(operation)
            done = await change(request, operation)
            return answered(done.document, status_of_answer(endpoint, done.document), done.body)
        function = endpoint.answer
        assert function is not None
        look = ahead if endpoint.ahead else read
        try:
            found = await look(request, lambda state: function(state, asked))
        except Refused as refusal:
            if refusal.code != "not-found" or function is not reads.job:
                raise
            found = await long_ended(request, str(asked.job), refusal)
        reply = answered(found)
        tag = reply.headers.get("ETag")
        if tag is not None and request.headers.get("if-none-match") == tag:
            return Response(b"", status_code=304, headers={"ETag": tag})
        return reply

    path = endpoint.path.replace("{job}", "{job:str}")
    return route(path, http_method=HttpMethod(endpoint.method), name=endpoint.name, opt={ROLE: endpoint.role})(answer)


async def long_ended(request: AnyRequest, job: str, refusal: Refused) -> dict[str, Any]:
    """A job that ended so long ago that only the store knows it."""
    kept = await asyncio.to_thread(service_of(request).store.job, job)
    if kept is None:
        raise refusal
    return await read(request, lambda state: reads.job_in_full(state, kept))


def asked_of(request: AnyRequest, method: str = "GET") -> ReceivedRequest:
    """What a request says."""
    query: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in query:
            raise Problem("malformed", f"the parameter {name[:40]!r} is given twice", "give it once")
        query[name] = value
    body = body_of(request) if method in ("POST", "PUT") else {}
    return ReceivedRequest(request.path_params.get("job"), query, body)


def problem_of(error: Exception) -> Problem:
    """What an exception is to a client; of a defect it learns that there is one, and the log the rest."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, Refused):
        wait_s = error.details.get("retry_after_s")
        headers = {} if wait_s is None else {"Retry-After": str(wait_s)}
        return Problem(error.code, error.message, error.remedy, error.details, headers)
    if isinstance(error, InputError):
        return Problem("invalid", str(error))
    if isinstance(error, NotFoundException):
        return Problem("not-found", "there is nothing at this path", "see /openapi.json for all paths")
    if isinstance(error, MethodNotAllowedException):
        return Problem("method-not-allowed", "this path does not support this method", "see /openapi.json")
    if isinstance(error, HTTPException) and error.status_code < 500:
        return Problem("malformed", error.detail)
    LOGGER.error("a request failed", exc_info=error)
    return Problem(
        "internal", "internal error of the service; nothing has changed", "report it with the log of the service"
    )


def refuse(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    problem = problem_of(error)
    return Response(
        problem_bytes(problem), media_type="application/json", status_code=problem.status, headers=problem.headers
    )


HANDLERS: ExceptionHandlersMap = {Exception: refuse, HTTPException: refuse}


def table_routes() -> list[HTTPRouteHandler]:
    return [handler_of(endpoint) for endpoint in ENDPOINTS]


__all__ = ["HANDLERS", "ROLE", "asked_of", "handler_of", "may_ask", "principal_of", "problem_of", "table_routes"]
