"""Kernels of the search for jumps: hops of circulants by bit sets, for one set of jumps or for all of them.

The servers reached so far are a row of bits; a jump is a rotation of the row. One level of the search is as many
rotations as there are coins, 64 servers at a time. Nothing here knows rings or ports: coins are numbers modulo n.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel

_ONE = np.uint64(1)
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
_MOST = np.int64(2**62)


@kernel
def _count(word):  # type: ignore[no-untyped-def]
    """Bits that are set in a word."""
    word = word - ((word >> _ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
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


class WantedJumps(NamedTuple):
    """What jumps are judged by, in whole numbers, so that ties are ties on every machine."""

    weight: NDArray[np.int64]
    """Demand at each distance."""
    riding_start: NDArray[np.int64]
    riding_residue: NDArray[np.int64]
    """CSR: the distances at which each riding group may take its hops; it takes one that is reached in the fewest."""
    riding_weight: NDArray[np.int64]
    """Demand of each riding group."""


class CirculantScratch(NamedTuple):
    """Scratch space of one search."""

    reached: NDArray[np.uint64]
    front: NDArray[np.uint64]
    fresh: NDArray[np.uint64]
    waiting: NDArray[np.bool_]


@kernel
def _make_room(size, wanted):  # type: ignore[no-untyped-def]
    words = (size + 63) >> 6
    return CirculantScratch(
        np.empty(words, np.uint64), np.empty(words, np.uint64), np.empty(words, np.uint64),
        np.empty(len(wanted.riding_weight), np.bool_),
    )  # fmt: skip


@kernel
def _weigh(jumps, size, duplex, wanted, most, most_hops, room):  # type: ignore[no-untyped-def]
    """(demand times hops, hops to all others, farthest distance) of a circulant.

    Servers out of reach count as `size` hops away. (-1, 0, 0) as soon as it is sure to exceed (`most`, `most_hops`).
    """
    reached, front, fresh, waiting = room
    words = len(reached)
    top = _FULL if size & 63 == 0 else (_ONE << np.uint64(size & 63)) - _ONE
    reached[:] = np.uint64(0)
    reached[0] = _ONE
    front[:] = reached
    waiting[:] = True
    missing = size - 1
    left = wanted.weight.sum() - wanted.weight[0] + wanted.riding_weight.sum()
    cost, hops, level = 0, 0, 0
    while missing > 0:
        least, least_hops = cost + (level + 1) * left, hops + (level + 1) * missing
        if least > most or (least == most and least_hops > most_hops):
            return -1, 0, 0
        level += 1
        fresh[:] = np.uint64(0)
        for jump in jumps:
            _add_rotated(front, jump, size, fresh)
            if duplex:
                _add_rotated(front, size - jump, size, fresh)
        fresh[words - 1] &= top
        found, demand = 0, 0
        for at in range(words):
            word = fresh[at] & ~reached[at]
            reached[at] |= word
            front[at] = word
            found += _count(word)
            if left > 0:
                for bit in range(64):
                    if word & (_ONE << np.uint64(bit)):
                        demand += wanted.weight[64 * at + bit]
        if found == 0:
            return cost + size * left, hops + size * missing, size
        for group in range(len(waiting)):
            if waiting[group]:
                for at in range(wanted.riding_start[group], wanted.riding_start[group + 1]):
                    residue = wanted.riding_residue[at]
                    if front[residue >> 6] & (_ONE << np.uint64(residue & 63)):
                        waiting[group] = False
                        demand += wanted.riding_weight[group]
                        break
        missing -= found
        left -= demand
        cost += level * demand
        hops += level * found
    return cost, hops, level


@kernel
def judge(sets, size, duplex, wanted, cost, hops, farthest):  # type: ignore[no-untyped-def]
    """Fill in what every row of jumps costs, its hops and its diameter."""
    room = _make_room(size, wanted)
    for row in range(len(sets)):
        cost[row], hops[row], farthest[row] = _weigh(sets[row], size, duplex, wanted, _MOST, _MOST, room)


@kernel
def _raise_combination(chosen, first, last, lowest, options):  # type: ignore[no-untyped-def]
    """Go on to the next combination of the places first … last-1; False, and back to the first one, behind the last."""
    count = last - first
    place = last - 1
    while place >= lowest and chosen[place] == options - count + place - first:
        place -= 1
    if place < lowest:
        for behind in range(first, last):
            chosen[behind] = behind - first
        return False
    chosen[place] += 1
    for behind in range(place + 1, last):
        chosen[behind] = chosen[behind - 1] + 1
    return True


@kernel
def best_of_all(candidate_start, candidates, counts, fixed, size, duplex, wanted, keep):  # type: ignore[no-untyped-def]
    """The best sets with so many jumps of each group: by cost, then hops, then diameter, then the first in order.

    Of the group `fixed` only sets with its first candidate are looked at (-1: no such group). At most `keep` rows, best
    first.
    """
    groups = len(counts)
    slot = np.zeros(groups + 1, np.int64)
    for group in range(groups):
        slot[group + 1] = slot[group] + counts[group]
    chosen = np.empty(slot[groups], np.int64)
    for group in range(groups):
        for place in range(slot[group], slot[group + 1]):
            chosen[place] = place - slot[group]
    jumps = np.empty(slot[groups], np.int64)
    best = np.zeros((keep, slot[groups]), np.int64)
    scores = np.full((keep, 3), _MOST)
    found = 0
    room = _make_room(size, wanted)
    while True:
        for group in range(groups):
            for place in range(slot[group], slot[group + 1]):
                jumps[place] = candidates[candidate_start[group] + chosen[place]]
        cost, hops, farthest = _weigh(jumps, size, duplex, wanted, scores[keep - 1, 0], scores[keep - 1, 1], room)
        if cost >= 0:
            at = min(found, keep)
            while at > 0 and (cost, hops, farthest) < (scores[at - 1, 0], scores[at - 1, 1], scores[at - 1, 2]):
                at -= 1
            if at < keep:
                for behind in range(min(found, keep - 1), at, -1):
                    scores[behind] = scores[behind - 1]
                    best[behind] = best[behind - 1]
                scores[at, 0], scores[at, 1], scores[at, 2] = cost, hops, farthest
                best[at] = jumps
                found += found < keep
        group = groups - 1
        while group >= 0:
            options = candidate_start[group + 1] - candidate_start[group]
            lowest = slot[group] + (1 if group == fixed else 0)
            if _raise_combination(chosen, slot[group], slot[group + 1], lowest, options):
                break
            group -= 1
        if group < 0:
            return best[:found]
