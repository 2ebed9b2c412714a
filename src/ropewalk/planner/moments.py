"""The moments of a step at which a stage may be fullest, wherever its pieces are cut.

Between passes, a stage keeps the activations of some micro-batches of each of its pieces. Which moment is the fullest
depends on how large the pieces are; one at which it keeps no more of any piece than at another is never the only one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.planner._rows_kernel import INTERLEAVED, WRITTEN, ahead_of, entry
from ropewalk.planner.columns import Column
from ropewalk.planner.written import WrittenRows
from ropewalk.timetable.passes import Pass


class Moments(NamedTuple):
    """Moments of all stages as rows; columns of pieces."""

    stage: Ints
    kept: Ints
    """Micro-batches that ran forward and not yet backward."""
    opened: Ints
    """Micro-batches whose gradients of weights were put off: with them stays all that was computed again."""
    running: Ints
    """1 for the piece whose backward pass runs."""


def moments_of(row: Ints, written: WrittenRows) -> Moments:
    """Moments of every stage of a candidate, of which none is below another one.

    Rows of a timetable end as empty as they began. What is kept by a rule is fullest when the backward passes begin:
    that of one piece then, that of several while all of them come round twice.
    """
    stages, each = int(row[Column.STAGES]), int(row[Column.PIECES_EACH])
    found = [_of_stage(*_passes(row, written, stage), stages * each) for stage in range(stages)]
    stage = np.repeat(np.arange(len(found)), [len(one) for one in found])
    kept, opened, running = np.split(np.concatenate(found), 3, axis=1)
    return Moments(stage, kept, opened, running)


def _of_stage(kind: Ints, piece: Ints, pieces: int) -> Ints:
    """By moment, what is kept, opened and running of each piece."""
    own, of_kind = np.unique(piece), kind[:, None] == PASSES
    ahead, back, turned, late = (((piece[:, None] == own) & of_kind[:, [one]]).astype(np.int64) for one in range(4))
    # While a backward pass runs, what it will let go is still there.
    kept, opened = np.cumsum(ahead - back - turned, axis=0) + back, np.cumsum(turned - late, axis=0)
    found = undominated(np.hstack([kept, opened, back])).reshape(-1, 3, len(own))
    everywhere = np.zeros((len(found), 3, pieces), np.int64)
    everywhere[:, :, own] = found
    return everywhere.reshape(len(found), 3 * pieces)


PASSES = np.array([int(kind) for kind in (Pass.FORWARD, Pass.BACKWARD, Pass.INPUT, Pass.WEIGHT)])


def undominated(rows: Ints) -> Ints:
    """Rows that are not below another one in every column.

    >>> undominated(np.array([[1, 2], [2, 2], [3, 0], [2, 2]])).tolist()
    [[2, 2], [3, 0]]
    """
    left = np.unique(rows, axis=0)
    below = (left[:, None, :] <= left[None, :, :]).all(2)
    return np.asarray(left[below.sum(1) == 1])


def _passes(row: Ints, written: WrittenRows, stage: int) -> tuple[Ints, Ints]:
    """Kinds and pieces of the passes of a stage, all those that a moment may follow."""
    stages, many, each, rule = (int(row[Column[name]]) for name in ("STAGES", "MICRO_BATCHES", "PIECES_EACH", "RULE"))
    if rule == WRITTEN:
        at = int(written.row_start[row[Column.WRITTEN]]) + stage
        passes = slice(int(written.row[at]), int(written.row[at + 1]))
        return written.kind[passes].astype(np.int64), written.piece[passes].astype(np.int64)
    ahead = ahead_of(rule, stages, stage, many, each)
    if rule != INTERLEAVED:
        return np.append(np.zeros(ahead, np.int64), int(Pass.BACKWARD)), np.full(ahead + 1, stage)
    size = many // max(1, many // stages)
    some = range(min(2 * many * each, ahead + 4 * size * each))
    found = np.array([entry(rule, stages, stage, many, each, ahead, at)[:2] for at in some], np.int64)
    return found[:, 0], found[:, 1]
