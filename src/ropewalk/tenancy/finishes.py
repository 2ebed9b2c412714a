"""When running jobs will be done: a heap in which a job may be expected anew, as often as its pace changes."""

from __future__ import annotations

import heapq
import math


class Finishes:
    """The expected finish of every running job; ties go by the number of the job.

    >>> finishes = Finishes()
    >>> finishes.expect(7, 2.0); finishes.expect(3, 1.0); finishes.expect(7, 0.5)
    >>> finishes.next_s(), finishes.due(0.5), finishes.due(1.0)
    (0.5, [7], [3])
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        self._at: dict[int, float] = {}

    def expect(self, number: int, finish_s: float) -> None:
        self._at[number] = finish_s
        heapq.heappush(self._heap, (finish_s, number))

    def forget(self, number: int) -> None:
        self._at.pop(number, None)

    def next_s(self) -> float:
        """The earliest finish; never where nobody runs."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)  # it was expected anew, or has gone
        return self._heap[0][0] if self._heap else math.inf

    def due(self, now_s: float) -> list[int]:
        """Take out who is done by now, in order."""
        done = []
        while self.next_s() <= now_s:
            _, number = heapq.heappop(self._heap)
            self._at.pop(number)
            done.append(number)
        return done
