"""The lane to the network: a thread that hands operations over in the planned order, as far as credit reaches.

The thread waits for the gradients of the next launch and never looks past it: whatever is ready earlier stays back, on
all ranks alike. What was handed over is completed in order; its bytes are credit again. On GPUs it works on a stream of
its own, which waits for the gradients and for which later kernels wait; the host only waits where credit runs out.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Protocol

from ropewalk.execute.overlap.order import CommunicationOrder, OperationLaunch, Piece

Tensor = Any
"""A torch.Tensor, which mypy knows only as Any."""
Group = Any


@dataclass(eq=False)
class Flight:
    """One gradient on its way, from the backward pass that made it to the forward pass that waits for it."""

    name: str
    gradient: Tensor
    """Contiguous; holds the average when `arrived` is set and `event`, where there is one, has passed."""
    pieces: int
    """Pieces of it that have not arrived."""
    ready: Any = None
    """On GPUs: the event behind which the gradient is complete."""
    event: Any = None
    """On GPUs: the event behind which the average is complete."""
    arrived: threading.Event = field(default_factory=threading.Event)
    problem: BaseException | None = None

    @property
    def flat(self) -> Tensor:
        return self.gradient.view(-1)

    def fail(self, problem: BaseException) -> None:
        """Let who waits for it raise what went wrong."""
        self.problem = problem
        self.arrived.set()


class Carrier(Protocol):
    """Carries gradients: by all-reduces of a library (`GradientLane`), or chunks between neighbours (`StreamLane`)."""

    def enter(self, flight: Flight) -> None:
        """A gradient is complete."""
        ...

    def wait_for(self, flight: Flight) -> None:
        """Wait until a gradient is averaged; raises what kept it from that."""
        ...

    def close(self) -> None:
        """End; nothing may be on its way."""
        ...


@dataclass(eq=False)
class _Operation:
    """What has been handed over."""

    pieces: tuple[tuple[Flight, Piece], ...]
    buffer: Tensor
    work: Any
    size_bytes: int
    event: Any = None


class GradientLane:
    """Carries the gradients of one step after the other, as the order says."""

    def __init__(self, order: CommunicationOrder, group: Group, device: Any) -> None:
        import torch
        import torch.distributed as dist

        self.order = order
        self.group = group
        self.share = 1.0 / dist.get_world_size(group)
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._entered: SimpleQueue[Flight | None] = SimpleQueue()
        self._open: set[Flight] = set()
        # A daemon: a process that fails must not wait for gradients that will never come.
        self._thread = threading.Thread(target=self._work, name="ropewalk-overlap", daemon=True)
        self._thread.start()

    def enter(self, flight: Flight) -> None:
        """A gradient is complete."""
        self._entered.put(flight)

    def wait_for(self, flight: Flight) -> None:
        """Wait until a gradient is averaged, as long as the library does."""
        flight.arrived.wait()
        if flight.problem is not None:
            raise flight.problem

    def close(self) -> None:
        """End the thread; nothing may be on its way."""
        self._entered.put(None)
        self._thread.join()

    def _work(self) -> None:
        import torch

        here: dict[str, Flight] = {}
        try:
            with torch.cuda.stream(self.stream) if self.stream is not None else nullcontext():
                while self._carry_a_step(here):
                    pass
        except BaseException as problem:  # whatever a backend may raise belongs to those who wait
            self._give_up(problem)

    def _carry_a_step(self, here: dict[str, Flight]) -> bool:
        """Hand over all launches of a step; False where the lane was closed instead."""
        under_way: deque[_Operation] = deque()
        left = dict(self.order.pieces_of)
        credit = self.order.credit_bytes
        for launch in self.order.launches:
            if not self._wait_for(launch, here):
                return False
            for operation in launch.operations:
                while under_way and credit <= 0:
                    credit += self._complete(under_way.popleft())
                handed = self._hand_over(tuple((here[piece.tensor], piece) for piece in operation))
                credit -= handed.size_bytes
                under_way.append(handed)
                for piece in operation:
                    left[piece.tensor] -= 1
                    if not left[piece.tensor]:
                        del here[piece.tensor]
        while under_way:
            self._complete(under_way.popleft())
        return True

    def _wait_for(self, launch: OperationLaunch, here: dict[str, Flight]) -> bool:
        """Take gradients in until those of the launch are there.

        That is during the backward pass: nobody waits for what arrives meanwhile, so it is completed later.
        """
        while any(tensor not in here for tensor in launch.tensors):
            entered = self._entered.get()
            if entered is None:
                return False
            here[entered.name] = entered
            self._open.add(entered)
        return True

    def _hand_over(self, pieces: tuple[tuple[Flight, Piece], ...]) -> _Operation:
        """Begin the sum of pieces: in place where there is one, in a buffer of their own where there are several."""
        import torch
        import torch.distributed as dist

        if self.stream is not None:
            for flight, _ in pieces:
                self.stream.wait_event(flight.ready)
        parts = [flight.flat[piece.start : piece.stop] for flight, piece in pieces]
        buffer = parts[0] if len(parts) == 1 else torch.cat(parts)
        # The mean is taken before the sum, as DistributedDataParallel does: half floats would overflow.
        buffer.mul_(self.share)
        work = dist.all_reduce(buffer, group=self.group, async_op=True)
        operation = _Operation(pieces, buffer, work, buffer.numel() * buffer.element_size())
        if self.stream is not None:
            # Here waiting is up to the stream: all that follows can be put in its queue at once.
            self._arrive(operation)
        return operation

    def _complete(self, operation: _Operation) -> int:
        """Wait until an operation is done; the bytes that are credit again."""
        if self.stream is None:
            self._arrive(operation)
        else:
            operation.event.synchronize()
        return operation.size_bytes

    def _arrive(self, operation: _Operation) -> None:
        """Put what was summed where it belongs, and tell those who wait for tensors that are whole now."""
        import torch

        operation.work.wait()
        if len(operation.pieces) > 1:
            parts = operation.buffer.split([piece.elements for _, piece in operation.pieces])
            for (flight, piece), part in zip(operation.pieces, parts, strict=True):
                flight.flat[piece.start : piece.stop].copy_(part)
        if self.stream is not None:
            operation.event = torch.cuda.Event()
            operation.event.record(self.stream)
        for flight, _ in operation.pieces:
            flight.pieces -= 1
            if not flight.pieces:
                flight.event = operation.event
                self._open.discard(flight)
                flight.arrived.set()

    def _give_up(self, problem: BaseException) -> None:
        """Nobody may wait for ever: tell everybody, also those who come later."""
        while True:
            for flight in self._open:
                flight.fail(problem)
            entered = self._entered.get()
            if entered is None:
                return
            self._open = {entered}
