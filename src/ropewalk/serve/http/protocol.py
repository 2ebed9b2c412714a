"""Connections with limits that the HTTP server itself does not have: slow heads, huge heads, readers that sleep.

The parser (llhttp, strict) refuses what could be read in two ways: two lengths, a length beside chunks, stray bytes.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ropewalk.serve import failpoints
from ropewalk.serve.http.rates import address_key
from ropewalk.serve.http.settings import HttpSettings
from ropewalk.serve.problems import problem_document

REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


TEARS = os.environ.get(failpoints.VARIABLE, "").startswith("torn-answer")
"""Does a test want the process to be killed in the middle of an answer?"""


class Doors:
    """What all connections of one service share: its settings, and how many come from where."""

    def __init__(self, settings: HttpSettings) -> None:
        self.settings = settings
        self.open = 0
        self.of_address: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        """Connections and requests that never reached a route, by why: for the metrics."""


class JoinedTransport:
    """A transport that sends the head of an answer with its body: one call of the kernel instead of two."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: bytes | None = None

    def write(self, data: bytes) -> None:
        if self._held is None:
            self._held = data
            self._loop.call_soon(self.flush)
        else:
            held, self._held = self._held, None
            if TEARS:
                self._transport.write(held + data[: len(data) // 2])
                failpoints.reach("torn-answer")
                held, data = b"", data[len(data) // 2 :]
            self._transport.write(held + data)

    def flush(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._transport.write(held)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class GuardedProtocol(HttpToolsProtocol):
    """One connection; which service it belongs to, the class of that service says."""

    doors: Doors

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._in_head = True
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._key = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = JoinedTransport(transport, self.loop)  # type: ignore[assignment]
        self.doors.open += 1
        self._key = address_key(self.client[0]) if self.client else ""
        if self._key:
            self.doors.of_address[self._key] += 1
        too_many = self.doors.open > self.doors.settings.connections
        if too_many or (self._key and self.doors.of_address[self._key] > self.doors.settings.connections_per_address):
            whose = "the service" if too_many else "this address"
            self._refuse(503, "not-ready", f"{whose} has too many connections", "close some, or wait")
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.doors.open -= 1
        if self._key:
            self.doors.of_address[self._key] -= 1
            if not self.doors.of_address[self._key]:
                del self.doors.of_address[self._key]
        self._cancel()
        if self._stalled is not None:
            self._stalled.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        # A head that came whole has reset the count; what is left of it belongs to a head that is not complete.
        if not self._in_head or not self._head_bytes or self.transport.is_closing():
            return
        if self._head_bytes > self.doors.settings.header_bytes:
            self._refuse_head()
        elif self._timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._cancel()
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.doors.settings.header_bytes:
            self._refuse_head()
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self.cycle is not None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head = True
        self._head_bytes = 0
        if self.cycle is not None:
            super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.doors.settings.stall_s, self._abort)

    def resume_writing(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "malformed", "malformed HTTP/1.1 request", "send a valid request")

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.doors.settings.header_s, self._too_slow)

    def _too_slow(self) -> None:
        self._timer = None
        if self._head_bytes:
            message = f"the head of the request took more than {self.doors.settings.header_s:g} s"
            self._refuse(408, "request-timeout", message, "send it faster")
        else:
            self.transport.close()

    def _refuse_head(self) -> None:
        message = f"the head of a request has more than {self.doors.settings.header_bytes} bytes"
        self._refuse(431, "head-too-large", message, "send fewer and shorter headers")

    def _abort(self) -> None:
        self.doors.refused["stalled"] += 1
        self.transport.abort()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, code: str, message: str, remedy: str) -> None:
        self.doors.refused[code] += 1
        self._cancel()
        body = json.dumps(problem_document(code, message, remedy)).encode()
        head = (
            f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def guarded(doors: Doors) -> type[GuardedProtocol]:
    """The protocol of one service; the server makes an instance for every connection."""
    return type("GuardedProtocol", (GuardedProtocol,), {"doors": doors})
