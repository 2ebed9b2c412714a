"""One all-reduce over several rings: each directed ring carries an equal part of the bytes.

A group of k with R directed rings cuts the buffer into k*R chunks. In 2(k-1) rounds a link passes on 2(k-1) chunks, so
it carries 2(k-1)/k * S/R bytes. More rings divide the bytes, never the rounds: the 2(k-1) latencies stay.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ProgramError


def ring_bytes_per_link(size_bytes: int, group_size: int, rings: int) -> int:
    """Whole bytes that a link of each of `rings` directed rings carries: 2(k-1)S/(kR), a part of a byte left off.

    >>> ring_bytes_per_link(1_359_273_988, group_size=128, rings=8)
    337163664
    """
    _check(size_bytes, group_size, rings)
    return 2 * (group_size - 1) * size_bytes // (group_size * rings)


def ring_link_bytes(size_bytes: int, group_size: int, rings: int) -> NDArray[np.int64]:
    """Bytes on every link, exact where the buffer does not divide: [r, i] is what place i of ring r sends on.

    Chunks are as equal as whole bytes allow, the larger ones first. Place i sends all chunks of its ring in both halves
    of the all-reduce, but the one that it ends up summing and, coming back, the one behind it. Together the links carry
    2(k-1)S bytes, to the byte.

    >>> ring_link_bytes(10, group_size=4, rings=2).tolist()
    [[8, 9, 10, 9], [6, 6, 6, 6]]
    """
    _check(size_bytes, group_size, rings)
    chunks = group_size * rings
    chunk = size_bytes // chunks + (np.arange(chunks) < size_bytes % chunks)
    chunk = chunk.reshape(rings, group_size)
    return np.asarray(2 * chunk.sum(axis=1, keepdims=True) - chunk - np.roll(chunk, -1, axis=1), np.int64)


def _check(size_bytes: int, group_size: int, rings: int) -> None:
    if size_bytes < 0 or group_size < 2 or rings < 1:
        raise ProgramError(
            f"{size_bytes} bytes over {rings} rings of {group_size}: "
            "give bytes of 0 or more, at least one ring and at least two members"
        )
