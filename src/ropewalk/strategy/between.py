"""What moves between ranks that have a tensor and ranks that need it: where what one has and the other needs overlap.

A tensor is samples times columns. Ranks have or need equal, contiguous ranges of both: replicas a range of the samples,
tensor ranks a range of the columns, or each of them all. What several ranks have alike each of them sends an equal part
of, and who has it itself gets nothing. What a rank needs and has itself does not move.

Seats: a layer by samples has its part and needs its part; a pinned layer has and needs the whole batch; a layer cut by
outputs has a part of the columns of every sample and needs whole samples; a layer split as Megatron splits it has and
needs whole samples on every server. On the way back gradients go to where the tensor came from. A layer cut by outputs
has on each server a summand of all of it, and each sends its summand; one that Megatron splits has summed them before.
A tensor with several readers goes to each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import lcm

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.strategy.seating import Manner, Seat


@dataclass(frozen=True, eq=False)
class Parts:
    """Rank `src[i]` sends `count[i] / of` of a tensor to rank `dst[i]`."""

    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    count: Ints
    of: int

    def bytes_of(self, tensor_bytes: float) -> NDArray[np.float64]:
        return self.count.astype(np.float64) * (tensor_bytes / self.of)


@dataclass(frozen=True)
class TensorSpread:
    """Which part of a tensor each of several ranks has or needs: those of a replica are neighbours."""

    ranks: tuple[int, ...]
    replicas: int = 1
    """Equal ranges of the samples; 1: each has all of them."""
    columns: int = 1
    """Equal ranges of the columns; 1: each has all of them."""
    alike: bool = False
    """All have the same, so that each sends an equal part of whatever is asked for."""

    def samples_of(self, grains: int) -> tuple[Ints, Ints]:
        """First grain of the samples that each rank has, and the one behind its last."""
        each, place = grains // self.replicas, np.arange(len(self.ranks), dtype=np.int64)
        first = place * self.replicas // len(self.ranks) * each
        return first, first + each

    def columns_of(self, grains: int) -> tuple[Ints, Ints]:
        """The same for columns."""
        each, place = grains // self.columns, np.arange(len(self.ranks), dtype=np.int64)
        first = place % self.columns * each
        return first, first + each


def moved(has: TensorSpread, needs: TensorSpread) -> Parts:
    """Who sends which part to whom, sender by sender.

    >>> found = moved(TensorSpread((0, 1, 2), replicas=3), TensorSpread((3, 4), replicas=2))
    >>> list(zip(found.src.tolist(), found.dst.tolist(), found.count.tolist())), found.of
    ([(0, 3, 2), (1, 3, 1), (1, 4, 1), (2, 4, 2)], 6)
    """
    rows, columns = lcm(has.replicas, needs.replicas), lcm(has.columns, needs.columns)
    shared = _overlap(has.samples_of(rows), needs.samples_of(rows))
    if columns > 1:
        shared = shared * _overlap(has.columns_of(columns), needs.columns_of(columns))
    ours, theirs = np.array(has.ranks, np.int32), np.array(needs.ranks, np.int32)
    elsewhere = ours[:, None] != theirs
    if has.alike:
        elsewhere &= ~np.isin(theirs, ours)
    a, b = np.nonzero((shared > 0) & elsewhere)
    return Parts(ours[a], theirs[b], shared[a, b], rows * columns * (len(ours) if has.alike else 1))


def _overlap(one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> Ints:
    shared: Ints = np.minimum(one[1][:, None], other[1]) - np.maximum(one[0][:, None], other[0])
    return shared.clip(0)


@lru_cache(maxsize=100_000)
def parts_between(source: Seat, reader: Seat) -> Parts:
    """All that moves forward from a layer in one seat to a layer in another.

    >>> found = parts_between(Seat((0, 1)), Seat((1, 2, 3, 4)))
    >>> list(zip(found.src.tolist(), found.dst.tolist(), found.count.tolist())), found.of
    ([(0, 1, 1), (0, 2, 1), (1, 3, 1), (1, 4, 1)], 4)
    """
    return moved(_spread(source, columns=source.manner is Manner.COLUMNS), _spread(reader))


@lru_cache(maxsize=100_000)
def gradients_between(reader: Seat, source: Seat) -> Parts:
    """All that moves back from a layer in one seat to the layer in another that it had read.

    >>> split = Seat((0, 1), Manner.TENSOR)
    >>> there, back = parts_between(Seat((2,)), split), gradients_between(split, Seat((2,)))
    >>> there.bytes_of(8.0).tolist(), back.bytes_of(8.0).tolist()
    ([8.0, 8.0], [4.0, 4.0])
    """
    back = moved(_spread(reader), _spread(source, columns=source.manner is Manner.COLUMNS))
    place = np.zeros(max(source.servers) + 1, np.int64)
    place[list(source.servers)] = np.arange(source.degree)
    # In the order of the way there: by the server of the source, then by that of the reader.
    order = np.argsort(place[back.dst], kind="stable")
    return Parts(back.src[order], back.dst[order], back.count[order], back.of)


def _spread(seat: Seat, *, columns: bool = False) -> TensorSpread:
    """What the servers of a seat have or need; `columns`: a part of the outputs each."""
    replicas = seat.degree if seat.manner.parts_samples else 1
    return TensorSpread(seat.servers, replicas, seat.degree if columns else 1, alike=seat.manner is Manner.TENSOR)
