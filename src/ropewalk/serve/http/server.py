"""Runs the application: sockets, TLS, signals, and an end that loses nothing.

One process, one event loop (uvloop), llhttp as parser. SIGTERM and SIGINT end it: no new connections, requests under
way are answered, streams are told to come back, what was committed is committed.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import os
import signal
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.server import Server

from ropewalk.errors import InputError
from ropewalk.serve.http.logs import LineLog, ToLines
from ropewalk.serve.http.protocol import Doors, guarded

GRACE_S = 10
BACKLOG = 1024


@dataclass(frozen=True)
class Listening:
    """Where the service is reached."""

    host: str | None = "127.0.0.1"
    """None: not over TCP."""
    port: int = 8787
    socket: Path | None = None
    socket_mode: int = 0o660
    certificate: Path | None = None
    key: Path | None = None

    @property
    def is_local(self) -> bool:
        """Can only this machine connect?"""
        return self.host is None or is_loopback(self.host)

    @property
    def is_everywhere(self) -> bool:
        """Is the address that of no interface, at which nobody connects?"""
        return self.host in ("0.0.0.0", "::")

    @property
    def secure(self) -> bool:
        return self.certificate is not None

    def url(self) -> str:
        """The address as clients write it."""
        if self.host is None:
            return f"unix:{self.socket}"
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{shown}:{self.port}"


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_openness(listening: Listening, *, no_auth: bool, tokens: int, socket_role: str | None = None) -> None:
    """Refuse to be open to others without tokens, or to send tokens in the clear."""
    if listening.host is None and listening.socket is None:
        raise InputError("the service has no address: give --host or --socket")
    if (listening.certificate is None) != (listening.key is None):
        raise InputError("TLS needs a certificate and its key: give both --tls-cert and --tls-key")
    if no_auth and tokens:
        raise InputError(
            f"--no-auth is refused, because the database has {tokens} token{'s' * (tokens != 1)}: leave it out, or "
            "revoke them first (ropewalk serve token list)"
        )
    if no_auth and not listening.is_local:
        raise InputError(
            f"--no-auth on {listening.host} would let anyone on the network end jobs: listen on 127.0.0.1, or leave "
            "it out and create tokens (ropewalk serve token add)"
        )
    by_socket_alone = listening.host is None and socket_role is not None
    if not no_auth and not tokens and not by_socket_alone:
        raise InputError(
            f"there are no tokens, so every request{' over TCP' * (socket_role is not None)} would be refused: create "
            "one (ropewalk serve token add --role operate --name me), or give --no-auth to let every local user do "
            "everything"
        )
    if not listening.is_local and not listening.secure:
        raise InputError(
            f"on {listening.host} tokens would cross the network in the clear: give --tls-cert and --tls-key, or "
            "listen on 127.0.0.1 behind a proxy that does TLS"
        )


class ServiceServer(Server):
    """uvicorn with a Unix socket beside TCP, a word when it listens and a word to open streams before it ends."""

    def __init__(
        self,
        config: uvicorn.Config,
        listening: Listening,
        on_closing: Callable[[], None],
        on_started: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._listening, self._on_closing, self._on_started = listening, on_closing, on_started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT end the service; the process lives on until everything is closed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self._listening.socket is not None:
            await self._listen_on(self._listening.socket)
        self._on_started()

    async def _listen_on(self, path: Path) -> None:
        _remove_stale(path)

        def protocol() -> asyncio.Protocol:
            made: Any = self.config.http_protocol_class
            found: asyncio.Protocol = made(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return found

        loop = asyncio.get_running_loop()
        before = os.umask(0o777 & ~self._listening.socket_mode)
        try:
            self.servers.append(await loop.create_unix_server(protocol, path=str(path), backlog=BACKLOG))
        finally:
            os.umask(before)
        os.chmod(path, self._listening.socket_mode)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_closing()
        await super().shutdown(sockets=sockets)
        if self._listening.socket is not None:
            self._listening.socket.unlink(missing_ok=True)


LONGEST_SOCKET = 107
"""Bytes in the path of a Unix socket, by the kernel."""
_LISTEN_ELSEWHERE = "listen on an address of this machine and a port that you may use, such as 127.0.0.1 port 8787"


def bound(listening: Listening) -> list[socket.socket]:
    """The TCP socket, bound before anything else starts, so that a taken port is said in one sentence.

    The same holds for a path at which no Unix socket can be made.
    """
    if listening.socket is not None:
        if len(os.fsencode(listening.socket)) > LONGEST_SOCKET:
            raise InputError(f"the path of --socket has more than {LONGEST_SOCKET} bytes: give a shorter one")
        _remove_stale(listening.socket)
    if listening.host is None:
        return []
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            listening.host, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, number)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        found.bind(address)
        found.listen(BACKLOG)
    except OSError as problem:
        taken = problem.errno == errno.EADDRINUSE
        remedy = "stop the process that listens there, or give another --port" if taken else _LISTEN_ELSEWHERE
        raise InputError(
            f"cannot listen on {listening.host} port {listening.port}: {problem.strerror or problem}: {remedy}"
        ) from None
    return [found]


def server_of(
    app: Any,
    listening: Listening,
    doors: Doors,
    log: LineLog,
    on_closing: Callable[[], None],
    on_started: Callable[[], None] = lambda: None,
) -> ServiceServer:
    """The server, ready to run; `on_started` is called when it listens and signals end it."""
    for name in ("ropewalk.serve", "uvicorn", "uvicorn.error", "litestar", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [ToLines(log)], False
        logger.setLevel(logging.WARNING)
    tls: dict[str, Any] = {}
    if listening.certificate is not None:
        check_certificate(listening)
        tls = {"ssl_certfile": listening.certificate, "ssl_keyfile": listening.key}
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=guarded(doors),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=int(doors.settings.keep_alive_s),
        timeout_graceful_shutdown=GRACE_S,
        backlog=BACKLOG,
        **tls,
    )
    return ServiceServer(config, listening, on_closing, on_started)


def check_certificate(listening: Listening) -> None:
    """Read certificate and key once, so that a mistake is said before anything starts."""
    assert listening.certificate is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(listening.certificate, listening.key)
    except (OSError, ssl.SSLError) as problem:
        raise InputError(
            f"{listening.certificate} and {listening.key} are not a certificate and its "
            f"key ({problem.strerror or problem}): give PEM files that belong together"
        ) from None


def _remove_stale(path: Path) -> None:
    """A socket that nobody listens on any more is removed; anything else is left alone."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(f"cannot create {path.parent}: {problem.strerror}: give another --socket") from None
        return
    except OSError as problem:
        raise InputError(f"--socket {path} cannot be used: {problem.strerror}: give another path") from None
    if not stat.S_ISSOCK(mode):
        raise InputError(f"{path} exists and is not a socket: remove it, or give another --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise InputError(f"another process listens on {path}: stop it, or give another --socket")
