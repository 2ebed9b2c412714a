"""Bytes on the GPUs of candidates, and how many blocks they have to recompute to fit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Floats, Ints
from ropewalk.planner._memory_kernel import BYTES, memory_of_all
from ropewalk.planner.columns import Column, Setting
from ropewalk.planner.layers import Held
from ropewalk.planner.written import WrittenRows
from ropewalk.strategy.memory import FRAGMENTATION, WORKSPACE_BYTES


class Sized(NamedTuple):
    """What memory follows from."""

    held: Floats
    cuts: Ints
    again: Ints
    """Numbers of recomputed blocks by piece: a run of equal numbers for each, or those of single candidates."""
    written: WrittenRows
    settings: Floats

    @property
    def blocks(self) -> int:
        """Layers that repeat."""
        return int(self.held[0, :, Held.BLOCK].sum())

    def stages(self, rows: Ints) -> Floats:
        """By candidate and stage: parameters that a rank updates, tensors that hold them, bytes without lost room."""
        found = np.zeros((len(rows), int(rows[:, Column.STAGES].max(initial=1)), 3))
        memory_of_all(rows, self.held, self.cuts, self.again, self.written, self.settings, found)
        return found

    def most(self, rows: Ints) -> Floats:
        """Bytes of GPU memory at peak."""
        return total_of(self.stages(rows))


def total_of(stages: Floats) -> Floats:
    """Bytes on the fullest GPU of every candidate, with the workspace and what the allocator cannot use."""
    most: Floats = stages[:, :, BYTES].max(1, initial=0.0)
    return most * (1 + FRAGMENTATION) + WORKSPACE_BYTES


def equal_runs(blocks: int, pieces: int) -> Ints:
    """Numbers of recomputed blocks that are equal for all pieces: that of `n` begins at `n * pieces`."""
    return np.repeat(np.arange(blocks + 1), pieces)


def recompute_to_fit(rows: Ints, by_block: Ints, sized: Sized, width: int, room: float) -> tuple[Floats, Floats]:
    """Bytes on the fullest GPU of all candidates, and what every stage updates.

    Those that recompute block by block do so with as many at the head of every piece as it takes to fit, and no more:
    each costs time. One that fits without is another candidate, and stands for none.
    """
    stages = sized.stages(rows)
    total = total_of(stages)
    total[by_block[total[by_block] <= room]] = np.inf
    less, enough = np.zeros(len(rows), np.int64), np.full(len(rows), sized.blocks)
    rows[by_block, Column.AGAIN] = enough[by_block] * width
    left = by_block[np.isfinite(total[by_block])]
    total[left] = sized.most(rows[left])
    left = left[total[left] <= room]
    while len(left):
        middle = (less[left] + enough[left]) // 2
        rows[left, Column.AGAIN] = middle * width
        found = sized.most(rows[left])
        fit = found <= room
        enough[left[fit]], less[left[~fit]] = middle[fit], middle[~fit]
        total[left[fit]] = found[fit]
        rows[left, Column.AGAIN] = enough[left] * width
        left = left[enough[left] - less[left] > 1]
    return total, stages


def state_bytes_of(row: Ints, settings: Floats, held: Floats) -> Floats:
    """Bytes of weights, gradients and optimiser state of some layers of a candidate, each by itself, at least.

    Under ZeRO-2 and 3 as if nothing were gathered, and every layer divided evenly.
    """
    zero, replicas = int(row[Column.ZERO]), int(row[Column.REPLICAS])
    size = held[:, [Held.DENSE, Held.EXPERT, Held.TABLE]].sum(1)
    copies = int(row[Column.EXPERT_COPIES])
    shared = held[:, Held.DENSE] / replicas + held[:, Held.EXPERT] / copies + held[:, Held.TABLE]
    mine, weights, gradients = (shared if zero >= stage else size for stage in (1, 3, 2))
    frozen = held[:, Held.FROZEN] / (replicas if zero >= 3 else 1)
    weights = weights + frozen + held[:, Held.FROZEN_EXPERT] / (copies if zero >= 3 else 1)
    sizes = settings[[Setting.ELEMENT_BYTES, Setting.GRADIENT_BYTES, Setting.STATE_BYTES]]
    # Narrow copies come on top, and where they are the only ones, wide ones are not there.
    narrow = held[:, Held.NARROW] * min(0.0, float(settings[Setting.COPY_BYTES]))
    return np.asarray(weights * sizes[0] + narrow + gradients * sizes[1] + mine * sizes[2], np.float64)
