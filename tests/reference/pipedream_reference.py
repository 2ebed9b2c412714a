"""PipeDream's published recurrence (optimizer_graph_hierarchical.py), loop by loop, for one or more levels.

`before[j]` are the states that state j contains: a stage may only follow one that ends behind such a state.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ropewalk.pipeline.pipedream import Division, Level
from ropewalk.pipeline.released import States

Cell = tuple[float, tuple[int, int] | None, int]


def pipedream_reference(states: States, levels: Sequence[Level]) -> tuple[float, tuple[Division, ...]]:
    """The time of the slowest stage, and the stages."""
    profile = states.profile
    elapsed = profile.forward_s + profile.backward_s
    count = profile.states
    seconds = {(i, j): float(elapsed[j + 1] - elapsed[i]) for i in range(count) for j in range(i, count)}
    before = [np.flatnonzero(states.contains[:, j]).tolist() for j in range(count)]
    tables = []
    inner = 1
    for number, level in enumerate(levels):
        tables.append(_level(states, seconds, before, level, inner, last=number == len(levels) - 1))
        seconds = {key: tables[-1][(*key, level.count - 1)][0] for key in seconds}
        inner = level.count
    found = [Division(0, count, ())]
    for level, table in zip(reversed(levels), reversed(tables), strict=True):
        found = [part for whole in found for part in _stages(whole, level.count, table)]
    return seconds[0, count - 1], tuple(found)


def _level(
    states: States,
    seconds: dict[tuple[int, int], float],
    before: list[list[int]],
    level: Level,
    inner: int,
    *,
    last: bool,
) -> dict[tuple[int, int, int], Cell]:
    weights, sent = states.profile.parameter_bytes, states.profile.crossing_bytes
    count, bandwidth = states.profile.states, level.bandwidth
    best: dict[tuple[int, int, int], Cell] = {}
    for (i, j), alone in seconds.items():
        for m in range(level.count):
            summed = 4.0 * m * (weights[j + 1] - weights[i]) / (bandwidth * (m + 1)) / inner
            best[i, j, m] = float((alone + summed) / (m + 1)), None, m + 1
    for i in range(1 if last else count):
        for m in range(1, level.count):
            for j in range(i + 1, count):
                for k in (k for k in before[j] if k >= i):
                    for own in range(1, m + 1):
                        summed = 4.0 * (own - 1) * (weights[j + 1] - weights[k + 1]) / (bandwidth * own)
                        value = max(best[i, k, m - own][0], (seconds[k + 1, j] + summed) / own)
                        value = max(value, 2.0 * sent[k] / (bandwidth * own))
                        if j < count - 1:
                            value = max(value, 2.0 * sent[j] / (bandwidth * own))
                        if value < best[i, j, m][0]:
                            best[i, j, m] = float(value), (k, m - own), own
    return best


def _stages(whole: Division, machines: int, table: dict[tuple[int, int, int], Cell]) -> list[Division]:
    end, left = whole.end, machines - 1
    found: list[Division] = []
    while True:
        _, split, own = table[whole.first, end - 1, left]
        first = whole.first if split is None else split[0] + 1
        found.append(Division(first, end, (own, *whole.replicas)))
        if split is None:
            return found[::-1]
        end, left = first, split[1]
