"""Pipelining: the buffer is cut into segments that follow each other along the same arrows, one round apart."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.lanes import Rounds
from ropewalk.collectives.program import Pattern, Round
from ropewalk.errors import ProgramError
from ropewalk.ragged import ranges


def pipelined(
    src: ArrayLike,
    dst: ArrayLike,
    first_round: ArrayLike,
    adds: ArrayLike,
    segments: int,
    *,
    lane: ArrayLike = 0,
    chunks: ArrayLike = 1,
    first_chunk: ArrayLike = 0,
) -> Rounds:
    """Arrow i carries segment s in round first_round[i] + s; the receiver adds or overwrites.

    A segment of arrow i is `chunks[i]` chunks that follow each other, those of segment 0 from `first_chunk[i]` on;
    where nothing else is said, segment s is chunk s. An arrow may begin one round after the arrows that feed it. Rounds
    in which the same arrows are busy share their pattern, so a long pipeline costs as many patterns as it takes to fill
    and drain.
    """
    if segments < 1:
        raise ProgramError(f"a pipeline of {segments} segments carries nothing: give at least 1")
    begins = np.asarray(first_round, np.int64)
    order = np.argsort(begins, kind="stable")
    begins = begins[order]

    def column(values: ArrayLike, dtype: type) -> NDArray[np.generic]:
        return np.broadcast_to(np.asarray(values, dtype), (len(order),))[order]

    every = Pattern(
        src=column(src, np.int32),  # type: ignore[arg-type]
        dst=column(dst, np.int32),  # type: ignore[arg-type]
        chunks=column(chunks, np.int64),  # type: ignore[arg-type]
        reduces=column(adds, np.bool_),  # type: ignore[arg-type]
        lane=column(lane, np.int32),  # type: ignore[arg-type]
    )
    first: Ints = column(first_chunk, np.int64)  # type: ignore[assignment]
    number = np.arange(int(begins[-1]) + segments)
    # Arrow i is busy in round t when begins[i] <= t < begins[i] + segments: a slice, as they are sorted.
    low = np.searchsorted(begins, number - segments, side="right")
    high = np.searchsorted(begins, number, side="right")
    patterns: dict[tuple[int, int], Pattern] = {}
    rounds = []
    for t, busy in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        now = slice(*busy)
        if busy not in patterns:
            patterns[busy] = Pattern(
                every.src[now], every.dst[now], every.chunks[now], every.reduces[now], every.lane[now]
            )
        rounds.append(Round(patterns[busy], partial(_segment_of_each, begins[now], every.chunks[now], first[now], t)))
    return rounds


def _segment_of_each(begins: Ints, chunks: Ints, first: Ints, t: int) -> tuple[Ints, Ints]:
    start = np.concatenate([[0], np.cumsum(chunks)])
    return start, ranges(first + (t - begins) * chunks, chunks)
