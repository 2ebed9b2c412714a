"""Kernel: rows of an array of rows laid end to end, copied without an index for every entry."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel


@kernel
def gather(values: NDArray[Any], first: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[Any]:
    """values[first[0]], values[first[0]+1], … (length[0] of them), values[first[1]], …, one after the other."""
    found = np.empty(length.sum(), values.dtype)
    at = 0
    for row in range(len(first)):
        for place in range(first[row], first[row] + length[row]):
            found[at] = values[place]
            at += 1
    return found
