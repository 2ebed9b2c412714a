"""Rows of an integer program, gathered block by block: low <= sum of value times column <= high."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

Term = tuple[ArrayLike, ArrayLike, ArrayLike]
"""(row within the block, column, value) of every entry; the value may be one for all."""


class ConstraintRows:
    """Constraints over a fixed number of columns.

    >>> rows = ConstraintRows(3)
    >>> rows.add([1.0], [1.0], (np.zeros(3), np.arange(3), 1.0))
    >>> rows.constraint().A.toarray().tolist()
    [[1.0, 1.0, 1.0]]
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._entries: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
        self._low: list[NDArray[np.float64]] = []
        self._high: list[NDArray[np.float64]] = []
        self._count = 0

    def add(self, low: ArrayLike, high: ArrayLike, *terms: Term) -> None:
        """As many rows as there are limits."""
        least, most = np.broadcast_arrays(np.asarray(low, np.float64), np.asarray(high, np.float64))
        for row, column, value in terms:
            place = np.asarray(row, np.int64)
            values = np.broadcast_to(np.asarray(value, np.float64), place.shape)
            self._entries.append((place + self._count, np.asarray(column, np.int64), values))
        self._low.append(least)
        self._high.append(most)
        self._count += len(least)

    @property
    def low(self) -> NDArray[np.float64]:
        return np.concatenate(self._low)

    def constraint(self) -> LinearConstraint:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import coo_array

        row, column, value = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        matrix = coo_array((value, (row, column)), shape=(self._count, self.columns)).tocsr()
        return LinearConstraint(matrix, self.low, np.concatenate(self._high))
