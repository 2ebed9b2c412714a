"""The interface as OpenAPI 3.1: made from the table of endpoints, the operations and the shapes of answers."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from ropewalk import __version__
from ropewalk.serve.endpoints import ENDPOINTS, Endpoint
from ropewalk.serve.http.described_routes import DESCRIBED_ROUTES
from ropewalk.serve.http.scheduler_routes import SCHEDULER_ROUTES
from ropewalk.serve.http.shapes import ANSWERS, ProblemShape
from ropewalk.serve.operation import KINDS
from ropewalk.serve.problems import STATUS_OF_CODE, problem_document

REFERENCE = "#/components/schemas/{name}"
JSON = "application/json"
ABOUT = (
    "The controller of a live cluster: jobs get GPUs and dedicated links, or wait with a reason. Changes are "
    "acknowledged once they are on disk; send an Idempotency-Key with each, and repeat with the same key if no "
    "response arrives. Errors are {error: {code, message, remedy, details}}."
)
REFUSALS = {
    400: ("malformed", "the body is not a JSON object"),
    401: ("unauthorized", "this token is unknown, wrong or revoked"),
    403: ("forbidden", "this needs the role operate, yours is read"),
    404: ("not-found", "there is no job j99"),
    408: ("request-timeout", "the body took more than 10 s"),
    409: ("idempotency-conflict", "this idempotency key was used for another request"),
    412: ("version-conflict", "job j17 has version 3, not 2"),
    413: ("too-large", "the body has more than 1048576 bytes"),
    415: ("unsupported-media-type", "changes must be sent as JSON"),
    422: ("impossible", "600 GPUs are more than the plant has (512)"),
    429: ("too-many-requests", "too many requests with this token"),
    503: ("not-ready", "the service is shutting down"),
}
OF_READS = (400, 401, 403, 404, 422, 429, 503)
OF_CHANGES = (400, 401, 403, 404, 408, 409, 412, 413, 415, 422, 429, 503)
QUERY: dict[str, tuple[dict[str, Any], str]] = {
    "state": ({"type": "string", "enum": ["pending", "running", "ended", "live"]}, "Only jobs in this state."),
    "user": ({"type": "string"}, "Only jobs of this user."),
    "name": ({"type": "string"}, "Only jobs of this name."),
    "limit": ({"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}, "Entries per page."),
    "after": ({"type": "string"}, "Start after this job or event."),
    "latest": ({"type": "boolean", "default": False}, "The latest events, as many as `limit` says."),
    "full": ({"type": "boolean", "default": False}, "With servers and reasons."),
}


@cache
def description() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    for path, method, operation in (*_own(), *_of_schedulers()):
        paths.setdefault(path, {})[method] = operation
    schemas = msgspec.json.schema_components(
        [*KINDS.values(), *ANSWERS.values(), ProblemShape], ref_template=REFERENCE
    )[1]
    for endpoint in ENDPOINTS:
        if endpoint.operation is not None and "{job}" in endpoint.path:
            schemas[_body_name(endpoint)] = _without_job(schemas[KINDS[endpoint.operation].__name__])
    return {
        "openapi": "3.1.0",
        "info": {"title": "ropewalk serve", "version": __version__, "description": ABOUT},
        "security": [{"token": []}],
        "tags": [{"name": name} for name in ("jobs", "cluster", "plant", "events", "service")],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`rw_<id>_<secret>`; roles read < submit < operate.",
                }
            },
            "schemas": schemas,
            "responses": {str(status): _refusal(status) for status in REFUSALS},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    changes = endpoint.operation is not None
    found: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": f"Needs the role {endpoint.role}.",
        "tags": [endpoint.tag],
        "x-role": endpoint.role,
        "parameters": _parameters(endpoint, changes),
        "responses": {str(status): _answer(endpoint, status) for status in endpoint.statuses},
    }
    for status in OF_CHANGES if endpoint.method != "GET" else OF_READS:
        found["responses"][str(status)] = {"$ref": f"#/components/responses/{status}"}
    if endpoint.body is not None:
        found["requestBody"] = {
            "required": bool(endpoint.body),
            "content": {JSON: {"schema": _body_schema(endpoint), "example": endpoint.body}},
        }
    return found


def _parameters(endpoint: Endpoint, changes: bool) -> list[dict[str, Any]]:
    found = [_parameter(name, "query", *QUERY[name]) for name in endpoint.query]
    if "{job}" in endpoint.path:
        found.append(_parameter("job", "path", {"type": "string", "pattern": "^j[0-9]+$"}, "The id of a job."))
    if changes:
        key = {"type": "string", "minLength": 1, "maxLength": 200}
        found.append(
            _parameter("Idempotency-Key", "header", key, "A repeated request with the same key is applied only once.")
        )
        if "{job}" in endpoint.path:
            found.append(
                _parameter("If-Match", "header", {"type": "string"}, "Only where the job has this version (its ETag).")
            )
    return found


def _parameter(name: str, where: str, schema: dict[str, Any], about: str) -> dict[str, Any]:
    return {"name": name, "in": where, "required": where == "path", "schema": schema, "description": about}


def _body_schema(endpoint: Endpoint) -> dict[str, Any]:
    if endpoint.operation is None:
        return {"$ref": REFERENCE.format(name="Submit")}
    return {"$ref": REFERENCE.format(name=_body_name(endpoint))}


def _body_name(endpoint: Endpoint) -> str:
    assert endpoint.operation is not None
    name = KINDS[endpoint.operation].__name__
    return f"{name}Body" if "{job}" in endpoint.path else name


def _without_job(schema: dict[str, Any]) -> dict[str, Any]:
    """The body of an operation whose job stands in the path."""
    inside = {name: value for name, value in schema["properties"].items() if name != "job"}
    needed = [name for name in schema.get("required", ()) if name != "job"]
    return schema | {"properties": inside, "required": needed, "title": schema["title"] + "Body"}


def _answer(endpoint: Endpoint, status: int) -> dict[str, Any]:
    about = {201: "It runs.", 202: "It waits, with the reason."}.get(status, "Done.")
    shape = ANSWERS.get(endpoint.name)
    schema = {"type": "object"} if shape is None else {"$ref": REFERENCE.format(name=shape.__name__)}
    found: dict[str, Any] = {
        "description": about,
        "content": {JSON: {"schema": schema, "example": dict(endpoint.shows)}},
    }
    if "{job}" in endpoint.path or endpoint.operation == "submit":
        found["headers"] = {"ETag": {"schema": {"type": "string"}, "description": "The version of the job."}}
    return found


def _refusal(status: int) -> dict[str, Any]:
    code, message = REFUSALS[status]
    codes = [name for name, one in STATUS_OF_CODE.items() if one == status]
    found: dict[str, Any] = {
        "description": f"Refused ({', '.join(codes)}); nothing has changed.",
        "content": {
            JSON: {
                "schema": {"$ref": REFERENCE.format(name=ProblemShape.__name__)},
                "example": problem_document(code, message, "what to do about it"),
            }
        },
    }
    if status == 429:
        found["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
    return found


def _own() -> list[tuple[str, str, dict[str, Any]]]:
    """Routes that are not in the table of endpoints."""
    found = []
    for one in DESCRIBED_ROUTES:
        parameters = [
            _parameter(name, where, *(QUERY[name] if described is None else described))
            for name, where, described in one.parameters
        ]
        operation = _plain(one.name, one.summary, one.tag, one.role, one.media, one.example, parameters)
        found.append((one.path, one.method, operation))
    return found


def _of_schedulers() -> list[tuple[str, str, dict[str, Any]]]:
    found = []
    for one in SCHEDULER_ROUTES:
        tag = one.path.split("/")[2]
        operation = _plain(one.name, one.summary, tag, one.role, one.media, one.example, [])
        if one.body is not None:
            media, example = one.body
            schema = {"type": "object" if media == JSON else "string"}
            operation["requestBody"] = {"required": True, "content": {media: {"schema": schema, "example": example}}}
        found.append((one.path, one.method, operation))
    return found


def _plain(
    name: str, summary: str, tag: str, role: str | None, media: str, example: Any, parameters: list[dict[str, Any]]
) -> dict[str, Any]:
    kind = "string" if media != JSON else "array" if isinstance(example, list) else "object"
    schema: dict[str, Any] = {"type": kind}
    shape = ANSWERS.get(name)
    if shape is not None:
        schema = {"$ref": REFERENCE.format(name=shape.__name__)}
    found: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "tags": [tag],
        "parameters": parameters,
        "responses": {"200": {"description": "Done.", "content": {media: {"schema": schema, "example": example}}}},
    }
    statuses = OF_READS if role is not None else (429, 503)
    found["responses"] |= {str(status): {"$ref": f"#/components/responses/{status}"} for status in statuses}
    if role is None:
        return found | {"security": []}
    return found | {"description": f"Needs the role {role}.", "x-role": role}
