"""What every link has sent, looked at again and again while a job runs, in a thread that gives way to the ranks."""

from __future__ import annotations

from threading import Event, Thread
from types import TracebackType
from typing import Self

from ropewalk.lab.netlink import Counted, QueueCounters, RawCounters

EVERY_S = 0.05
MOST_SAMPLES = 400
"""When a run has more, every second one is dropped and the interval doubles."""


class LinkSampler:
    """Reads counters for the length of a block; what they mean is worked out afterwards."""

    def __init__(self, counters: QueueCounters) -> None:
        self._counters = counters
        self._seen: list[list[RawCounters]] = []
        self._every_s = EVERY_S
        self._over = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def samples(self, began: float) -> dict[str, object]:
        """By look and end: seconds after `began` (of `time.perf_counter`), bytes sent since the first look, waiting."""
        read, known = [], dict[tuple[int, str], Counted]()
        for raw in self._seen:
            # A circuit that is gone meanwhile has sent what it had sent before.
            known = {**known, **self._counters.read(raw)}
            read.append((self._counters.times(raw), known))
        first = read[0][1]
        ends = sorted(first)
        return {
            "at_s": [[max(at[node] - began, 0.0) for node, _ in ends] for at, _ in read],
            "ends": ends,
            "sent_bytes": [[seen[end].sent_bytes - first[end].sent_bytes for end in ends] for _, seen in read],
            "waiting_bytes": [[seen[end].waiting_bytes for end in ends] for _, seen in read],
        }

    def _watch(self) -> None:
        while not self._over.wait(self._every_s):
            self._look()
            if len(self._seen) >= MOST_SAMPLES:
                self._seen = self._seen[::2]
                self._every_s *= 2

    def _look(self) -> None:
        self._seen.append(self._counters.raw())
