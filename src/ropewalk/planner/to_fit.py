"""How many blocks a pipeline must recompute at least to fit into memory, wherever it is cut.

Layers are taken for divisible. Each stage holds so many blocks for nothing, and every further one by recomputing some
of its own, at a rate that is lowest on the stages that keep most; no stage may hold more than it could run through in
the time to beat.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.planner._rows_kernel import INTERLEAVED, WRITTEN, ahead_of
from ropewalk.planner.columns import Column
from ropewalk.planner.layers import Held, LaunchColumn, Seconds
from ropewalk.planner.pricing import Priced
from ropewalk.planner.sized import state_bytes_of
from ropewalk.planner.written import WrittenRows
from ropewalk.strategy.recompute import RECOMPUTE_OF_LAYERS
from ropewalk.timetable.passes import Pass

TINY = 1e-12
"""Of what takes nothing there is room for very much."""
ENDS = [int(kind) for kind in (Pass.BACKWARD, Pass.WEIGHT)]
"""Passes after which nothing of a micro-batch is kept any more."""
NONE, FULL = RECOMPUTE_OF_LAYERS.index("none"), RECOMPUTE_OF_LAYERS.index("full")


@dataclass(frozen=True)
class Blocks:
    """What one of the layers that repeat is on a rank, at least."""

    many: int
    state_bytes: float
    kept_bytes: float
    """For the backward pass of a micro-batch."""
    saved_bytes: float
    """Of these, if it is recomputed, at most."""
    seconds: float
    """Of both passes of a micro-batch on the GPU."""
    again_gpu_s: float = 0.0
    """What recomputing it adds on the GPU, and on its host."""
    again_host_s: float = 0.0


def least_again(block: Blocks, kept: Ints, room: float, longest_s: Floats) -> float:
    """Blocks that must be recomputed at least; infinite where nothing fits.

    Stages keep so many micro-batches, and have so many seconds at most for their part of each.

    >>> small = Blocks(many=12, state_bytes=0.0, kept_bytes=1.0, saved_bytes=0.5, seconds=1.0, again_gpu_s=0.3)
    >>> [least_again(small, np.array([2, 1]), room, np.full(2, 100.0)) for room in (8.0, 6.0, 3.0)]
    [0.0, 6.0, inf]
    """
    each = np.maximum(block.state_bytes + kept * block.kept_bytes, TINY)
    by_memory, by_time = room / each, longest_s / max(block.seconds, TINY)
    left = block.many - np.minimum(by_memory, by_time).sum()
    if left <= 0:
        return 0.0
    saved = kept * block.saved_bytes
    if not (saved > 0).all():
        return float("inf")
    rate = each / saved
    slower = block.again_gpu_s * rate
    most = np.minimum(room / (each - saved), (longest_s + slower * by_memory) / (max(block.seconds, TINY) + slower))
    more = np.where(by_memory < by_time, np.maximum(most - by_memory, 0.0), 0.0)
    again = 0.0
    for stage in np.argsort(rate, kind="stable").tolist():
        taken = min(left, more[stage])
        again, left = again + taken * rate[stage], left - taken
    return float(again) if left <= block.many * 1e-9 else float("inf")


def kept_at_once(row: Ints, written: WrittenRows) -> Ints:
    """By stage, micro-batches whose activations it keeps at its fullest moment, at least, of each of its pieces."""
    stages, many, each, rule = (int(row[Column[name]]) for name in ("STAGES", "MICRO_BATCHES", "PIECES_EACH", "RULE"))
    if rule == WRITTEN:
        first = int(written.row_start[row[Column.WRITTEN]])
        return np.array([_most_kept(written, first + stage) for stage in range(stages)], np.int64)
    ahead = np.array([ahead_of(rule, stages, stage, many, each) for stage in range(stages)])
    if rule != INTERLEAVED:
        return ahead
    size = many // max(1, many // stages)
    groups, rest = np.divmod(np.minimum(ahead + 1, many * each), size * each)
    last: Ints = groups * size + np.clip(rest - (each - 1) * size, 0, size)
    return np.maximum(last, 1)


def _most_kept(written: WrittenRows, row: int) -> int:
    """The most micro-batches that a row keeps of each of its pieces at the same time, at least one."""
    passes = slice(int(written.row[row]), int(written.row[row + 1]))
    kind, piece = written.kind[passes], written.piece[passes]
    change = (kind == Pass.FORWARD).astype(np.int64) - np.isin(kind, ENDS)
    kept = [np.cumsum(np.where(piece == one, change, 0)) for one in np.unique(piece)]
    return max(1, int(np.min(kept, axis=0).max(initial=1)))


def block_of(priced: Priced, row: Ints) -> Blocks:
    """The block of a candidate."""
    split, kind, one = row[Column.SPLITTING], int(row[Column.RECOMPUTE]), priced.kernels
    blocks = one.model.held[split, :, Held.BLOCK] > 0
    held, seconds, launch = (table[split, blocks] for table in (one.model.held, one.model.seconds, one.model.launch))
    kept = held[:, Held.KEPT + kind]
    may = kind == NONE and priced.candidates.may_recompute
    return Blocks(
        len(held),
        float(state_bytes_of(row, one.settings, held).min()),
        float(kept.min()),
        float((kept - held[:, Held.KEPT + FULL]).max()) if may else 0.0,
        float(seconds[:, [Seconds.FORWARD, Seconds.BACKWARD, Seconds.AGAIN + kind]].sum(1).min()),
        float(launch[:, LaunchColumn.again(FULL) + LaunchColumn.GPU].min()),
        float(launch[:, LaunchColumn.again(FULL) + LaunchColumn.HOST].min()),
    )
