"""Counting and finding bits of words: what every loop over free GPUs, cables and spines is made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel


@kernel
def ones(word: np.uint64) -> np.int64:
    """How many bits of a word are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))  # int() would keep it unsigned


@kernel
def common(mask: NDArray[np.uint64], words: NDArray[np.uint64]) -> int:
    """How many bits two rows of words share."""
    total = 0
    for w in range(len(mask)):
        total += ones(mask[w] & words[w])
    return total


@kernel
def lowest(word: np.int64) -> np.int64:
    """The place of the lowest bit that is set."""
    place: np.int64 = ones(np.uint64((word & -word) - 1))
    return place


@kernel
def positions(mask: NDArray[np.uint64], count: int) -> NDArray[np.int64]:
    """Places of the first `count` bits that are set, in ascending order."""
    found = np.empty(count, np.int64)
    at = 0
    for w in range(len(mask)):
        left = mask[w]
        while left and at < count:
            bit = left & (~left + np.uint64(1))
            left ^= bit
            found[at] = 64 * w + ones(bit - np.uint64(1))
            at += 1
    return found[:at]
