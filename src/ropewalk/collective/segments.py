"""Pipelining: the buffer is cut into segments that follow each other along the same arrows, one round apart."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk.collective.lanes import Rounds
from ropewalk.collective.program import Pattern, Round
from ropewalk.errors import ProgramError


def pipelined(src: ArrayLike, dst: ArrayLike, first_round: ArrayLike, adds: ArrayLike, segments: int) -> Rounds:
    """Arrow i carries segment s, which is chunk s, in round first_round[i] + s; the receiver adds or overwrites.

    An arrow therefore may begin one round after the arrows that feed it. Rounds in which the same arrows are busy
    share their pattern, so a long pipeline costs as many patterns as it takes to fill and drain.
    """
    if segments < 1:
        raise ProgramError(f"a pipeline of {segments} segments carries nothing: give at least 1")
    order = np.argsort(np.asarray(first_round), kind="stable")
    begins = np.asarray(first_round, np.int64)[order]
    tail, head, adding = np.asarray(src)[order], np.asarray(dst)[order], np.asarray(adds)[order]
    number = np.arange(int(begins[-1]) + segments)
    # Arrow i is busy in round t when begins[i] <= t < begins[i] + segments: a slice, as they are sorted.
    low = np.searchsorted(begins, number - segments, side="right")
    high = np.searchsorted(begins, number, side="right")
    patterns: dict[tuple[int, int], Pattern] = {}
    rounds = []
    for t, busy in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        if busy not in patterns:
            patterns[busy] = _slice(tail, head, adding, *busy)
        rounds.append(Round(patterns[busy], partial(_segment_of_each, begins[slice(*busy)], t)))
    return rounds


def _slice(src: NDArray[np.int64], dst: NDArray[np.int64], adds: NDArray[np.bool_], low: int, high: int) -> Pattern:
    count = high - low
    return Pattern(
        src=src[low:high].astype(np.int32),
        dst=dst[low:high].astype(np.int32),
        chunks=np.ones(count, np.int64),
        reduces=adds[low:high].astype(np.bool_),
        lane=np.zeros(count, np.int32),
    )


def _segment_of_each(begins: NDArray[np.int64], t: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.arange(len(begins) + 1), t - begins
