"""What moves between two layers that sit on different servers: the overlap of what one has and the other needs.

Samples lie in contiguous, equal parts in the order of a seat's servers. A layer by samples has its part and needs its
part; a pinned layer has and needs the whole batch; a layer cut by outputs has a part of the columns of every sample
and needs whole samples; a layer split as Megatron splits it has and needs whole samples on every server. What several
servers have alike each of them sends an equal part of, and who has it itself gets nothing.

On the way back gradients go to where the tensor came from. A layer cut by outputs has on each server a summand of all
of it, and each sends its summand; one that Megatron splits has summed them before.
What one server needs and has itself does not move. A tensor with several readers goes to each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import lcm

import numpy as np
from numpy.typing import NDArray

from ropewalk.strategy.seating import Manner, Seat


@dataclass(frozen=True, eq=False)
class Parts:
    """Server `src[i]` sends `count[i] / of` of a tensor to server `dst[i]`."""

    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    count: NDArray[np.int64]
    of: int

    def bytes_of(self, tensor_bytes: float) -> NDArray[np.float64]:
        return self.count.astype(np.float64) * (tensor_bytes / self.of)


@lru_cache(maxsize=100_000)
def parts_between(source: Seat, reader: Seat) -> Parts:
    """All that moves forward from a layer in one seat to a layer in another.

    >>> found = parts_between(Seat((0, 1)), Seat((1, 2, 3, 4)))
    >>> list(zip(found.src.tolist(), found.dst.tolist(), found.count.tolist())), found.of
    ([(0, 1, 1), (0, 2, 1), (1, 3, 1), (1, 4, 1)], 4)
    """
    alike = source.manner in (Manner.COLUMNS, Manner.TENSOR)
    return _moved(source, reader, source.degree if alike else 1)


@lru_cache(maxsize=100_000)
def gradients_between(reader: Seat, source: Seat) -> Parts:
    """All that moves back from a layer in one seat to the layer in another that it had read.

    >>> split = Seat((0, 1), Manner.TENSOR)
    >>> there, back = parts_between(Seat((2,)), split), gradients_between(split, Seat((2,)))
    >>> there.bytes_of(8.0).tolist(), back.bytes_of(8.0).tolist()
    ([8.0, 8.0], [4.0, 4.0])
    """
    columns = source.degree if source.manner is Manner.COLUMNS else 1
    moved = _moved(reader, source, columns * (reader.degree if reader.manner is Manner.TENSOR else 1))
    place = {server: at for at, server in enumerate(source.servers)}
    # In the order of the way there: by the server of the source, then by that of the reader.
    order = np.argsort([place[server] for server in moved.dst.tolist()], kind="stable")
    return Parts(moved.src[order], moved.dst[order], moved.count[order], moved.of)


def _moved(has: Seat, needs: Seat, parts: int) -> Parts:
    """From servers that have a tensor to those that need it, `parts` of them sending a part each of what they share."""
    grains = lcm(has.degree if has.manner.parts_samples else 1, needs.degree if needs.manner.parts_samples else 1)
    has_from, has_to = _grains(has, grains)
    needs_from, needs_to = _grains(needs, grains)
    shared = np.minimum(has_to[:, None], needs_to) - np.maximum(has_from[:, None], needs_from)
    ours, theirs = np.array(has.servers, np.int32), np.array(needs.servers, np.int32)
    elsewhere = ours[:, None] != theirs
    if has.manner is Manner.TENSOR:
        elsewhere &= ~np.isin(theirs, ours)
    a, b = np.nonzero((shared > 0) & elsewhere)
    return Parts(ours[a], theirs[b], shared[a, b], grains * parts)


def _grains(seat: Seat, grains: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First grain of the batch that each server has, and the one behind its last."""
    if not seat.manner.parts_samples:
        return np.zeros(seat.degree, np.int64), np.full(seat.degree, grains, np.int64)
    each = grains // seat.degree
    first = np.arange(seat.degree, dtype=np.int64) * each
    return first, first + each
