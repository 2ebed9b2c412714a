"""Rounds side by side and back to front: the two ways in which collectives are made from smaller ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.program import Chunks, Pattern, Round

Rounds = list[Round]


def side_by_side(lanes: Sequence[Rounds], chunks: int) -> Rounds:
    """Run independent rounds at the same time, each list in a lane of its own and on `chunks` chunks of its own.

    Lane l works on chunks l*chunks … (l+1)*chunks - 1 of the result. Rounds that put the same patterns side by side
    share the joint pattern.
    """
    if len(lanes) == 1:
        return lanes[0]
    joint: dict[tuple[Pattern | None, ...], Pattern] = {}
    rounds = []
    for parts in zip_longest(*lanes):
        key = tuple(None if part is None else part.pattern for part in parts)
        if key not in joint:
            joint[key] = _joined_patterns(key)
        carried = tuple((lane * chunks, part.chunks) for lane, part in enumerate(parts) if part is not None)
        rounds.append(Round(joint[key], partial(_joined_chunks, carried)))
    return rounds


def _joined_patterns(parts: tuple[Pattern | None, ...]) -> Pattern:
    present = [(lane, part) for lane, part in enumerate(parts) if part is not None]
    return Pattern(
        src=np.concatenate([part.src for _, part in present]),
        dst=np.concatenate([part.dst for _, part in present]),
        chunks=np.concatenate([part.chunks for _, part in present]),
        reduces=np.concatenate([part.reduces for _, part in present]),
        lane=np.concatenate([np.full(part.sends, lane, np.int32) for lane, part in present]),
    )


def _joined_chunks(parts: tuple[tuple[int, Chunks], ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    carried, ids = [], []
    for first, chunks in parts:
        start, own = chunks()
        carried.append(np.diff(start))
        ids.append(own + first)
    return np.concatenate([[0], np.cumsum(np.concatenate(carried))]), np.concatenate(ids)


def mirrored(rounds: Rounds) -> Rounds:
    """Play rounds backwards with every arrow turned round, overwriting instead of adding.

    Where each rank gave every partial sum away once, this hands the finished sums back along the same arrows: the
    mirror image of a reduce-scatter is its all-gather, that of a reduce is a broadcast.
    """
    turned: dict[Pattern, Pattern] = {}
    for step in rounds:
        there = step.pattern
        if there not in turned:
            turned[there] = Pattern(there.dst, there.src, there.chunks, np.zeros(there.sends, np.bool_), there.lane)
    return [Round(turned[step.pattern], step.chunks) for step in reversed(rounds)]
