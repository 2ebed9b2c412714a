"""Logs as lines of JSON on standard error: one per request and per operation, none of them with a secret in it.

Lines are ASCII: whatever a user calls a job, it cannot start a line of its own or speak to the terminal. They are
written by a thread of their own, so that a reader of the log that sleeps never holds up the service.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

EVERY_S = 0.05
MOST_LINES = 100_000
"""Lines that wait to be written; beyond that the oldest are dropped, and the log says how many."""


_ENCODER = json.JSONEncoder(default=str)


class LineLog:
    """Lines of JSON to a file descriptor.

    >>> import os
    >>> reader, writer = os.pipe()
    >>> log = LineLog(writer, clock=lambda: 0.0)
    >>> log.say("started", jobs=2, name="a\\nb")
    >>> log.close()
    >>> os.read(reader, 1000)
    b'{"time": "1970-01-01T00:00:00.000Z", "level": "info", "event": "started", "jobs": 2, "name": "a\\\\nb"}\\n'
    """

    def __init__(self, descriptor: int = 2, clock: Callable[[], float] = time.time, quiet: bool = False) -> None:
        self._descriptor, self._clock, self._quiet = descriptor, clock, quiet
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._stop = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def say(self, event: str, level: str = "info", **facts: Any) -> None:
        """One line."""
        if self._quiet and level == "info":
            return
        if len(self._lines) >= MOST_LINES:
            self._lines.popleft()
            self._dropped += 1
        head = f'{{"time": "{stamp(self._clock())}", "level": "{level}", "event": "{event}"'
        told = _ENCODER.encode(facts)
        self._lines.append(f"{head}, {told[1:]}" if facts else f"{head}}}")

    def flush(self) -> None:
        with self._writing:
            lines = []
            while self._lines:
                lines.append(self._lines.popleft())
            if self._dropped:
                head = {"time": stamp(self._clock()), "level": "warning", "event": "log-lines-dropped"}
                lines.append(json.dumps(head | {"lines": self._dropped}))
                self._dropped = 0
            if lines:
                _write(self._descriptor, ("\n".join(lines) + "\n").encode())

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=2.0)
        self.flush()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            if self._lines:
                self.flush()


def stamp(at: float) -> str:
    """A moment as text, in UTC to the millisecond.

    >>> stamp(1.5)
    '1970-01-01T00:00:01.500Z'
    """
    second = int(at)
    return f"{_second(second)}.{int((at - second) * 1000):03}Z"


@lru_cache(8)
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _write(descriptor: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except OSError:
            return  # nobody reads the log any more: the service goes on


class ToLines(logging.Handler):
    """What libraries log becomes lines of the same log."""

    def __init__(self, log: LineLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        try:
            facts: dict[str, Any] = {"logger": record.name, "message": record.getMessage()}
            if record.exc_info and record.exc_info[0] is not None:
                facts["exception"] = logging.Formatter().formatException(record.exc_info)
            self._log.say("library", record.levelname.lower(), **facts)
        except Exception:
            self.handleError(record)
