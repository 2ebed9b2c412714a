"""Where to cut a candidate: from several starts, layer by layer to wherever its replay is shortest.

A start is the even cut, the one with as many blocks in every piece, and, where every stage holds one piece, the one
whose slowest stage is fastest once each recomputes what it must to fit. From there, layers are moved from piece to
piece as long as the replay of the step gets shorter: next to each other, or through all pieces between two. As long as
nothing fits, they are moved to wherever the fullest GPU gets less.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.planner._rows_kernel import WRITTEN, ahead_of
from ropewalk.planner.columns import Column
from ropewalk.planner.layers import Held, Seconds
from ropewalk.planner.sized import state_bytes_of
from ropewalk.planner.tailored import Cuts, Tailor
from ropewalk.strategy.memory import usable_bytes
from ropewalk.strategy.recompute import RECOMPUTE_OF_LAYERS

FULL = RECOMPUTE_OF_LAYERS.index("full")
MOST_MOVES = 128
"""Cuts that are looked at in a round, fewer where replays are long: at most so many passes, and 16 cuts."""
MOST_PASSES = 100_000
AS_FEW = 8
"""Where there are as many cuts as in so many rounds at most, all of them are looked at."""
MOST_ROUNDS = 24
FASTER = 1 - 1e-6


def best_cuts(tailor: Tailor, *, alike: bool, many: int = 1) -> Cuts:
    """The best cut of a candidate that was found; where cuts are few, the so `many` best of all, best first.

    What does not fit is infinite. `alike`: all pieces recompute as many blocks.
    """
    layers = tailor.priced.kernels.model.held.shape[1]
    passes = 2 * tailor.pieces * int(tailor.row[Column.MICRO_BATCHES])
    most = min(MOST_MOVES, max(16, MOST_PASSES // passes))
    few = comb(layers - 1, tailor.pieces - 1) <= AS_FEW * most
    found = tailor.cut(every_cut(layers, tailor.pieces) if few else starts(tailor), alike=alike)
    if few:
        return found.only(np.argsort(found.rank, kind="stable")[:many])
    best = found.only(np.array([found.best]))
    for _ in range(MOST_ROUNDS):
        around = moves(best.firsts[0], layers, most)
        if not len(around):
            break
        found = tailor.cut(around, alike=alike)
        if found.rank[found.best] >= best.rank[0] * FASTER:
            break
        best = found.only(np.array([found.best]))
    return best


def every_cut(layers: int, pieces: int) -> Ints:
    """All cuts of so many layers.

    >>> every_cut(4, 2).tolist()
    [[0, 1], [0, 2], [0, 3]]
    """
    return np.array([(0, *cut) for cut in combinations(range(1, layers), pieces - 1)], np.int64)


def moves(firsts: Ints, layers: int, most: int = MOST_MOVES) -> Ints:
    """Cuts that differ by one layer, `most` of them: borders between two pieces are all one layer earlier, or later.

    >>> moves(np.array([0, 2]), 4).tolist()
    [[0, 1], [0, 3]]
    """
    pieces = len(firsts)
    pairs = [(first, first + length) for length in range(1, pieces) for first in range(1, pieces + 1 - length)]
    found = []
    for first, last in pairs[: most // 2]:
        for way in (-1, 1):
            moved = firsts.copy()
            moved[first:last] += way
            if (np.diff(moved, append=layers) > 0).all():
                found.append(moved)
    return np.array(found, np.int64).reshape(-1, pieces)


def starts(tailor: Tailor) -> Ints:
    """Cuts to begin with."""
    found = [tailor.even]
    held = tailor.priced.kernels.model.held[tailor.row[Column.SPLITTING]]
    blocks = np.flatnonzero(held[:, Held.BLOCK] > 0)
    if len(blocks) >= tailor.pieces:
        each = np.array_split(blocks, tailor.pieces)
        found.append((0, *(int(some[0]) for some in each[1:])))
    if tailor.row[Column.PIECES_EACH] == 1:
        fitted = fitted_cut(tailor)
        found += [fitted] if fitted is not None else []
    return np.array(list(dict.fromkeys(found)), np.int64)


def fitted_cut(tailor: Tailor) -> tuple[int, ...] | None:
    """The cut whose slowest stage is fastest, with the blocks that each stage must recompute to fit; None: none fits.

    By dynamic programming over stages, with memory and seconds as sums over layers.
    """
    row, one = tailor.row, tailor.priced.kernels
    held, seconds = one.model.held[row[Column.SPLITTING]], one.model.seconds[row[Column.SPLITTING]]
    kind, layers, stages = int(row[Column.RECOMPUTE]), len(held), int(row[Column.STAGES])
    work = _sums(seconds[:, [Seconds.FORWARD, Seconds.BACKWARD, Seconds.AGAIN + kind]].sum(1))
    states, kept = _sums(state_bytes_of(row, one.settings, held)), _sums(held[:, Held.KEPT + kind])
    blocks = held[:, Held.BLOCK] > 0
    saved = float((held[blocks, Held.KEPT + kind] - held[blocks, Held.KEPT + FULL]).mean())
    longer = float((seconds[blocks, Seconds.AGAIN + FULL] - seconds[blocks, Seconds.AGAIN + kind]).mean())
    many, room = _sums(blocks.astype(np.float64)), usable_bytes(tailor.prices.room) - held[:, Held.WORKING + kind].max()
    best, came_from = np.where(np.arange(layers + 1) == 0, 0.0, np.inf), np.zeros((stages, layers + 1), np.int64)
    for stage in range(stages):
        ahead = _ahead(row, stage)
        short = states + ahead * kept - room
        # Where recomputing saves nothing, what is too large stays so.
        again = np.ceil(np.maximum(short, 0.0) / max(ahead * saved, 1e-9))
        fits = np.isfinite(work) & (again <= many)
        cost = np.where(fits, work + np.where(fits, again, 0.0) * longer, np.inf)
        slowest = np.maximum(best[:, None], cost)
        came_from[stage] = slowest.argmin(0)
        best = slowest.min(0)
    if not np.isfinite(best[layers]):
        return None
    firsts, end = [], layers
    for stage in range(stages - 1, -1, -1):
        end = int(came_from[stage, end])
        firsts.append(end)
    return tuple(firsts[::-1])


def _sums(values: Floats) -> Floats:
    """By first layer and layer behind the last: the sum over the layers between; infinite where there are none."""
    before = np.concatenate([[0.0], np.cumsum(values)])
    between = before[None, :] - before[:, None]
    return np.where(np.tri(len(before), dtype=np.bool_), np.inf, between)


def _ahead(row: Ints, stage: int) -> int:
    """Micro-batches that a stage keeps at its fullest moment."""
    stages, many, rule = int(row[Column.STAGES]), int(row[Column.MICRO_BATCHES]), int(row[Column.RULE])
    return min(stages - stage, many) if rule == WRITTEN else ahead_of(rule, stages, stage, many, 1)
