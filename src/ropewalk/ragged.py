"""Rows of unequal length laid end to end in one array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def ranges(first: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """The index ranges first[0], first[0]+1, … (length[0] of them), first[1], …, one after the other.

    >>> ranges(np.array([10, 20]), np.array([3, 2])).tolist()
    [10, 11, 12, 20, 21]
    """
    offset = np.cumsum(length) - length
    return np.arange(int(length.sum())) - np.repeat(offset - first, length)
