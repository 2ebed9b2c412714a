"""The fused buffer of one rank: all gradients as rows of chunks, and beside it a slot for every partial sum."""

from __future__ import annotations

from typing import Any

from ropewalk.execute.overlap.stream.desk import Message
from ropewalk.execute.overlap.stream.layout import BufferLayout
from ropewalk.execute.overlap.stream.ring import RingPlace

Tensor = Any
"""A torch.Tensor, which mypy knows only as Any."""


class FusedBuffer:
    """Memory for one step; `like` is a tensor of the type of the gradients, on their device."""

    def __init__(self, layout: BufferLayout, ring: RingPlace, like: Tensor) -> None:
        self.layout = layout
        self.ring = ring
        self._slots: dict[Message, tuple[int, int]] = {}
        staged = 0
        for chunk in layout.chunks:
            for turn in range(ring.reducing):
                begin, end = ring.bounds(chunk.elements, ring.received(turn))
                self._slots[chunk.number, turn] = staged, staged + end - begin
                staged += end - begin
        self._buffer = like.new_empty(layout.elements).detach()
        self._staging = like.new_empty(staged).detach()

    def put(self, name: str, flat: Tensor, share: float) -> None:
        """Copy a gradient in, multiplied by the share that it has in the average."""
        import torch

        for place in self.layout.places[name]:
            part = flat[place.piece.start : place.piece.stop]
            torch.mul(part, share, out=self._buffer[place.start : place.stop])

    def average(self, name: str, gradient: Tensor) -> Tensor:
        """The average of a tensor: a part of the buffer where it stands in one row, otherwise copied over its gradient.

        It holds until the next gradient is put in.
        """
        if (row := self.layout.whole(name)) is not None:
            return self._buffer[row[0] : row[1]].view(gradient.shape)
        flat = gradient.view(-1)
        for place in self.layout.places[name]:
            flat[place.piece.start : place.piece.stop].copy_(self._buffer[place.start : place.stop])
        return gradient

    def slot(self, message: Message) -> Tensor:
        """Where a message goes: partial sums wait beside the buffer to be added, results go straight into it."""
        if (slot := self._slots.get(message)) is not None:
            return self._staging[slot[0] : slot[1]]
        return self.shard(message[0], self.ring.received(message[1]))

    def content(self, message: Message) -> Tensor:
        """What a message carries."""
        return self.shard(message[0], self.ring.sent(message[1]))

    def add(self, message: Message) -> int:
        """Add the partial sum of a message to this rank's own; its bytes."""
        received = self.slot(message)
        self.shard(message[0], self.ring.received(message[1])).add_(received)
        return int(received.numel()) * int(received.element_size())

    def shard(self, number: int, shard: int) -> Tensor:
        chunk = self.layout.chunks[number]
        begin, end = self.ring.bounds(chunk.elements, shard)
        return self._buffer[chunk.start + begin : chunk.start + end]
