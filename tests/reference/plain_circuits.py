"""The loops of OCS-vClos in plain Python, over bit masks: what the kernels of the same contract are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.optical._laying_kernel import MOST_CHAINS
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.laying import Switches


@dataclass
class PlainLaying:
    """Circuits laid so far for one job, over fibres that were free when it began."""

    free: list[int]
    """Bit k of a leaf: its fibre to switch k is free."""
    room: list[list[int]]
    """[spine][switch]: free fibres."""
    open: list[int]
    """Bit k of a spine: it has room at switch k."""
    with_room: list[list[int]]
    """[spine][fibres]: bit k says that it has exactly so many free at switch k."""
    spine_at: dict[tuple[int, int], int] = field(default_factory=dict)
    """(leaf, switch) of every laid circuit: its spine."""
    leafs_at: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """(spine, switch): the leafs of the circuits laid there."""
    chains: int = 0
    """How often circuits made way."""

    @classmethod
    def over(cls, fibres: FreeFibres) -> PlainLaying:
        """Over free fibres."""
        levels = [masks(fibres.spine == count) for count in range(int(fibres.spine.max(initial=0)) + 1)]
        with_room = [list(of_spine) for of_spine in zip(*levels, strict=True)]
        return cls(masks(fibres.leaf), fibres.spine.tolist(), masks(fibres.spine > 0), with_room)

    def lay(self, leaf: int, spine: int) -> bool:
        """One more circuit between the two; circuits of this job may move to other switches to make way."""
        common = self.free[leaf] & self.open[spine]
        if common:
            self._join(leaf, spine, _roomiest(common, self.with_room[spine]))
            return True
        tried = 0
        for wanted in bits(self.free[leaf]):
            for spare in bits(self.open[spine]):
                tried += 1
                if tried > MOST_CHAINS:
                    return False
                moves = self._chain(spine, wanted, spare)
                if moves is not None:
                    self._move(moves, wanted, spare)
                    self._join(leaf, spine, wanted)
                    self.chains += 1
                    return True
        return False

    def switches(self) -> Switches:
        """By leaf and spine, ascending."""
        found: Switches = {}
        for (leaf, switch), spine in sorted(self.spine_at.items()):
            found.setdefault((leaf, spine), []).append(switch)
        return found

    def remember(self, leaf: int, spine: int, switch: int) -> None:
        """Write down a circuit of this job whose fibres are taken."""
        self.spine_at[leaf, switch] = spine
        self.leafs_at.setdefault((spine, switch), []).append(leaf)

    def _join(self, leaf: int, spine: int, switch: int) -> None:
        self.free[leaf] &= ~(1 << switch)
        self._fill(spine, switch, -1)
        self.remember(leaf, spine, switch)

    def _part(self, leaf: int, spine: int, switch: int) -> None:
        self.free[leaf] |= 1 << switch
        self._fill(spine, switch, 1)
        del self.spine_at[leaf, switch]
        self.leafs_at[spine, switch].remove(leaf)

    def _fill(self, spine: int, switch: int, change: int) -> None:
        bit = 1 << switch
        self.with_room[spine][self.room[spine][switch]] ^= bit
        self.room[spine][switch] += change
        self.with_room[spine][self.room[spine][switch]] ^= bit
        self.open[spine] = self.open[spine] | bit if self.room[spine][switch] else self.open[spine] & ~bit

    def _chain(self, spine: int, wanted: int, spare: int) -> list[tuple[int, int]] | None:
        """Circuits (leaf, spine) that change between the two switches so that `spine` gets room at `wanted`.

        They are listed in pairs: the first of a pair goes from wanted to spare, the second the other way. A path ends
        at a leaf with its spare fibre free, or at a spine with room at wanted; a fibre of another job is a dead end.
        """
        came: dict[int, tuple[int, int] | None] = {spine: None}
        stack = [spine]
        while stack:
            at = stack.pop()
            for leaf in self.leafs_at.get((at, wanted), ()):
                if self.free[leaf] >> spare & 1:
                    return [(leaf, at), *self._back(came, at)]
                beyond = self.spine_at.get((leaf, spare))
                if beyond is None or beyond in came:
                    continue
                came[beyond] = (leaf, at)
                if self.open[beyond] >> wanted & 1:
                    return self._back(came, beyond)
                stack.append(beyond)
        return None

    def _back(self, came: dict[int, tuple[int, int] | None], spine: int) -> list[tuple[int, int]]:
        path: list[tuple[int, int]] = []
        step = came[spine]
        while step is not None:
            leaf, before = step
            path += [(leaf, spine), (leaf, before)]
            spine = before
            step = came[spine]
        return path

    def _move(self, moves: list[tuple[int, int]], wanted: int, spare: int) -> None:
        """All circuits of a chain leave their switches, then all take the other one."""
        was = [(leaf, spine, wanted if self.spine_at.get((leaf, wanted)) == spine else spare) for leaf, spine in moves]
        # A leaf with both its circuits to the same spine would be ambiguous; such a chain never leads away from it.
        for leaf, spine, switch in was:
            self._part(leaf, spine, switch)
        for leaf, spine, switch in was:
            self._join(leaf, spine, spare if switch == wanted else wanted)


@dataclass
class PlainReach:
    """Fibres from leafs to switches towards one spine, as a matching that grows along augmenting paths."""

    possible: list[int]
    """Bit k of a leaf: it has a fibre to switch k, and the spine has one there."""
    room: list[int]
    """By switch: fibres of the spine."""
    users: dict[int, list[int]] = field(default_factory=dict)
    """By switch: the leafs that use it."""
    used: dict[int, int] = field(default_factory=dict)
    """By leaf: bits of the switches it uses."""

    def add(self, leaf: int, count: int) -> bool:
        """So many more fibres for a leaf, or none."""
        before = {switch: list(leafs) for switch, leafs in self.users.items()}, dict(self.used)
        for _ in range(count):
            if not self._augment(leaf):
                self.users, self.used = before
                return False
        return True

    def _augment(self, leaf: int) -> bool:
        came: dict[int, tuple[int, int]] = {}
        """By switch: the leaf that asks for it, and the switch that leaf gives up (-1 for the first)."""
        queue = [(leaf, -1)]
        for asks, gives_up in queue:
            for switch in bits(self.possible[asks] & ~self.used.get(asks, 0)):
                if switch in came:
                    continue
                came[switch] = (asks, gives_up)
                holders = self.users.setdefault(switch, [])
                if len(holders) < self.room[switch]:
                    self._follow(came, switch)
                    return True
                queue += [(holder, switch) for holder in holders]
        return False

    def _follow(self, came: dict[int, tuple[int, int]], switch: int) -> None:
        while switch >= 0:
            leaf, gives_up = came[switch]
            self.users[switch].append(leaf)
            self.used[leaf] = self.used.get(leaf, 0) | 1 << switch
            if gives_up >= 0:
                self.users[gives_up].remove(leaf)
                self.used[leaf] &= ~(1 << gives_up)
            switch = gives_up


def plain_cover(room: NDArray[np.int64], cost: NDArray[np.int64], target: int) -> NDArray[np.int64] | None:
    """The cheapest cover, a place after the other; of equal costs the lower places."""
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
    for place in range(len(room)):
        before = dict(best)
        for number in range(1, target + 1) if room[place] > 0 else ():
            left = max(0, number - int(room[place]))
            if left in before and (number not in best or before[left][0] + cost[place] < best[number][0]):
                best[number] = before[left][0] + int(cost[place]), (*before[left][1], place)
    if target not in best:
        return None
    held, left = np.zeros(len(room), np.int64), target
    for place in reversed(best[target][1]):
        held[place] = min(int(room[place]), left)
        left -= int(held[place])
    return held


def masks(rows: NDArray[np.bool_]) -> list[int]:
    """Rows of truth values as numbers, column k as bit k."""
    packed = np.packbits(rows, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _roomiest(common: int, with_room: list[int]) -> int:
    """The switch at which the spine has most fibres left; the lowest of those."""
    best = next(mask for level in reversed(with_room) if (mask := level & common))
    return (best & -best).bit_length() - 1
