"""What carries messages of the streamed all-reduce: to the rank behind, from the rank before, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ropewalk.errors import RopewalkError
from ropewalk.execute.overlap.stream.buffer import Tensor
from ropewalk.execute.overlap.stream.desk import Message
from ropewalk.execute.overlap.stream.ring import RingPlace

Slot = Callable[[Message], Tensor]
"""Where the elements of a message go."""


class LinkLost(RopewalkError):
    """A rank is gone or its link is down: the message names it."""


def waited_too_long(rank: int, timeout_s: float, tensor: str) -> LinkLost:
    """What a rank says whose average does not come.

    >>> str(waited_too_long(2, 300.0, "head")).partition(":")[0]
    'rank 2 waited 300 s for the average of head'
    """
    return LinkLost(
        f"rank {rank} waited {timeout_s:g} s for the average of {tensor}: check the other ranks, one of which has "
        "stopped, or raise the timeout if steps take that long"
    )


class RingLinks(Protocol):
    """A rank's two neighbours in the ring; one thread sends while another one receives."""

    @property
    def ring(self) -> RingPlace:
        """The place of this rank among the others."""
        ...

    def expect(self, messages: list[Message], slot: Slot) -> None:
        """Messages that will come in every step, and where they go; called once, before the first of them."""
        ...

    def send(self, message: Message, content: Tensor) -> None:
        """Hand a message over; returns when its content may be overwritten."""
        ...

    def receive(self) -> Message | None:
        """Wait until a message is in its slot; None when the rank before has said goodbye."""
        ...

    def goodbye(self) -> None:
        """Nothing more will be sent."""
        ...

    def close(self) -> None:
        """Give everything up at once; whoever waits is told."""
        ...
