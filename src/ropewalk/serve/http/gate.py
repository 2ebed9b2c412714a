"""What every request passes before a route sees it, and what every answer passes on its way out.

In this order: is the path one that can mean something; does a browser send it for another site; who asks, and how
often; is the body JSON, small and here in time. Behind it come headers that keep browsers out, a line in the log and
a sample in the metrics.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any, Protocol

from ropewalk.documents.numbers import is_count
from ropewalk.serve.http.keyring import Keyring
from ropewalk.serve.http.rates import Rates, address_key
from ropewalk.serve.http.roles import ANYBODY, READER, Principal
from ropewalk.serve.http.settings import HttpSettings
from ropewalk.serve.problems import INTERFACE, JSON_TYPE, VERSION, Problem, problem_bytes, too_many

Scope = Any
Message = dict[str, Any]
Receive = Callable[[], Any]
Send = Callable[[Message], Any]

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Asked by machines that have no token, and silent about the cluster."""
OPEN_FOLDER = "/ui"
"""Pages without data and what they are made of; what their scripts ask for needs a token like everything else."""
METRICS = "/metrics"
BODY = "body"
"""Where the routes find the body, in the state of the request."""
CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
BODY_TYPES = frozenset({"application/json", "application/vnd.ropewalk.form"})
"""None that a page of another site could send without asking first: the second is what scripts of Slurm send."""
STRANGE = re.compile(r"[\x00-\x20\x7f-\uffff\\]|//|/\.\.?(/|$)")
"""In a path: what no client of ours sends, and what proxies and servers read differently."""
LONGEST_PATH = 1024
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
SIGN = (INTERFACE.lower().encode(), VERSION.encode())


class RequestWatch(Protocol):
    """Who is told about every request that was answered."""

    def __call__(self, scope: Scope, principal: Principal | None, status: int, seconds: float, sent: int) -> None: ...


