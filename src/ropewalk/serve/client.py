"""The service as commands see it: one connection, typed refusals, retries that never change anything twice.

Only the standard library is used, so that a login node needs no extra. URLs are `http://host:8787`, `https://…` and
`unix:/run/ropewalk/ropewalk.sock`.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import ssl
import stat
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from ropewalk.documents import parse_foreign_json, read_text
from ropewalk.documents.numbers import is_count
from ropewalk.errors import InputError, RopewalkError
from ropewalk.serve.problems import INTERFACE, VERSION

SERVICE, TOKEN, AUTHORITY = "ROPEWALK_SERVICE", "ROPEWALK_TOKEN", "ROPEWALK_CA"
"""Variables of the environment: the URL, the token or a file that holds it, the certificate authority."""
TIMEOUT_S = 30.0
PAUSES_S = (0.2, 0.5, 1.0)
"""Between tries; the service may be restarting."""
AGAIN = frozenset({429, 503})
LONGEST_PAUSE_S = 10.0
CHANGES = ("POST", "PUT")
LONGEST_TOKEN_FILE = 10_000
TOKEN_LETTERS = re.compile(r"[!-~]+")


class ServiceUnreachable(RopewalkError):
    """Nobody answers; the command line exits with code 1."""


class ServiceFailed(RopewalkError):
    """The service answered that it cannot; the command line exits with code 1."""


@dataclass(frozen=True)
class Reply:
    """What was answered: a status as in HTTP, and a document."""

    status: int
    document: dict[str, Any]

    @property
    def error(self) -> dict[str, Any] | None:
        found = self.document.get("error") if self.status >= 400 else None
        return found if isinstance(found, dict) else None


class Client:
    """Asks a service. Every change carries an idempotency key, the same in all its tries."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        authority: str | None = None,
        timeout_s: float = TIMEOUT_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url
        self._connect = _connector(url, authority, timeout_s)
        self._token, self._sleep = token, sleep
        self._connection: http.client.HTTPConnection | None = None

    @property
    def where(self) -> str:
        return f"the service at {self.url}"

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        if_match: int | None = None,
        key: str | None = None,
    ) -> Reply:
        """One question, and its answer whatever its status is."""
        headers = self._headers()
        content = None
        if method in CHANGES:
            headers["Content-Type"] = "application/json"
            headers["Idempotency-Key"] = key or uuid.uuid4().hex
            content = json.dumps(body or {}).encode()
        if if_match is not None:
            headers["If-Match"] = f'"{if_match}"'
        given = {name: value for name, value in (query or {}).items() if value is not None}
        target = path + (f"?{urlencode(given)}" if given else "")
        return self._tried(method, target, content, headers)

    def events(self, after: int | None = None) -> Iterator[dict[str, Any]]:
        """Events as they happen; a connection that breaks is made anew and goes on behind the last event."""
        last, quiet = after, 0
        while True:
            try:
                for event in self._stream(last):
                    quiet = 0
                    if "seq" in event:
                        last = int(event["seq"])
                        yield event
            except ssl.SSLCertVerificationError as problem:
                raise self._not_trusted(problem) from None
            except (OSError, http.client.HTTPException, ServiceUnreachable) as problem:
                if quiet >= len(PAUSES_S):
                    raise self._unreachable(problem) from None
            self._sleep(PAUSES_S[min(quiet, len(PAUSES_S) - 1)])
            quiet += 1

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def _tried(self, method: str, target: str, content: bytes | None, headers: dict[str, str]) -> Reply:
        pauses = iter(PAUSES_S)
        while True:
            try:
                reply, wait_s = self._once(method, target, content, headers)
            except ssl.SSLCertVerificationError as problem:
                raise self._not_trusted(problem) from None
            except (OSError, http.client.HTTPException) as problem:
                self.close()
                pause = next(pauses, None)
                if pause is None:
                    raise self._unreachable(problem) from None
                self._sleep(pause)
                continue
            pause = next(pauses, None) if reply.status in AGAIN else None
            if pause is None:
                return reply
            self._sleep(min(max(pause, wait_s), LONGEST_PAUSE_S))

    def _once(self, method: str, target: str, content: bytes | None, headers: dict[str, str]) -> tuple[Reply, float]:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request(method, target, body=content, headers=headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.will_close:
            self.close()
        wait = answer.getheader("Retry-After") or "0"
        return Reply(answer.status, self._document(text, answer)), float(wait) if is_count(wait[:9]) else 0.0

    def _document(self, text: bytes, answer: http.client.HTTPResponse) -> dict[str, Any]:
        try:
            found = parse_foreign_json(text.decode(), "the answer", InputError)
        except (UnicodeDecodeError, InputError):
            found = None
        if not isinstance(found, dict):
            raise self._stranger(f"{answer.status} without JSON")
        if answer.status < 400 and answer.getheader(INTERFACE) != VERSION:
            raise self._stranger(f"without the header {INTERFACE}: {VERSION}")
        return found

    def _stranger(self, said: str) -> ServiceFailed:
        return ServiceFailed(f"{self.where} answered {said}: check that it is a ropewalk service")

    def _stream(self, after: int | None) -> Iterator[dict[str, Any]]:
        connection = self._connect()
        headers = self._headers() | {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        try:
            connection.request("GET", "/v1/events", headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                refused = Reply(answer.status, self._document(answer.read(), answer))
                raise_refused(refused, self.where)
            for line in answer:
                if line.startswith(b"data: "):
                    yield self._document(line[6:], answer)
        finally:
            connection.close()

    def _not_trusted(self, problem: ssl.SSLCertVerificationError) -> ServiceUnreachable:
        return ServiceUnreachable(
            f"the certificate of {self.url} is not trusted here ({problem.verify_message}): use the host name of the "
            f"certificate, and set {AUTHORITY} to the PEM file of its authority"
        )

    def _unreachable(self, problem: Exception) -> ServiceUnreachable:
        why = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
        return ServiceUnreachable(
            f"no service answers at {self.url} ({why}): start `ropewalk serve`, or give another URL with --service "
            f"or {SERVICE}"
        )


def raise_refused(reply: Reply, where: str) -> None:
    """Turn a refusal into an exception: what the user gave is an InputError, everything else a failure."""
    error = reply.error or {}
    text = str(error.get("message") or f"status {reply.status}")
    text += f": {error['remedy']}" if error.get("remedy") else ""
    if reply.status in AGAIN or reply.status >= 500:
        raise ServiceFailed(f"{where} cannot answer: {text}")
    raise InputError(text)


def token_of(environment: Mapping[str, str], file: Path | None = None) -> str | None:
    """The token: from a file that only its owner can read, or from the environment, as text or as such a file."""
    if file is not None:
        return _token_in(file)
    text = environment.get(TOKEN)
    if not text:
        return None
    return _one_word(text, f"the token in {TOKEN}") if text.startswith("rw_") else _token_in(Path(text))


def _token_in(path: Path) -> str:
    subject = f"the token file {path}"
    text = read_text(path, subject, InputError, LONGEST_TOKEN_FILE).strip()
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise InputError(f"{subject} can be read by others: chmod 600 {path}")
    return _one_word(text, subject)


def _one_word(token: str, subject: str) -> str:
    """What a header can carry."""
    if not TOKEN_LETTERS.fullmatch(token):
        raise InputError(f"{subject} is not one word of letters and digits: put in what `ropewalk serve token` printed")
    return token


def client_of(url: str | None, environment: Mapping[str, str] = os.environ, token_file: Path | None = None) -> Client:
    """The client that options and the environment describe."""
    where = url or environment.get(SERVICE)
    if not where:
        raise InputError(
            f"no service is given: give --service URL or set {SERVICE}, or use --state FILE without a service"
        )
    return Client(where, token_of(environment, token_file), authority=environment.get(AUTHORITY))


def _connector(url: str, authority: str | None, timeout_s: float) -> Callable[[], http.client.HTTPConnection]:
    if url.startswith("unix:"):
        path = url.removeprefix("unix:")
        path = "/" + path.lstrip("/") if path.startswith("//") else path
        return lambda: _UnixConnection(path, timeout_s)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = None, None, None
    if parts is None or not host or parts.scheme not in ("http", "https") or parts.path not in ("", "/"):
        raise InputError(f"{url!r} is not the address of a service: write http://127.0.0.1:8787 or unix:/path/of.sock")
    if parts.scheme == "http":
        return lambda: http.client.HTTPConnection(host, port or 80, timeout=timeout_s)
    try:
        context = ssl.create_default_context(cafile=authority)
    except OSError as problem:
        raise InputError(f"{AUTHORITY} {authority} cannot be read: {problem}: name a PEM file") from None
    return lambda: http.client.HTTPSConnection(host, port or 443, timeout=timeout_s, context=context)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
