"""The fused buffer of an order: every operation is a chunk, chunks stand one behind the other as they are urgent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ropewalk.execute.overlap.order import CommunicationOrder, Piece


@dataclass(frozen=True)
class Chunk:
    """What moves as a whole, in shards, round the ring."""

    number: int
    """Also how urgent it is: lower numbers go first."""
    launch: int
    pieces: tuple[Piece, ...]
    start: int
    """Its first element in the fused buffer."""
    elements: int

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(piece.tensor for piece in self.pieces))


@dataclass(frozen=True)
class PiecePlace:
    """Where a piece is in the fused buffer."""

    piece: Piece
    start: int

    @property
    def stop(self) -> int:
        return self.start + self.piece.elements


@dataclass(frozen=True, eq=False)
class BufferLayout:
    """Chunks of a step, and where every tensor is in their buffer.

    >>> from ropewalk.execute.overlap.order import fused
    >>> order = CommunicationOrder((fused(Piece("fc", 0, 6)), fused(Piece("conv", 0, 4), Piece("fc", 6, 8))))
    >>> layout = BufferLayout(order)
    >>> [(chunk.start, chunk.elements) for chunk in layout.chunks], layout.whole("conv"), layout.whole("fc")
    ([(0, 6), (6, 6)], (6, 10), None)
    """

    order: CommunicationOrder

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        made: list[Chunk] = []
        start = 0
        for number, launch in enumerate(self.order.launches):
            for operation in launch.operations:
                elements = sum(piece.elements for piece in operation)
                made.append(Chunk(len(made), number, operation, start, elements))
                start += elements
        return tuple(made)

    @property
    def elements(self) -> int:
        return self.chunks[-1].start + self.chunks[-1].elements

    @cached_property
    def launches(self) -> tuple[tuple[int, ...], ...]:
        """The chunks of every launch."""
        members: list[list[int]] = [[] for _ in self.order.launches]
        for chunk in self.chunks:
            members[chunk.launch].append(chunk.number)
        return tuple(map(tuple, members))

    @cached_property
    def chunks_of(self) -> dict[str, tuple[int, ...]]:
        """The chunks in which every tensor has a part."""
        found: dict[str, list[int]] = {name: [] for name in self.order.elements}
        for chunk in self.chunks:
            for tensor in chunk.tensors:
                found[tensor].append(chunk.number)
        return {name: tuple(numbers) for name, numbers in found.items()}

    @cached_property
    def places(self) -> dict[str, tuple[PiecePlace, ...]]:
        """The pieces of every tensor, from its first element on."""
        found: dict[str, list[PiecePlace]] = {name: [] for name in self.order.elements}
        for chunk in self.chunks:
            start = chunk.start
            for piece in chunk.pieces:
                found[piece.tensor].append(PiecePlace(piece, start))
                start += piece.elements
        return {name: tuple(sorted(parts, key=lambda part: part.piece.start)) for name, parts in found.items()}

    def whole(self, tensor: str) -> tuple[int, int] | None:
        """Where a tensor stands in one row; None if its pieces are apart."""
        places = self.places[tensor]
        if any(one.stop != other.start for one, other in pairwise(places)):
            return None
        return places[0].start, places[-1].stop
