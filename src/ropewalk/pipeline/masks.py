"""Small sets of numbers, GPUs or layers, as the bits of an integer: number n is bit n."""

from __future__ import annotations

from collections.abc import Iterable


def mask_of(numbers: Iterable[int]) -> int:
    """The set of these numbers.

    >>> bin(mask_of((1, 2, 4)))
    '0b10110'
    """
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


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
