"""The application: routes behind the gate, and what happens when it starts and ends."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from litestar import Litestar
from litestar.datastructures import State as Shared
from litestar.logging.config import LoggingConfig

from ropewalk.serve.http.broadcast import EventBroadcast
from ropewalk.serve.http.cluster_metrics import counted, gauges
from ropewalk.serve.http.gate import Gate
from ropewalk.serve.http.keyring import Keyring
from ropewalk.serve.http.logs import LineLog
from ropewalk.serve.http.metrics import ServiceMetrics
from ropewalk.serve.http.own_routes import OWN_ROUTES
from ropewalk.serve.http.protocol import Doors
from ropewalk.serve.http.roles import Principal
from ropewalk.serve.http.routes import HANDLERS, may_ask, table_routes
from ropewalk.serve.http.service import RulesStatus, Service
from ropewalk.serve.http.settings import HttpSettings
from ropewalk.serve.store.tokens import tokens
from ropewalk.serve.writer import Writer

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
UNKNOWN = "(none)"
QUIET = ("/healthz", "/readyz", "/metrics")
"""Asked every few seconds by machines: in the metrics, and in the log only where they fail."""


def make_service(writer: Writer, settings: HttpSettings, log: LineLog, rules: RulesStatus | None = None) -> Service:
    """What the routes share, from a writer that runs."""
    store = writer.store
    metrics = ServiceMetrics()
    broadcast = EventBroadcast(writer.news, settings, metrics)
    keyring = Keyring(lambda: tokens(store), settings.failures_per_address)
    return Service(writer, store, settings, log, metrics, keyring, broadcast, Doors(settings), rules)


def make_application(
    service: Service,
    hosts: frozenset[str] = LOCAL_NAMES,
    handlers: Sequence[Any] = (),
    lifespan: Sequence[Any] = (),
    **shared: Any,
) -> Gate:
    """The whole application; `handlers` are routes of others, `shared` what they find in `app.state`, `lifespan` what
    they do while it runs."""

    @asynccontextmanager
    async def running(_: Litestar) -> AsyncIterator[None]:
        service.broadcast.start()
        service.writer.on_batch = service.metrics.batches.observe
        service.metrics.follow(lambda: gauges(service), lambda: counted(service))
        try:
            yield
        finally:
            service.broadcast.stop()

    app = Litestar(
        [*table_routes(), *OWN_ROUTES, *handlers],
        guards=[may_ask],
        exception_handlers=HANDLERS,
        openapi_config=None,
        lifespan=[running, *lifespan],
        state=Shared({"service": service, **shared}),
        logging_config=LoggingConfig(configure_root_logger=False, log_exceptions="never"),
        debug=False,
    )

    def watch(scope: Any, principal: Principal | None, status: int, seconds: float, sent: int) -> None:
        handler = scope.get("route_handler")
        name = UNKNOWN if handler is None else next(iter(sorted(handler.paths)), UNKNOWN)
        method = scope["method"] if scope["method"] in ("GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE") else "other"
        service.metrics.answered(method, name, status, seconds)
        if scope["path"] in QUIET and status < 400:
            return
        client = scope.get("client")
        service.log.say(
            "request",
            level="info" if status < 500 else "error",
            method=method,
            path=scope["path"][:256],
            status=status,
            ms=round(seconds * 1e3, 3),
            bytes=sent,
            client=client[0] if client else "socket",
            by=None if principal is None else principal.actor,
        )

    return Gate(app, service.settings, service.keyring, hosts, watch)


def close(service: Service) -> None:
    """Before the server stops: not ready any more, streams are told."""
    service.closing = True
    service.broadcast.close()
    service.log.say("closing", at=time.time())
