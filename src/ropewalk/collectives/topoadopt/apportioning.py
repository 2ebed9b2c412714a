"""Whole numbers in the proportion of rates."""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Floats, Ints

_NEARLY_WHOLE = 1e-6


def apportioned(total: int, rate: Floats) -> Ints:
    """Whole numbers that add up to a total, in the proportion of rates: what is left goes to the largest remainders.

    >>> apportioned(7, np.array([0.5, 0.25, 0.25])).tolist()
    [3, 2, 2]
    """
    exact = rate * (total / rate.sum())
    whole: Ints = np.floor(exact + _NEARLY_WHOLE).astype(np.int64)
    missing = total - int(whole.sum())
    # Those that lost most by rounding come first; where too many were nearly whole, those that gained most go back.
    lost = exact - whole
    if missing > 0:
        whole[np.argsort(-lost, kind="stable")[:missing]] += 1
    elif missing < 0:
        whole[np.argsort(np.where(whole > 0, lost, np.inf), kind="stable")[:-missing]] -= 1
    return whole
