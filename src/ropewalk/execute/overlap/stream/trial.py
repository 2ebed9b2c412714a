"""What the processes of a measured stream do: train over links with a latency and a slow adder, and look at the clock.

The functions are called in the processes of `LocalRanks`, after `join` of `ropewalk.execute.overlap.trial`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from statistics import median
from typing import Any

from ropewalk.execute.overlap.lane import Flight
from ropewalk.execute.overlap.order import CommunicationOrder, Piece, Stream, fused
from ropewalk.execute.overlap.scheduled import schedule
from ropewalk.execute.overlap.stream.desk import Message
from ropewalk.execute.overlap.stream.lane import StreamLane
from ropewalk.execute.overlap.stream.links import RingLinks, Slot
from ropewalk.execute.overlap.stream.ring import RingPlace
from ropewalk.execute.overlap.stream.sockets import socket_links
from ropewalk.execute.overlap.trial import Make, joined, made, seconds_of_steps, sgd

_TIMEOUT_S = 60.0


class Delayed:
    """Links on which every message takes some seconds longer, and keeps nobody from sending meanwhile."""

    def __init__(self, links: RingLinks, latency_s: float) -> None:
        self._links = links
        self._latency_s = latency_s
        self._arrived: SimpleQueue[tuple[float, Message | BaseException | None]] = SimpleQueue()
        self.send, self.goodbye, self.close = links.send, links.goodbye, links.close

    @property
    def ring(self) -> RingPlace:
        return self._links.ring

    def expect(self, messages: list[Message], slot: Slot) -> None:
        self._links.expect(messages, slot)
        threading.Thread(target=self._take, name="ropewalk-latency", daemon=True).start()

    def receive(self) -> Message | None:
        due, message = self._arrived.get()
        time.sleep(max(0.0, due - time.perf_counter()))
        if isinstance(message, BaseException):
            raise message
        return message

    def _take(self) -> None:
        message: Message | BaseException | None = (0, 0)
        while isinstance(message, tuple):
            try:
                message = self._links.receive()
            except BaseException as problem:  # belongs to the one who receives
                message = problem
            self._arrived.put((time.perf_counter() + self._latency_s, message))


def train_by_stream(
    make: Make, steps: int, order: CommunicationOrder, latency_s: float, add_bytes_per_s: float
) -> list[float]:
    """Seconds of every step but the first ones, over connections of its own."""
    module, loss = made(make)
    links = partial(_links, latency_s=latency_s)
    scheduled = schedule(
        module, sgd, order, joined(), links=links, timeout_s=_TIMEOUT_S, add_bytes_per_s=add_bytes_per_s
    )
    taken = seconds_of_steps(lambda: loss(module), steps)
    scheduled.close()
    return taken


def look_at_chunks(cases: Sequence[tuple[int, int]], runs: int, latency_s: float) -> list[float]:
    """Seconds of streamed all-reduce of (elements, chunks), medians over runs, by the slowest rank."""
    import torch
    import torch.distributed as dist

    found = []
    for elements, chunks in cases:
        cuts = [elements * at // chunks for at in range(chunks + 1)]
        pieces = (Piece("all", start, stop) for start, stop in pairwise(cuts))
        order = CommunicationOrder(tuple(fused(piece) for piece in pieces), stream=Stream())
        given = torch.zeros(elements)
        lane = StreamLane(order, _links(joined(), latency_s), given, timeout_s=_TIMEOUT_S)
        taken = []
        for _ in range(runs + 1):
            dist.barrier(joined())
            start = time.perf_counter()
            flight = Flight("all", given, chunks)
            lane.enter(flight)
            lane.wait_for(flight)
            slowest = torch.tensor(time.perf_counter() - start, dtype=torch.float64)
            dist.all_reduce(slowest, dist.ReduceOp.MAX, group=joined())
            taken.append(float(slowest))
        lane.close()
        found.append(median(taken[1:]))
    return found


def look_at_latency(messages: int) -> float:
    """Seconds from when a small message has been handed over until it has arrived, on quiet links; their median.

    Processes of one machine have one clock.
    """
    import torch
    import torch.distributed as dist

    links = _links(joined(), 0.0)
    content, slot = torch.zeros(16), torch.zeros(16)
    links.expect([(0, 0)], lambda _: slot)
    left, arrived = [], []
    dist.barrier(joined())
    for _ in range(messages):
        links.send((0, 0), content)
        left.append(time.perf_counter())
        links.receive()
        arrived.append(time.perf_counter())
    told: list[Any] = [None] * links.ring.ranks
    dist.all_gather_object(told, left, group=joined())
    links.close()
    taken = [float(end - start) for start, end in zip(told[links.ring.before], arrived, strict=True)]
    return median(taken)


def _links(group: Any, latency_s: float) -> RingLinks:
    links = socket_links(group, timeout_s=_TIMEOUT_S)
    return Delayed(links, latency_s) if latency_s else links
