"""The arrows of all lanes of a forest in columns, as programs want them: at 1,024 hosts there are millions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.collectives.forest.lanes import Lane
from ropewalk.collectives.optimum.rational import common_unit
from ropewalk.errors import ProgramError

MOST_EQUAL_ARROWS = 1 << 24
"""Arrows that lanes of weight 1 may have: a gigabyte in columns."""


@dataclass(frozen=True, eq=False)
class LaneColumns:
    """Lane l has root `root[l]` and `weight[l]` chunks a segment; arrow i belongs to lane `lane[i]`."""

    root: Ints
    weight: Ints
    lane: Ints
    src: Ints
    dst: Ints
    first_round: Ints
    adds: NDArray[np.bool_]

    @property
    def lanes(self) -> int:
        return len(self.root)


def columns_of(lanes: Sequence[Lane]) -> LaneColumns:
    """Lanes in columns; weights are the smallest whole numbers in proportion to their rates."""
    unit = common_unit(lane.rate for lane in lanes)
    arrows = [arrow for lane in lanes for arrow in lane.arrows]
    return LaneColumns(
        root=np.array([lane.root for lane in lanes], np.int64),
        weight=np.array([int(lane.rate / unit) for lane in lanes], np.int64),
        lane=np.repeat(np.arange(len(lanes)), [len(lane.arrows) for lane in lanes]),
        src=np.array([arrow.src for arrow in arrows], np.int64),
        dst=np.array([arrow.dst for arrow in arrows], np.int64),
        first_round=np.array([arrow.first_round for arrow in arrows], np.int64),
        adds=np.array([arrow.adds for arrow in arrows], np.bool_),
    )


def in_equal_lanes(columns: LaneColumns) -> LaneColumns:
    """The same with lanes of weight 1, as many of each as its weight was; refused where that is too many."""
    sends = np.bincount(columns.lane, minlength=columns.lanes)
    arrows = int(sends @ columns.weight)
    if arrows > MOST_EQUAL_ARROWS:
        raise ProgramError(
            f"a forest of trees with such uneven rates has {arrows:.3g} arrows in equal lanes, more than the "
            f"{MOST_EQUAL_ARROWS} that fit: round its bandwidths, or keep lanes as they are"
        )
    copies = np.repeat(np.arange(columns.lanes), columns.weight)
    # Arrows stand lane by lane, so the arrows of a copy are a range of its lane's.
    first = np.cumsum(sends) - sends
    count = sends[copies]
    offset = np.cumsum(count) - count
    arrow = np.arange(int(count.sum())) + np.repeat(first[copies] - offset, count)
    return LaneColumns(
        root=columns.root[copies],
        weight=np.ones(len(copies), np.int64),
        lane=np.repeat(np.arange(len(copies)), count),
        src=columns.src[arrow],
        dst=columns.dst[arrow],
        first_round=columns.first_round[arrow],
        adds=columns.adds[arrow],
    )


def moved_columns(columns: LaneColumns, moved: Ints) -> LaneColumns:
    """The lanes of one root and their images, one set after the other; shift s takes vertex v to `moved[s, v]`."""
    shifts = len(moved)
    again = replace(
        columns,
        weight=np.tile(columns.weight, shifts),
        first_round=np.tile(columns.first_round, shifts),
        adds=np.tile(columns.adds, shifts),
    )
    return replace(
        again,
        root=moved[:, columns.root].ravel(),
        src=moved[:, columns.src].ravel(),
        dst=moved[:, columns.dst].ravel(),
        lane=(np.arange(shifts)[:, None] * columns.lanes + columns.lane).ravel(),
    )
