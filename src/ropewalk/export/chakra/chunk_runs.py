"""Sets of chunks as short text: `0-3,8`."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_RUNS = re.compile("(?:[0-9]{1,9}(?:-[0-9]{1,9})?(?:,[0-9]{1,9}(?:-[0-9]{1,9})?)*)?")


def runs_text(chunks: Iterable[int] | NDArray[np.int64]) -> str:
    """Numbers in the order in which they come; those that follow each other as one run.

    >>> runs_text([0, 1, 2, 3, 8])
    '0-3,8'
    """
    ids = np.fromiter(chunks, np.int64) if not isinstance(chunks, np.ndarray) else chunks
    if not len(ids):
        return ""
    cuts = np.flatnonzero(np.diff(ids) != 1) + 1
    first, last = ids[np.concatenate([[0], cuts])], ids[np.concatenate([cuts - 1, [len(ids) - 1]])]
    pairs = zip(first.tolist(), last.tolist(), strict=True)
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in pairs)


def runs_numbers(text: str, most: int) -> list[int] | None:
    """The numbers of a text, each below `most`; None where this is no such text.

    >>> runs_numbers("0-3,8", 9), runs_numbers("0-9", 9)
    ([0, 1, 2, 3, 8], None)
    """
    if _RUNS.fullmatch(text) is None:
        return None
    found: list[int] = []
    for run in filter(None, text.split(",")):
        first, _, last = run.partition("-")
        low, high = int(first), int(last or first)
        if not low <= high < most:
            return None
        found.extend(range(low, high + 1))
    return found
