"""Ranks in the few groups that a chart can show: those that behave alike, pipeline stages, blocks of neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.sim.step import StepRun, StepStatistics
from ropewalk.strategy.placement import IDLE, stage_name

MOST_ROWS = 32
ALIKE = 1e-7
"""Part of the step by which times of ranks may differ that are alike."""


@dataclass(frozen=True, eq=False)
class RankGroups:
    """A partition of the ranks, in the order in which it is shown."""

    sort: str
    """What a group is, after `by`: stage, gpu, block of gpus."""
    names: tuple[str, ...]
    of_rank: Ints
    stage_of_rank: Ints | None = None
    """Where there is a pipeline."""
    noun: str = "gpu"
    """What a rank is."""

    @property
    def size(self) -> Ints:
        return np.bincount(self.of_rank, minlength=len(self.names))

    @property
    def nouns(self) -> str:
        """Several ranks, in a sentence."""
        return "GPUs" if self.noun == "gpu" else f"{self.noun}s"

    def joined(self, values: NDArray[np.float64]) -> RankGroups:
        """Groups of ranks that are alike with equal `values` (a row for each) as one, named after its first rank."""
        if self.sort != self.noun:
            return self
        first = np.unique(self.of_rank, return_index=True)[1]
        stage = np.zeros(len(first)) if self.stage_of_rank is None else self.stage_of_rank[first]
        _, leads, same = np.unique(np.column_stack([stage, values]), axis=0, return_index=True, return_inverse=True)
        place = np.empty(len(leads), np.int64)
        place[np.argsort(leads)] = np.arange(len(leads))
        found = replace(self, of_rank=place[same.reshape(-1)][self.of_rank])
        return replace(found, names=tuple(found.called(rank) for rank in first[np.sort(leads)].tolist()))

    def called(self, rank: int) -> str:
        """The name of a rank that stands for its group."""
        stage = "" if self.stage_of_rank is None else f"{stage_name(int(self.stage_of_rank[rank]))} · "
        alike = int(self.size[self.of_rank[rank]]) if self.sort == self.noun else 1
        return f"{stage}{self.noun} {rank}" + (f" (×{alike})" if alike > 1 else "")

    def mean(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean over the ranks of each group."""
        return np.bincount(self.of_rank, seconds, minlength=len(self.names)) / np.maximum(self.size, 1)


def by_stage(stage_of_rank: Ints) -> RankGroups:
    """A group for each stage, and one behind them for ranks that have nothing to do.

    >>> by_stage(np.array([0, -1, 1])).names
    ('stage 0', 'stage 1', 'idle')
    """
    stages, idle = int(stage_of_rank.max(initial=0)) + 1, stage_of_rank == IDLE
    names = tuple(stage_name(stage) for stage in (*range(stages), *([IDLE] if idle.any() else [])))
    return RankGroups("stage", names, np.where(idle, stages, stage_of_rank), stage_of_rank)


def one_per_stage(stage_of_rank: Ints) -> RankGroups:
    """A group for each stage; without a pipeline all ranks are one, and nobody speaks of stages.

    >>> one_per_stage(np.array([0, 0])).called(1), one_per_stage(np.array([0, 1])).called(1)
    ('gpu 1', 'stage 1 · gpu 1')
    """
    groups = by_stage(stage_of_rank)
    return groups if len(groups.names) > 1 else replace(groups, stage_of_rank=None)


def by_likeness(
    run: StepRun, found: StepStatistics, stage_of_rank: Ints | None = None, noun: str = "gpu"
) -> RankGroups:
    """Ranks that spend their time in the same way at the same moments are one group, named after its first."""
    occupied, ranks = run.occupied, run.step.ranks
    times = found.times
    moments = [
        np.bincount(occupied.rank, moment, minlength=ranks) / np.maximum(np.bincount(occupied.rank, minlength=ranks), 1)
        for moment in (occupied.start, occupied.end)
    ]
    grid = ALIKE * max(found.step_time_s, 1e-300)
    stage = np.zeros(ranks) if stage_of_rank is None else stage_of_rank
    key = np.column_stack(
        [stage, *(np.rint(column / grid) for column in (times.compute_s, times.exposed_communication_s, *moments))]
    )
    _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
    place = np.empty(len(first), np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    staged = stage_of_rank if stage_of_rank is not None and stage_of_rank.max(initial=0) > 0 else None
    groups = RankGroups(noun, ("",) * len(first), place[group.reshape(-1)], staged, noun)
    return replace(groups, names=tuple(groups.called(rank) for rank in np.sort(first).tolist()))


def by_block(ranks: int, noun: str = "gpu", most: int = MOST_ROWS) -> RankGroups:
    """Blocks of neighbours.

    >>> by_block(128).names[:2]
    ('gpus 0–3', 'gpus 4–7')
    """
    block = -(-ranks // most)
    firsts = range(0, ranks, block)
    names = tuple(f"{noun}s {first}–{min(first + block, ranks) - 1}" for first in firsts)
    return RankGroups(f"block of {noun}s", names, np.arange(ranks) // block, noun=noun)


def rank_groups(
    run: StepRun, found: StepStatistics, stage_of_rank: Ints | None = None, noun: str = "gpu"
) -> tuple[RankGroups, ...]:
    """The partitions worth looking at, the most telling one first."""
    staged = () if stage_of_rank is None or stage_of_rank.max(initial=0) == 0 else (by_stage(stage_of_rank),)
    alike = by_likeness(run, found, stage_of_rank, noun)
    single = alike if len(alike.names) <= MOST_ROWS else by_block(run.step.ranks, noun)
    if staged and len(single.names) == len(staged[0].names):
        return staged  # every stage is alike throughout: the second view would be the first one
    return (*staged, single)
