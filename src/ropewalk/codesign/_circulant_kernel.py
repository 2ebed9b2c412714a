"""Kernels of the search for jumps: hop sums of circulants by bit sets, for one set of jumps or for all of them.

The servers reached so far are a row of bits; a jump is a rotation of the row. One level of the search is as many
rotations as there are coins, 64 servers at a time. Nothing here knows rings or ports: coins are numbers modulo n.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_ONE = np.uint64(1)
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(cache=True, nogil=True)
def _count(word):  # type: ignore[no-untyped-def]
    """Bits that are set in a word."""
    word = word - ((word >> _ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True)
def _add_rotated(bits, jump, size, into):  # type: ignore[no-untyped-def]
    """Add to `into` the bits moved up by `jump` places; what leaves at the top comes in at the bottom."""
    words = len(bits)
    whole, part = jump >> 6, np.uint64(jump & 63)
    for at in range(whole, words):
        into[at] |= bits[at - whole] << part
        if part and at > whole:
            into[at] |= bits[at - whole - 1] >> (np.uint64(64) - part)
    down = size - jump
    whole, part = down >> 6, np.uint64(down & 63)
    for at in range(words - whole):
        into[at] |= bits[at + whole] >> part
        if part and at + whole + 1 < words:
            into[at] |= bits[at + whole + 1] << (np.uint64(64) - part)


@njit(cache=True, nogil=True)
def _hops(jumps, size, duplex, weight, limit, reached, front, fresh):  # type: ignore[no-untyped-def]
    """(demand-weighted hops, farthest distance) of a circulant; infinity as soon as it is sure to exceed `limit`.

    Without weights every other server counts 1, so that the sum is a whole number and exact.
    """
    words = len(reached)
    top = _FULL if size & 63 == 0 else (_ONE << np.uint64(size & 63)) - _ONE
    reached[:] = np.uint64(0)
    reached[0] = _ONE
    front[:] = reached
    missing, left = size - 1, 0.0
    for distance in range(1, len(weight)):
        left += weight[distance]
    total, level = 0.0, 0
    while missing > 0:
        least = missing if len(weight) == 0 else left
        if total + (level + 1) * least > limit:
            return np.inf, size
        level += 1
        fresh[:] = np.uint64(0)
        for jump in jumps:
            _add_rotated(front, jump, size, fresh)
            if duplex:
                _add_rotated(front, size - jump, size, fresh)
        fresh[words - 1] &= top
        found, demand = 0, 0.0
        for at in range(words):
            word = fresh[at] & ~reached[at]
            reached[at] |= word
            front[at] = word
            found += _count(word)
            if len(weight):
                for bit in range(64):
                    if word & (_ONE << np.uint64(bit)):
                        demand += weight[64 * at + bit]
        if found == 0:
            return np.inf, size
        missing -= found
        left -= demand
        total += level * (found if len(weight) == 0 else demand)
    return total, level


@njit(cache=True, nogil=True)
def judge(
    sets: NDArray[np.int64],
    size: int,
    duplex: bool,
    weight: NDArray[np.float64],
    hops: NDArray[np.float64],
    farthest: NDArray[np.int64],
) -> None:
    """Fill in the hop sum and the diameter of every row of jumps."""
    words = (size + 63) >> 6
    reached, front, fresh = np.empty(words, np.uint64), np.empty(words, np.uint64), np.empty(words, np.uint64)
    for row in range(len(sets)):
        hops[row], farthest[row] = _hops(sets[row], size, duplex, weight, np.inf, reached, front, fresh)


@njit(cache=True, nogil=True)
def best_of_all(
    candidates: NDArray[np.int64],
    count: int,
    first_is_fixed: bool,
    size: int,
    duplex: bool,
    weight: NDArray[np.float64],
) -> NDArray[np.int64]:
    """The set of `count` candidates with the least hop sum, then the least diameter, then the first in order.

    With `first_is_fixed` only sets with the first candidate are looked at.
    """
    words = (size + 63) >> 6
    reached, front, fresh = np.empty(words, np.uint64), np.empty(words, np.uint64), np.empty(words, np.uint64)
    chosen = np.arange(count)
    jumps, best = candidates[:count].copy(), candidates[:count].copy()
    least, nearest = np.inf, size + 1
    lowest = 1 if first_is_fixed else 0
    while True:
        for place in range(count):
            jumps[place] = candidates[chosen[place]]
        hops, farthest = _hops(jumps, size, duplex, weight, least, reached, front, fresh)
        if hops < least or (hops == least and farthest < nearest):
            least, nearest = hops, farthest
            best[:] = jumps
        # The next combination in order: raise the last place that can be raised, line the rest up behind it.
        place = count - 1
        while place >= lowest and chosen[place] == len(candidates) - count + place:
            place -= 1
        if place < lowest:
            return best
        chosen[place] += 1
        for behind in range(place + 1, count):
            chosen[behind] = chosen[behind - 1] + 1
