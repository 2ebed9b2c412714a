"""Laying circuits one after the other, and alternating chains of circuits that make way for one more.

A state is five arrays: `free` [leaf, switch]; `room` [spine, switch], free fibres; `spine_at` [leaf, switch], the spine
of the circuit laid there or -1; `leafs_at` [spine, switch, place], the leafs of the circuits laid there in their order,
and `laid_at` [spine, switch], how many these are.
"""

from __future__ import annotations

import numpy as np

from ropewalk.arrays import Flags, Ints
from ropewalk.compiled import kernel

NONE = -1
MOST_CHAINS = 400
"""Chains tried for one circuit before it is left to the integer program; nearly all succeed within a few."""


@kernel
def lay_in_turn(asked: Ints, first: int, free: Flags, room: Ints, spine_at: Ints, leafs_at: Ints, laid_at: Ints) -> int:
    """Lay circuits `asked` [number, (leaf, spine)] from the first on; answers which one could not be laid, or how many.

    Each takes the switch at which its spine has most fibres left. Where the two have none in common, circuits that were
    laid here move to other switches to make way.
    """
    spines = len(room)
    came, chain = np.empty((spines, 2), np.int64), np.empty((2 * spines + 1, 3), np.int64)
    stack, seen = np.empty(spines, np.int64), np.empty(spines, np.bool_)
    for number in range(first, len(asked)):
        leaf, spine = asked[number]
        best = _roomiest(free[leaf], room[spine])
        if best < 0:
            best = _make_way(leaf, spine, free, room, spine_at, leafs_at, laid_at, came, seen, stack, chain)
        if best < 0:
            return number
        _join(leaf, spine, best, free, room, spine_at, leafs_at, laid_at)
    return len(asked)


@kernel
def _roomiest(free: Flags, room: Ints) -> int:
    """The switch free for a leaf at which a spine has most fibres left, the lowest of those; -1 if it has none."""
    best = NONE
    for switch in range(len(room)):
        if free[switch] and room[switch] > (room[best] if best >= 0 else 0):
            best = switch
    return best


@kernel
def _make_way(
    leaf: int,
    spine: int,
    free: Flags,
    room: Ints,
    spine_at: Ints,
    leafs_at: Ints,
    laid_at: Ints,
    came: Ints,
    seen: Flags,
    stack: Ints,
    chain: Ints,
) -> int:
    """Move circuits so that a leaf and a spine have a switch in common: this switch, or -1 where no chain was found."""
    tried = 0
    for wanted in range(room.shape[1]):
        if not free[leaf, wanted]:
            continue
        for spare in range(room.shape[1]):
            if room[spine, spare] == 0:
                continue
            tried += 1
            if tried > MOST_CHAINS:
                return NONE
            length = _chain(spine, wanted, spare, free, room, spine_at, leafs_at, laid_at, came, seen, stack, chain)
            if length:
                _move(chain[:length], wanted, spare, free, room, spine_at, leafs_at, laid_at)
                return wanted
    return NONE


@kernel
def _chain(
    spine: int,
    wanted: int,
    spare: int,
    free: Flags,
    room: Ints,
    spine_at: Ints,
    leafs_at: Ints,
    laid_at: Ints,
    came: Ints,
    seen: Flags,
    stack: Ints,
    chain: Ints,
) -> int:
    """Circuits (leaf, spine) that change between the two switches so that `spine` gets room at `wanted`; how many.

    They are listed in pairs: the first of a pair goes from wanted to spare, the second the other way. A path ends
    at a leaf with its spare fibre free, or at a spine with room at wanted; a fibre of another job is a dead end.
    """
    seen[:] = False
    seen[spine] = True
    came[spine] = NONE
    stack[0] = spine
    height = 1
    while height:
        height -= 1
        at = stack[height]
        for place in range(laid_at[at, wanted]):
            leaf = leafs_at[at, wanted, place]
            if free[leaf, spare]:
                chain[0, 0], chain[0, 1] = leaf, at
                return int(_back(came, at, chain, 1))
            beyond = spine_at[leaf, spare]
            if beyond < 0 or seen[beyond]:
                continue
            seen[beyond] = True
            came[beyond, 0], came[beyond, 1] = leaf, at
            if room[beyond, wanted]:
                return int(_back(came, beyond, chain, 0))
            stack[height] = beyond
            height += 1
    return 0


@kernel
def _back(came: Ints, spine: int, chain: Ints, length: int) -> int:
    """Append the circuits from a spine back to where the chain begins."""
    while came[spine, 0] >= 0:
        leaf, before = came[spine]
        chain[length, 0], chain[length, 1] = leaf, spine
        chain[length + 1, 0], chain[length + 1, 1] = leaf, before
        length += 2
        spine = before
    return length


@kernel
def _move(
    chain: Ints, wanted: int, spare: int, free: Flags, room: Ints, spine_at: Ints, leafs_at: Ints, laid_at: Ints
) -> None:
    """All circuits of a chain leave their switches, then all take the other one."""
    for one in chain:
        one[2] = wanted if spine_at[one[0], wanted] == one[1] else spare
    # A leaf with both its circuits to the same spine would be ambiguous; such a chain never leads away from it.
    for leaf, spine, switch in chain:
        _part(leaf, spine, switch, free, room, spine_at, leafs_at, laid_at)
    for leaf, spine, switch in chain:
        other = spare if switch == wanted else wanted
        _join(leaf, spine, other, free, room, spine_at, leafs_at, laid_at)


@kernel
def _join(
    leaf: int, spine: int, switch: int, free: Flags, room: Ints, spine_at: Ints, leafs_at: Ints, laid_at: Ints
) -> None:
    free[leaf, switch] = False
    room[spine, switch] -= 1
    spine_at[leaf, switch] = spine
    leafs_at[spine, switch, laid_at[spine, switch]] = leaf
    laid_at[spine, switch] += 1


@kernel
def _part(
    leaf: int, spine: int, switch: int, free: Flags, room: Ints, spine_at: Ints, leafs_at: Ints, laid_at: Ints
) -> None:
    free[leaf, switch] = True
    room[spine, switch] += 1
    spine_at[leaf, switch] = NONE
    laid_at[spine, switch] -= 1
    place = 0
    while leafs_at[spine, switch, place] != leaf:
        place += 1
    for after in range(place, laid_at[spine, switch]):
        leafs_at[spine, switch, after] = leafs_at[spine, switch, after + 1]
