"""Rows of truth values as words of 64 bits: what kernels count and compare."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Words


def words_of(rows: NDArray[np.bool_]) -> Words:
    """Column k of a row is bit k % 64 of its word k // 64; bits beyond the last column are 0.

    >>> words_of(np.array([[True, False, True], [False, True, True]])).tolist()
    [[5], [6]]
    """
    padded = np.zeros((rows.shape[0], -(-rows.shape[1] // 64) * 64), bool)
    padded[:, : rows.shape[1]] = rows
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)
