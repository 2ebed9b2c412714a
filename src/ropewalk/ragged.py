"""Rows of unequal length laid end to end in one array."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)


def ranges(first: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """The index ranges first[0], first[0]+1, … (length[0] of them), first[1], …, one after the other.

    >>> ranges(np.array([10, 20]), np.array([3, 2])).tolist()
    [10, 11, 12, 20, 21]
    """
    offset = np.cumsum(length) - length
    return np.arange(int(length.sum())) - np.repeat(offset - first, length)


def rows_of(values: NDArray[Number], first: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[Number]:
    """values[ranges(first, length)] for many millions of entries, which it neither numbers nor holds twice.

    >>> rows_of(np.arange(30) ** 2, np.array([3, 20]), np.array([2, 1])).tolist()
    [9, 16, 400]
    """
    # Imported here because loading Numba takes longer than some commands run.
    from ropewalk._ragged_kernel import gather

    return np.asarray(gather(values, first, length))
