"""The streamed all-reduce of a training: gradients enter one fused buffer, tensors leave it when they are averaged.

Three threads share a desk that knows what is next: one sends, one receives, one adds, so that none of these waits for
another. The passes of the training do nothing but copy gradients into the buffer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf

from ropewalk.execute.overlap.lane import Flight
from ropewalk.execute.overlap.order import CommunicationOrder
from ropewalk.execute.overlap.stream.buffer import FusedBuffer, Tensor
from ropewalk.execute.overlap.stream.desk import Message, RankDesk
from ropewalk.execute.overlap.stream.layout import BufferLayout
from ropewalk.execute.overlap.stream.links import LinkLost, RingLinks, waited_too_long

_LATE_S = 1e-3
"""How late a thread may wake up without losing the time: an adder that is slowed down keeps its rate."""


class StreamLane:
    """Carries the gradients of one step after the other as chunks round a ring of ranks."""

    def __init__(
        self,
        order: CommunicationOrder,
        links: RingLinks,
        like: Tensor,
        *,
        add_bytes_per_s: float = inf,
        timeout_s: float = 300.0,
    ) -> None:
        """`like` is a tensor of the type of the gradients. Adding can be slowed down, to see what that costs."""
        self.ring = ring = links.ring
        self.links = links
        self.layout = BufferLayout(order)
        self.share = 1.0 / ring.ranks
        self.timeout_s = timeout_s
        self.add_bytes_per_s = add_bytes_per_s
        self._buffer = FusedBuffer(self.layout, ring, like)
        self._desk = RankDesk(ring, self.layout.launches, order.stream)
        self._flights: dict[str, Flight] = {}
        self._incomplete: dict[str, int] = {}
        self._missing = [set(launch.tensors) for launch in order.launches]
        self._problem: BaseException | None = None
        self._closing = False
        self._launches_of: dict[str, list[int]] = {name: [] for name in order.elements}
        for number, launch in enumerate(order.launches):
            for name in launch.tensors:
                self._launches_of[name].append(number)
        lock = threading.Lock()
        self._changed, self._can_send, self._can_add = (threading.Condition(lock) for _ in range(3))
        links.expect(
            [(chunk.number, turn) for chunk in self.layout.chunks for turn in range(ring.rounds)], self._buffer.slot
        )
        # Daemons: a process that fails must not wait for gradients that will never come.
        self._threads = [
            threading.Thread(
                target=self._guarded, args=(work,), name=f"ropewalk-{work.__name__.strip('_')}", daemon=True
            )
            for work in (self._send, self._receive, self._add)
        ]
        for thread in self._threads:
            thread.start()

    def enter(self, flight: Flight) -> None:
        """A gradient is complete: copy it into the buffer, and begin the launches that it was the last one of.

        The mean is taken before the sum, as DistributedDataParallel does: half floats would overflow.
        """
        chunks = self.layout.chunks_of[flight.name]
        with self._changed:
            self._wait_until(lambda: all(self._desk.free(chunk) for chunk in chunks), "its last average to leave")
            if self._problem is not None:
                flight.fail(self._problem)
                return
        self._buffer.put(flight.name, flight.flat, self.share)
        with self._changed:
            if self._problem is not None:
                flight.fail(self._problem)
                return
            self._flights[flight.name] = flight
            self._incomplete[flight.name] = len(chunks)
            for launch in self._launches_of[flight.name]:
                self._missing[launch].discard(flight.name)
                if not self._missing[launch]:
                    self._missing[launch] = set(self.layout.order.launches[launch].tensors)
                    self._desk.begin(launch)
            self._settle()

    def close(self) -> None:
        """Let the last messages leave, say goodbye, and end the threads; nothing may wait to arrive."""
        with self._changed:
            self._wait_until(lambda: self._desk.idle, "its last messages to leave")
            self._closing = True
            self._can_send.notify()
            self._can_add.notify()
        for thread in self._threads:
            thread.join(self.timeout_s)
        self.links.close()

    def wait_for(self, flight: Flight) -> None:
        """Wait until a gradient is averaged, but not for ever."""
        if not flight.arrived.wait(self.timeout_s):
            self._give_up(waited_too_long(self.ring.rank, self.timeout_s, flight.name))
        if flight.problem is not None:
            raise flight.problem

    def _send(self) -> None:
        while (message := self._next(self._can_send, self._desk.next_send)) is not None:
            self.links.send(message, self._buffer.content(message))
            with self._changed:
                self._desk.sent(message[0])
                self._settle()
        if self._problem is None:
            self.links.goodbye()

    def _receive(self) -> None:
        while (message := self.links.receive()) is not None:
            with self._changed:
                if self._desk.arrived(message[0]) != message[1]:
                    raise LinkLost(
                        f"rank {self.ring.before} sent round {message[1]} of chunk {message[0]} out of order: give all "
                        "ranks the same plan"
                    )
                self._settle()
        with self._changed:
            if self._desk.expects:
                raise LinkLost(
                    f"rank {self.ring.before} ended its training in the middle of a step of rank {self.ring.rank}: run "
                    "equally many steps on all ranks"
                )

    def _add(self) -> None:
        due = 0.0
        while (message := self._next(self._can_add, self._desk.next_add)) is not None:
            began = time.perf_counter()
            size_bytes = self._buffer.add(message)
            if self.add_bytes_per_s < inf:
                due = max(due, began - _LATE_S) + size_bytes / self.add_bytes_per_s
                time.sleep(max(0.0, due - time.perf_counter()))
            with self._changed:
                self._desk.added(message[0])
                self._settle()

    def _next(self, condition: threading.Condition, choose: Callable[[], Message | None]) -> Message | None:
        """Wait for work; None when there will be no more."""
        with condition:
            while not self._closing and self._problem is None:
                if (message := choose()) is not None:
                    return message
                condition.wait()
        return None

    def _settle(self) -> None:
        """Under the lock, behind every event: release tensors whose chunks are all there, wake who has work now."""
        for number in self._desk.completed():
            for tensor in self.layout.chunks[number].tensors:
                self._incomplete[tensor] -= 1
                if not self._incomplete[tensor]:
                    flight = self._flights.pop(tensor)
                    flight.gradient = self._buffer.average(tensor, flight.gradient)
                    flight.arrived.set()
        if self._desk.can_send:
            self._can_send.notify()
        if self._desk.can_add:
            self._can_add.notify()
        self._changed.notify_all()

    def _wait_until(self, true: Callable[[], bool], what: str) -> None:
        if not self._changed.wait_for(lambda: self._problem is not None or true(), self.timeout_s):
            self._problem = LinkLost(
                f"rank {self.ring.rank} waited {self.timeout_s:g} s for {what}: rank {self.ring.after} has stopped "
                "receiving; check its output"
            )

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as problem:  # whatever a backend may raise belongs to those who wait
            self._give_up(problem)

    def _give_up(self, problem: BaseException) -> None:
        """Nobody may wait for ever: tell everybody here, those who come later, and the neighbours."""
        with self._changed:
            if self._problem is None:
                self._problem = problem
            for flight in self._flights.values():
                flight.fail(self._problem)
            self._flights.clear()
            for condition in (self._changed, self._can_send, self._can_add):
                condition.notify_all()
        self.links.close()
