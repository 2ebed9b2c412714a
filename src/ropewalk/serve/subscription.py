"""Events as they are committed, to anybody who listens; a slow listener costs nothing but its own time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Condition
from typing import Protocol

from ropewalk.serve.outcome import Event

KEPT = 8192
"""Events that stay in memory; whoever is further behind reads them from the store."""
MOST_AT_ONCE = 512


class History(Protocol):
    """Where older events are."""

    def events(self, after: int, limit: int) -> list[Event]: ...


class News:
    """The latest events, and who wants to be told that there are more."""

    def __init__(self, history: History, last_seq: int) -> None:
        self.last_seq = last_seq
        self._history = history
        self._latest: deque[Event] = deque(maxlen=KEPT)
        self._changed = Condition()
        self._calls: list[Callable[[], None]] = []
        self.closed = False

    def publish(self, events: Sequence[Event]) -> None:
        """These are committed now."""
        if not events:
            return
        with self._changed:
            self._latest.extend(events)
            self.last_seq = events[-1].seq
            calls = list(self._calls)
            self._changed.notify_all()
        for call in calls:
            call()

    def subscribe(self, after_seq: int) -> Subscription:
        return Subscription(self, after_seq)

    def after(self, seq: int) -> list[Event]:
        """Some events after this one, in order; none where there are none yet."""
        with self._changed:
            if seq >= self.last_seq:
                return []
            if self._latest and self._latest[0].seq <= seq + 1:
                first = seq + 1 - self._latest[0].seq
                return [self._latest[at] for at in range(first, min(first + MOST_AT_ONCE, len(self._latest)))]
            last = self.last_seq
        return [event for event in self._history.events(seq, MOST_AT_ONCE) if event.seq <= last]

    def wait(self, seq: int, timeout_s: float) -> bool:
        """Wait until there is an event after this one."""
        with self._changed:
            return self._changed.wait_for(lambda: self.last_seq > seq or self.closed, timeout_s)

    def call(self, function: Callable[[], None]) -> Callable[[], None]:
        """Call a function, on the writer's thread, whenever there are new events; answers how to stop that."""
        with self._changed:
            self._calls.append(function)

        def stop() -> None:
            with self._changed:
                if function in self._calls:
                    self._calls.remove(function)

        return stop

    def close(self) -> None:
        with self._changed:
            self.closed = True
            calls = list(self._calls)
            self._changed.notify_all()
        for call in calls:
            call()


class Subscription:
    """One listener, who knows what it has seen."""

    def __init__(self, news: News, after_seq: int) -> None:
        self._news = news
        self.seq = after_seq
        """The last event it has taken."""

    def take(self) -> list[Event]:
        """The next events, if there are any."""
        found = self._news.after(self.seq)
        if found:
            self.seq = found[-1].seq
        return found

    def wait(self, timeout_s: float) -> bool:
        """Wait until there is something to take."""
        return self._news.wait(self.seq, timeout_s)

    def call(self, function: Callable[[], None]) -> Callable[[], None]:
        """Have a function called, on the writer's thread, when there may be something to take."""
        return self._news.call(function)
