"""Timetables that follow no simple rule, written down in columns for the kernels."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.timetable.passes import Pass
from ropewalk.timetable.table import Timetable

Item = TypeVar("Item", bound=np.generic)


class WrittenRows(NamedTuple):
    """Rows of all timetables one after the other."""

    row_start: Ints
    """By timetable: where its rows begin in `row`."""
    row: Ints
    """By row: its first pass; one number more at the end of every timetable."""
    kind: NDArray[np.int8]
    piece: NDArray[np.int32]
    micro_batch: NDArray[np.int32]
    last: NDArray[np.bool_]
    """Are the gradients of a piece complete behind this pass?"""
    home_start: Ints
    home: NDArray[np.int32]
    """By timetable and piece: the stage that holds it."""
    whole: Ints
    """By timetable and piece: backward passes that do not put gradients of weights off."""
    paired: NDArray[np.bool_]
    """Does this pass run beside the next one?"""
    side_by_side: NDArray[np.bool_]
    """By timetable: are there such passes?"""


def written_rows(tables: list[Timetable]) -> WrittenRows:
    """The columns of these timetables."""
    before = np.cumsum([0, *(table.passes for table in tables)])
    rows = [table.row_start + first for table, first in zip(tables, before, strict=False)]
    return WrittenRows(
        np.cumsum([0, *map(len, rows)])[:-1].astype(np.int64),
        _joined(rows, np.int64),
        _joined([table.kind for table in tables], np.int8),
        _joined([table.piece for table in tables], np.int32),
        _joined([table.micro_batch for table in tables], np.int32),
        _joined([_last(table) for table in tables], np.bool_),
        np.cumsum([0, *(len(table.device_of_piece) for table in tables)])[:-1].astype(np.int64),
        _joined([table.device_of_piece for table in tables], np.int32),
        _joined([_whole(table) for table in tables], np.int64),
        _joined([table.paired for table in tables], np.bool_),
        np.array([table.paired.any() for table in tables], np.bool_),
    )


def _whole(table: Timetable) -> Ints:
    return np.bincount(table.piece[table.kind == Pass.BACKWARD], minlength=len(table.device_of_piece))


def _last(table: Timetable) -> NDArray[np.bool_]:
    """Passes behind which the gradients of a piece are complete: the last of its row that make some."""
    done = np.flatnonzero(np.isin(table.kind, [int(kind) for kind in (Pass.BACKWARD, Pass.WEIGHT)]))
    last = np.zeros(table.passes, np.bool_)
    _, back = np.unique(table.piece[done][::-1], return_index=True)
    last[done[len(done) - 1 - back]] = True
    return last


def _joined(columns: list[NDArray[Item]], dtype: type[Item]) -> NDArray[Item]:
    return np.concatenate([np.zeros(0, dtype), *columns]).astype(dtype)
