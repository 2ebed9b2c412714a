"""What a chunk of a buffer holds, as symbols: which position of the input, and whose.

A value is (position, once, more): the sum of what some ranks have at a position of their input; bit r of `once` says
that rank r is in it, bit r of `more` that it is in it more than once. Sums of different positions are rubbish, and
stay rubbish whatever is added.
"""

from __future__ import annotations

Value = tuple[int, int, int]

RUBBISH: Value = (-1, 0, 0)
"""Memory that nobody wrote, or a sum that no collective asks for."""


def symbol(rank: int, position: int) -> Value:
    """What stands at a position of a rank's input."""
    return position, 1 << rank, 0


def added(one: Value, other: Value) -> Value:
    """The sum of two values.

    >>> added(symbol(0, 5), symbol(1, 5))
    (5, 3, 0)
    >>> added(symbol(0, 5), symbol(1, 6)) == RUBBISH
    True
    """
    if one[0] != other[0] or one[0] < 0:
        return RUBBISH
    return one[0], one[1] | other[1], one[2] | other[2] | (one[1] & other[1])


def told(value: Value) -> str:
    """The value in words."""
    position, once, more = value
    if position < 0:
        return "garbage"
    twice = f", rank {_members(more)} more than once" if more else ""
    return f"position {position} of the input of rank {_members(once)}{twice}"


def _members(bits: int) -> str:
    ranks = [str(rank) for rank in range(bits.bit_length()) if bits >> rank & 1]
    return ", ".join(ranks[:8]) + (" …" if len(ranks) > 8 else "")
