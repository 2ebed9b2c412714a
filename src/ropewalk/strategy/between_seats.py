"""What moves between two layers that sit on different servers: the overlap of what one has and the other needs.

Samples lie in contiguous, equal parts in the order of a seat's servers. A layer by samples has its part and needs its
part; a pinned layer has and needs the whole batch; a layer cut by outputs has a part of the columns of every sample
and needs whole samples. On the way back the gradient of what was received returns to where it came from: where the
reader is cut, each of its servers has a summand of all of it, so the bytes are those of the way there in every case.
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
    columns = source.degree if source.manner is Manner.TENSOR else 1
    grains = lcm(
        source.degree if source.manner.parts_samples else 1, reader.degree if reader.manner.parts_samples else 1
    )
    has_from, has_to = _grains(source, grains)
    needs_from, needs_to = _grains(reader, grains)
    shared = np.minimum(has_to[:, None], needs_to) - np.maximum(has_from[:, None], needs_from)
    ours, theirs = np.array(source.servers, np.int32), np.array(reader.servers, np.int32)
    a, b = np.nonzero((shared > 0) & (ours[:, None] != theirs))
    return Parts(ours[a], theirs[b], shared[a, b], grains * columns)


def _grains(seat: Seat, grains: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First grain of the batch that each server has, and the one behind its last."""
    if not seat.manner.parts_samples:
        return np.zeros(seat.degree, np.int64), np.full(seat.degree, grains, np.int64)
    each = grains // seat.degree
    first = np.arange(seat.degree, dtype=np.int64) * each
    return first, first + each
