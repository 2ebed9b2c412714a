"""The streamed all-reduce on groups that match messages by their order, as NCCL does: one sequence on all ranks.

Nothing is decided while a step runs. A thread hands every message over in its turn, sending and receiving at once, on a
stream of its own; another stream adds what has arrived, while the first one carries what comes next. The host waits for
gradients to exist and for nothing else, so all of it is in the queues of the GPU before it is needed.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from typing import Any

from ropewalk.errors import StrategyError
from ropewalk.execute.overlap.lane import Flight
from ropewalk.execute.overlap.order import CommunicationOrder, Stream
from ropewalk.execute.overlap.stream.buffer import FusedBuffer, Tensor
from ropewalk.execute.overlap.stream.desk import Message
from ropewalk.execute.overlap.stream.layout import BufferLayout
from ropewalk.execute.overlap.stream.links import waited_too_long
from ropewalk.execute.overlap.stream.ring import RingPlace


class TurnLane:
    """Carries the gradients of one step after the other, each message in its turn.

    On CPUs it does the same without streams, one thing at a time.
    """

    def __init__(self, order: CommunicationOrder, group: Any, like: Tensor, *, timeout_s: float = 300.0) -> None:
        import torch
        import torch.distributed as dist

        self.ring = ring = RingPlace(dist.get_world_size(group), dist.get_rank(group))
        self.layout = BufferLayout(order)
        self.timeout_s = timeout_s
        self._group = group
        self._sequence = _in_turn(order.stream or Stream(), len(self.layout.chunks), ring)
        self._buffer = FusedBuffer(self.layout, ring, like)
        self._after, self._before = (dist.get_global_rank(group, one) for one in (ring.after, ring.before))
        self._carries = torch.cuda.Stream(like.device) if like.is_cuda else None
        beside = order.stream is None or order.stream.mix
        self._adds = torch.cuda.Stream(like.device) if like.is_cuda and beside else self._carries
        self._entered: SimpleQueue[tuple[Flight, Any] | None] = SimpleQueue()
        self._here: dict[str, tuple[Flight, Any]] = {}
        self._problem: BaseException | None = None
        # A daemon: a process that fails must not wait for gradients that will never come.
        self._thread = threading.Thread(target=self._work, name="ropewalk-turns", daemon=True)
        self._thread.start()

    def enter(self, flight: Flight) -> None:
        """A gradient is complete: put it into the buffer."""
        self._buffer.put(flight.name, flight.flat, 1.0 / self.ring.ranks)
        self._entered.put((flight, _recorded(self._carries)))
        if self._problem is not None:
            flight.fail(self._problem)

    def wait_for(self, flight: Flight) -> None:
        """Wait until the average is in the queue of the GPU, or there, on CPUs; but not for ever."""
        if not flight.arrived.wait(self.timeout_s):
            raise waited_too_long(self.ring.rank, self.timeout_s, flight.name)
        if flight.problem is not None:
            raise flight.problem

    def close(self) -> None:
        """End the thread; nothing may be on its way."""
        self._entered.put(None)
        self._thread.join(self.timeout_s)

    def _work(self) -> None:
        try:
            while self._carry_a_step():
                pass
        except BaseException as problem:  # whatever a backend may raise belongs to those who wait
            self._problem = problem
            while True:
                for flight, _ in self._here.values():
                    flight.fail(problem)
                self._here.clear()
                if (entered := self._entered.get()) is None:
                    return
                self._here[entered[0].name] = entered

    def _carry_a_step(self) -> bool:
        """Hand over all messages of a step; False where the lane was closed instead."""
        incomplete = {name: len(chunks) for name, chunks in self.layout.chunks_of.items()}
        added: dict[int, Any] = {}
        for message in self._sequence:
            chunk, turn = message
            if turn == 0 and not self._wait_for_launch(self.layout.chunks[chunk].launch):
                return False
            with _on(self._carries):
                if chunk in added:
                    _behind(self._carries, added.pop(chunk))
                self._exchange(message)
                arrived = _recorded(self._carries)
            if turn < self.ring.reducing:
                with _on(self._adds):
                    _behind(self._adds, arrived)
                    self._buffer.add(message)
                    added[chunk] = _recorded(self._adds)
            elif turn == self.ring.rounds - 1:
                for tensor in self.layout.chunks[chunk].tensors:
                    incomplete[tensor] -= 1
                    if not incomplete[tensor]:
                        self._release(tensor)
        return True

    def _wait_for_launch(self, launch: int) -> bool:
        for tensor in self.layout.order.launches[launch].tensors:
            while tensor not in self._here:
                if (entered := self._entered.get()) is None:
                    return False
                self._here[entered[0].name] = entered
            _behind(self._carries, self._here[tensor][1])
        return True

    def _exchange(self, message: Message) -> None:
        """Send and receive at once: neither waits for the other, on any rank."""
        import torch.distributed as dist

        content, place = self._buffer.content(message), self._buffer.slot(message)
        operations = [
            dist.P2POp(what, tensor, peer, self._group)
            for what, tensor, peer in ((dist.isend, content, self._after), (dist.irecv, place, self._before))
            if tensor.numel()
        ]
        for work in dist.batch_isend_irecv(operations) if operations else ():
            work.wait()

    def _release(self, tensor: str) -> None:
        flight, _ = self._here.pop(tensor)
        with _on(self._carries):
            flight.gradient = self._buffer.average(tensor, flight.gradient)
            flight.event = _recorded(self._carries)
        flight.arrived.set()


def _in_turn(stream: Stream, chunks: int, ring: RingPlace) -> list[Message]:
    """Messages in the order in which all ranks hand them over."""
    turns = [0] * chunks
    sequence = []
    for chunk in stream.sequence:
        sequence.append((chunk, turns[chunk]))
        turns[chunk] += 1
    if turns != [ring.rounds] * chunks:
        raise StrategyError(
            f"the plan has no order of {ring.rounds} messages for each of {chunks} chunks, which {ring.ranks} ranks "
            "need on NCCL: make it by order_of_exchange for as many ranks"
        )
    return sequence


def _recorded(stream: Any) -> Any:
    """On GPUs an event behind what is in the current stream."""
    if stream is None:
        return None
    import torch

    event = torch.cuda.Event()
    event.record()
    return event


def _behind(stream: Any, event: Any) -> None:
    if stream is not None and event is not None:
        stream.wait_event(event)


def _on(stream: Any) -> AbstractContextManager[Any]:
    if stream is None:
        return nullcontext()
    import torch

    context: AbstractContextManager[Any] = torch.cuda.stream(stream)
    return context
