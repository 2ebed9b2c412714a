"""Dividing parcels among doors so that the busiest door is busy for as short as possible, exactly.

A parcel may be divided, but each only fits through some of the doors; a door has a width. The least time is the largest
ratio, over sets of parcels, of what is in them to the width of the doors they fit through (Hall), found by Newton's
iteration: at a time that is too short a flow falls short, and the parcels that are stuck give a larger ratio.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from typing import NamedTuple

from ropewalk.collectives.optimum.rational import common_unit


class Parcels(NamedTuple):
    """Parcels of whole sizes by the doors they fit through, and the widths of the doors."""

    fits: tuple[tuple[int, ...], ...]
    """For each parcel the numbers of the doors."""
    size: tuple[int, ...]
    width: tuple[Fraction, ...]


def least_time(parcels: Parcels) -> Fraction:
    """The least time in which everything is through.

    >>> least_time(Parcels(((0,), (0, 1)), (1, 2), (Fraction(1), Fraction(1))))
    Fraction(3, 2)
    """
    used = {door for doors in parcels.fits for door in doors}
    time = Fraction(sum(parcels.size)) / sum((parcels.width[door] for door in used), Fraction(0))
    while True:
        # In whole numbers: everything in units that divide each door's room.
        room = [time * width for width in parcels.width]
        unit = common_unit([*room, Fraction(1)])
        stuck = divide(parcels, [int(value / unit) for value in room], int(1 / unit)).stuck
        if not stuck:
            return time
        doors = {door for parcel in stuck for door in parcels.fits[parcel]}
        better = Fraction(sum(parcels.size[parcel] for parcel in stuck)) / sum(
            (parcels.width[door] for door in doors), Fraction(0)
        )
        assert better > time, "parcels that are stuck need more time"
        time = better


class ShardDivision(NamedTuple):
    amount: tuple[dict[int, int], ...]
    """For each parcel how much of it goes through which door."""
    stuck: tuple[int, ...]
    """Parcels that cannot all get through the doors they fit through; none where everything got through."""


def divide(parcels: Parcels, room: list[int], scale: int) -> ShardDivision:
    """Bring `scale` times the size of every parcel through doors that have so much room, in whole pieces.

    Augmenting paths, shortest first: where a parcel finds its doors full, another one makes room by taking a
    door that is not.
    """
    left = list(room)
    amount: list[dict[int, int]] = [{} for _ in parcels.fits]
    inside: list[set[int]] = [set() for _ in room]
    for parcel, size in enumerate(parcels.size):
        rest = size * scale
        while rest:
            found = _path(parcel, parcels.fits, left, inside)
            if isinstance(found, frozenset):
                return ShardDivision(tuple(amount), tuple(sorted(found)))
            moved = min(rest, left[found[-1][1]], *(amount[giver][door] for giver, door, _ in _handovers(found)))
            for giver, door, _ in _handovers(found):
                amount[giver][door] -= moved
                if amount[giver][door] == 0:
                    del amount[giver][door]
                    inside[door].discard(giver)
            for taker, door in found:
                amount[taker][door] = amount[taker].get(door, 0) + moved
                inside[door].add(taker)
            left[found[-1][1]] -= moved
            rest -= moved
    return ShardDivision(tuple(amount), ())


def _handovers(path: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """(who gives up a place, at which door, for whom) along a path of (parcel, door it takes)."""
    return [(path[at + 1][0], door, taker) for at, (taker, door) in enumerate(path[:-1])]


def _path(
    parcel: int, fits: tuple[tuple[int, ...], ...], left: list[int], inside: list[set[int]]
) -> list[tuple[int, int]] | frozenset[int]:
    """The shortest chain of (parcel, door it takes) that ends at a door with room; else the parcels that are stuck."""
    came: dict[int, tuple[int, int] | None] = {parcel: None}
    queue = deque([parcel])
    seen: set[int] = set()
    while queue:
        at = queue.popleft()
        for door in fits[at]:
            if door in seen:
                continue
            seen.add(door)
            if left[door] > 0:
                path = [(at, door)]
                while (step := came[path[0][0]]) is not None:
                    path.insert(0, step)
                return path
            for other in sorted(inside[door]):
                if other not in came:
                    came[other] = (at, door)
                    queue.append(other)
    return frozenset(came)
