"""Split: large collectives cut into pieces, so that something more urgent can go between them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.errors import GraphError
from ropewalk.task.passes.gradients import Gradients

MOST_PIECES = 1_000_000
"""Launches beyond which a partition size is surely a slip of units."""


def split(gradients: Gradients, partition_bytes: float) -> Gradients:
    """Cut every launch into launches of at most so many bytes, which follow each other and share its priority."""
    if not partition_bytes > 0:
        raise GraphError(f"pieces of {partition_bytes:g} bytes are impossible: give a positive partition size")
    counts = np.maximum(1.0, np.ceil(gradients.launch_bytes / partition_bytes))
    if counts.sum() > MOST_PIECES:
        raise GraphError(
            f"pieces of {partition_bytes:g} bytes would make {counts.sum():.3g} launches: give a partition size of "
            f"{float(gradients.launch_bytes.sum()) / MOST_PIECES:.3g} bytes or more"
        )
    rows = [
        # Lots are cut alike on all lanes: the k-th launches of a lot stay together.
        (int(gradients.lot[number]), which, number, int(shard), size)
        for number, (begin, end) in enumerate(_ranges(gradients))
        for which, shard, size in _cut(
            gradients.shard[begin:end], gradients.piece_bytes[begin:end], int(counts[number]), partition_bytes
        )
    ]
    rows.sort(key=lambda row: row[:3])
    key = np.array([row[:3] for row in rows], np.int64)
    new_launch = np.concatenate([[True], (np.diff(key, axis=0) != 0).any(axis=1)])
    new_lot = np.concatenate([[True], (np.diff(key[:, :2], axis=0) != 0).any(axis=1)])
    cut = replace(
        gradients,
        shard=np.array([row[3] for row in rows], np.int64),
        piece_bytes=np.array([row[4] for row in rows], np.float64),
        launch=np.cumsum(new_launch) - 1,
        lot=(np.cumsum(new_lot) - 1)[new_launch],
        priority=gradients.priority[key[new_launch, 2]],
        bucket_bytes=0.0,
    )
    cut.check()
    return cut


def _ranges(gradients: Gradients) -> list[tuple[int, int]]:
    edges = np.searchsorted(gradients.launch, np.arange(gradients.launches + 1)).tolist()
    return list(pairwise(edges))


def _cut(shards: Ints, sizes: Floats, count: int, partition_bytes: float) -> list[tuple[int, int, float]]:
    """Rows (launch, shard, bytes): one buffer with shards behind each other, cut every so many bytes."""
    found = []
    end = 0.0
    for shard, size in zip(shards.tolist(), sizes.tolist(), strict=True):
        begin, end = end, end + size
        first = min(count - 1, int(begin / partition_bytes))
        last = min(count - 1, max(first, int(np.ceil(end / partition_bytes)) - 1))
        left = size
        for which in range(first, last):
            piece = min(left, (which + 1) * partition_bytes - max(begin, which * partition_bytes))
            found.append((which, shard, piece))
            left -= piece
        found.append((last, shard, left))
    return found
