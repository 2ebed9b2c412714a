"""Everything that the routes of one service share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ropewalk.serve.http.broadcast import EventBroadcast
from ropewalk.serve.http.keyring import Keyring
from ropewalk.serve.http.logs import LineLog
from ropewalk.serve.http.metrics import ServiceMetrics
from ropewalk.serve.http.protocol import Doors
from ropewalk.serve.http.settings import HttpSettings

if TYPE_CHECKING:
    from ropewalk.serve.store import Store
    from ropewalk.serve.writer import Writer


LOOKS_AHEAD = 2
"""Questions about the future that are answered at once: each takes a processor for a while."""


class RulesStatus(Protocol):
    """What puts rules of jobs on devices, where a driver is active."""

    def reconcile(self) -> dict[str, Any]: ...
    def rules_of_job(self, job: str) -> dict[str, Any]: ...
    def metrics(self) -> dict[str, float]: ...


@dataclass(eq=False)
class Service:
    """One service: the writer and what surrounds it."""

    writer: Writer
    store: Store
    settings: HttpSettings
    log: LineLog
    metrics: ServiceMetrics
    keyring: Keyring
    broadcast: EventBroadcast
    doors: Doors
    rules: RulesStatus | None = None
    beside: dict[str, Callable[[], dict[str, float]]] = field(default_factory=dict)
    """What others count, by who they are."""
    closing: bool = False
    looking: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LOOKS_AHEAD))
    """Who may look ahead in time now."""
