"""Small sets of numbers, GPUs or layers, as the bits of an integer: number n is bit n."""

from __future__ import annotations


def members(mask: int) -> tuple[int, ...]:
    """The numbers of a set, ascending.

    >>> members(0b10110)
    (1, 2, 4)
    """
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(found)