class Gate:
    """The outermost part of the application."""

    def __init__(
        self, app: Any, settings: HttpSettings, keyring: Keyring, hosts: frozenset[str], watch: RequestWatch
    ) -> None:
        self._app, self._settings, self._keyring, self._hosts, self._watch = app, settings, keyring, hosts, watch
        self._of_address = Rates(settings.rate_per_address)
        self._of_token = Rates(settings.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        began = time.perf_counter()
        try:
            await self._pass_on(scope, receive, answer)
        except Problem as problem:
            await answer.refuse(problem)
        finally:
            seconds = time.perf_counter() - began
            self._watch(scope, scope.get("user"), answer.status, seconds, answer.sent)

    async def _pass_on(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        path: str = scope["path"]
        if len(path) > LONGEST_PATH or STRANGE.search(path):
            raise Problem("not-found", "there is nothing at this path", "see /openapi.json for all paths")
        headers = _Headers(scope["headers"])
        self._refuse_other_sites(headers)
        scope["user"] = await self._who(scope, path, headers)
        settings, in_body = self._settings, scope["method"] in CHANGES
        limit = asyncio.timeout(settings.body_s if in_body else settings.answer_s)
        try:
            async with limit:
                if in_body:
                    body = await self._body(headers, receive)
                    scope.setdefault("state", {})[BODY] = body
                    receive, in_body = _replay(body, receive), False
                    limit.reschedule(asyncio.get_running_loop().time() + settings.answer_s)
                answer.limit = limit
                await self._app(scope, receive, answer)
        except TimeoutError:
            if answer.status or not limit.expired():
                raise
            raise self._too_slow(in_body=in_body) from None

    def _too_slow(self, *, in_body: bool) -> Problem:
        if in_body:
            return Problem("request-timeout", f"the body took more than {self._settings.body_s:g} s", "send it faster")
        return Problem(
            "too-slow",
            f"no answer within {self._settings.answer_s:g} s; a requested change may still be applied",
            "repeat it with the same Idempotency-Key, which applies it only once",
        )

    def _refuse_other_sites(self, headers: _Headers) -> None:
        """A page of another site that runs in the operator's browser can reach localhost; it says so in its headers."""
        host = headers.one(b"host") or ""
        origin = headers.one(b"origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            raise Problem(
                "forbidden",
                "cross-origin requests are refused",
                "send requests from a program, not from another site's page",
            )
        if self._settings.no_auth and host and _name_of(host) not in self._hosts:
            raise Problem(
                "forbidden",
                "without tokens the service accepts only its own address as Host",
                f"write one of {', '.join(sorted(self._hosts))} in the URL",
            )

    async def _who(self, scope: Scope, path: str, headers: _Headers) -> Principal | None:
        settings, client = self._settings, scope.get("client")
        now = time.monotonic()
        address = address_key(client[0]) if client else ""
        if address and (wait_s := self._of_address.wait_s(address, now)):
            raise too_many("too many requests from this address", wait_s)
        if is_open(path):
            return None
        if path == METRICS and settings.metrics_open:
            return READER
        if settings.no_auth:
            return ANYBODY
        authorization = headers.one(b"authorization")
        if authorization is None and not address and settings.socket_role is not None:
            return Principal("socket", settings.socket_role)
        found = await self._keyring.principal(authorization, address)
        if wait_s := self._of_token.wait_s(found.actor, now):
            raise too_many("too many requests with this token", wait_s)
        return found

    async def _body(self, headers: _Headers, receive: Receive) -> bytes:
        kind = (headers.one(b"content-type") or "").partition(";")[0].strip().lower()
        if kind not in BODY_TYPES:
            raise Problem(
                "unsupported-media-type",
                "changes must be sent as JSON",
                "send the header `Content-Type: application/json`",
            )
        most = self._settings.body_bytes
        length = headers.one(b"content-length") or "0"
        too_large = Problem("too-large", f"the body has more than {most} bytes", "send less in one request")
        if not is_count(length) or int(length) > most:
            raise too_large
        found, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem("malformed", "the client disconnected before its request was complete")
            found += message.get("body", b"")
            if len(found) > most:
                raise too_large
            more = message.get("more_body", False)
        return found


class _Headers:
    """The headers of a request; one that is given twice and must be given once is refused."""

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self._raw = raw

    def one(self, name: bytes) -> str | None:
        found = None
        for key, value in self._raw:
            if key == name:
                if found is not None:
                    raise Problem("malformed", f"the header {name.decode()} is given twice", "give it once")
                found = value
        return None if found is None else found.decode("latin-1")


class _Answer:
    """Sends an answer on with the headers that all of them have, and remembers what was sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.sent = 0
        self.limit: asyncio.Timeout | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.limit is not None and not self.limit.expired():
                self.limit.reschedule(None)  # it has begun: from here on the connection's own limits hold
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            message = message | {"headers": given + [one for one in (*SECURITY_HEADERS, SIGN) if one[0] not in names]}
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        """Say why; where a body was not read to its end the connection cannot go on."""
        if self.status:
            return
        body = problem_bytes(problem)
        headers = [(b"content-type", JSON_TYPE), (b"content-length", str(len(body)).encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
        if problem.code in ("too-large", "request-timeout", "unsupported-media-type"):
            headers.append((b"connection", b"close"))
        await self({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self({"type": "http.response.body", "body": body})


def is_open(path: str) -> bool:
    """May everybody ask for it?

    >>> is_open("/healthz"), is_open("/ui/plan"), is_open("/v1/jobs"), is_open("/uix")
    (True, True, False, False)
    """
    return path in OPEN_PATHS or path in ("/", OPEN_FOLDER) or path.startswith(f"{OPEN_FOLDER}/")


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once, then what comes from the connection (that it is gone)."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        if waiting:
            return waiting.pop()
        found: Message = await receive()
        return found

    return next_message


def _name_of(host: str) -> str:
    """The name in a Host header, without the port.

    >>> _name_of("LocalHost:8787"), _name_of("[::1]:80"), _name_of("10.0.0.1")
    ('localhost', '[::1]', '10.0.0.1')
    """
    name = host.lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]
