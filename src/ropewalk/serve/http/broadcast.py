"""Events to everybody who follows them, each at its own pace.

Nothing is queued for a client: it takes what it has not seen from the latest events in memory, or from the database
where it is further behind. A client that falls behind while it is live is cut off with a last event that says so; it
comes back with the number of the event that it saw last, and misses nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ropewalk.serve.http.metrics import ServiceMetrics
from ropewalk.serve.http.settings import HttpSettings
from ropewalk.serve.outcome import Event
from ropewalk.serve.problems import too_many

if TYPE_CHECKING:
    from ropewalk.serve.subscription import News, Subscription

RETRY_MS = 2000
COME_BACK_S = 30
KEPT_TEXTS = 1024
TOGETHER_S = 0.02
"""Events of so much time are handed on together."""


class EventBroadcast:
    """All clients of /v1/events. It lives on the event loop; the writer's thread only says that there is news."""

    def __init__(self, news: News, settings: HttpSettings, metrics: ServiceMetrics) -> None:
        self._news, self._settings, self._metrics = news, settings, metrics
        self._waiting: set[asyncio.Event] = set()
        self._of_client: Counter[str] = Counter()
        self._counted = news.subscribe(news.last_seq)
        self._texts: OrderedDict[int, bytes] = OrderedDict()
        self._closing = False
        self._told = False

    @property
    def last_seq(self) -> int:
        """The number of the latest event."""
        return self._news.last_seq

    def start(self) -> None:
        """From now on news are handed on."""
        loop = asyncio.get_running_loop()

        def tell() -> None:
            if not self._told:
                self._told = True
                loop.call_soon_threadsafe(loop.call_later, TOGETHER_S, self._wake)

        self.stop = self._news.call(tell)

    def close(self) -> None:
        """The service ends: everybody is told to come back later."""
        self._closing = True
        self._wake()

    def admit(self, client: str) -> None:
        """Refuse a stream too many, before its answer begins."""
        settings = self._settings
        if self._of_client.total() >= settings.streams:
            what = f"{settings.streams} clients already follow the events"
            raise too_many(what, COME_BACK_S, "close a stream, or poll /v1/history")
        if self._of_client[client] >= settings.streams_per_client:
            what = f"this token already follows the events {settings.streams_per_client} times"
            raise too_many(what, COME_BACK_S, "close one of its streams")

    async def stream(self, client: str, after: int | None) -> AsyncIterator[bytes]:
        """The text of a stream: what was missed, then what happens, a heartbeat where nothing does."""
        seen = self._news.subscribe(self._news.last_seq if after is None else after)
        bell = asyncio.Event()
        self._waiting.add(bell)
        self._of_client[client] += 1
        self._metrics.streams.inc()
        try:
            # The number alone tells a client where it is, so that it can come back before its first event.
            yield f"id: {seen.seq}\nretry: {RETRY_MS}\n: events of ropewalk\n\n".encode()
            async for text in self._events(seen, bell):
                yield text
        finally:
            self._waiting.discard(bell)
            self._of_client[client] -= 1
            if not self._of_client[client]:
                del self._of_client[client]
            self._metrics.streams.dec()

    async def _events(self, seen: Subscription, bell: asyncio.Event) -> AsyncIterator[bytes]:
        live = False
        while True:
            bell.clear()
            behind = self._news.last_seq - seen.seq
            if live and behind > self._settings.stream_events:
                self._metrics.cut_off.inc()
                yield _last_word("cut-off", "this client reads too slowly", seen.seq)
                return
            events = seen.take() if live else await asyncio.to_thread(seen.take)
            if events:
                yield b"".join(self._text(event) for event in events)
                continue
            live = True
            if self._closing:
                yield _last_word("closing", "the service is shutting down", seen.seq)
                return
            try:
                async with asyncio.timeout(self._settings.heartbeat_s):
                    await bell.wait()
            except TimeoutError:
                yield b": heartbeat\n\n"

    def _wake(self) -> None:
        self._told = False
        while events := self._counted.take():
            for kind, count in Counter(event.kind for event in events).items():
                self._metrics.events.labels(kind).inc(count)
        for bell in self._waiting:
            bell.set()

    def _text(self, event: Event) -> bytes:
        """The text of an event, written once for all clients."""
        found = self._texts.get(event.seq)
        if found is None:
            document = json.dumps(event.as_document())
            found = f"id: {event.seq}\nevent: {event.kind}\ndata: {document}\n\n".encode()
            self._texts[event.seq] = found
            if len(self._texts) > KEPT_TEXTS:
                self._texts.popitem(last=False)
        return found


def _last_word(kind: str, why: str, last: int) -> bytes:
    document = {"reason": why, "resume_after": last, "remedy": "connect again with the header Last-Event-ID"}
    return f"event: {kind}\ndata: {json.dumps(document)}\n\n".encode()
