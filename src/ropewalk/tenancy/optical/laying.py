"""Laying circuits: give every wanted leaf-spine circuit a switch in which both ends have a free fibre.

This is edge colouring: circuits are edges, switches are colours; a leaf may use a colour once, a spine as often as it
has fibres there, and colours that other jobs hold are gone. Where nothing is gone, alternating chains always succeed
(König). Where some colours are, they may fail though a solution exists: then the integer program decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, repeat

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.tenancy.optical.fibres import FreeFibres

Switches = dict[tuple[int, int], list[int]]
"""(leaf, spine): the switches of the circuits between the two, ascending."""
MOST_CHAINS = 400
"""Chains tried for one circuit before it is left to the integer program; nearly all succeed within a few."""


@dataclass
class Laying:
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

    @classmethod
    def over(cls, fibres: FreeFibres, most: int | None = None) -> Laying:
        """Over free fibres; `most` that a spine can have at a switch when circuits of this job move away."""
        most = int(fibres.spine.max(initial=0)) if most is None else most
        levels = [masks(fibres.spine == count) for count in range(most + 1)]
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
                    return True
        return False

    def switches(self) -> Switches:
        return _by_ends((leaf, switch, spine) for (leaf, switch), spine in sorted(self.spine_at.items()))

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


def lay_all(fibres: FreeFibres, leafs: Ints, spines: Ints) -> Switches | int:
    """Lay leafs[i] * spines[j] circuits between every leaf i and spine j; answers the spine that could not be joined.

    `leafs` are the virtual leafs on every leaf, `spines` the virtual spines on every spine.
    """
    from ropewalk.tenancy.optical._fibres_kernel import lay_plainly

    rows = np.flatnonzero(leafs)
    # Leafs with the least choice come first; each asks for the circuits of one virtual spine in turn.
    slack = fibres.of_leaf[rows] - leafs[rows] * int(spines.sum())
    order = rows[np.argsort(slack, kind="stable")]
    free, room = fibres.leaf.copy(), fibres.spine.copy()
    laid = np.empty((int(leafs.sum() * spines.sum()), 3), np.int64)
    count = lay_plainly(free, room, order, leafs, spines, laid)
    if count == len(laid):
        ascending = laid[np.lexsort((laid[:, 2], laid[:, 0]))].tolist()
        return _by_ends((leaf, switch, spine) for leaf, spine, switch in ascending)
    laying = Laying.over(FreeFibres(free, room), int(fibres.spine.max(initial=0)))
    for leaf, spine, switch in laid[:count].tolist():
        laying.remember(leaf, spine, switch)
    for leaf, spine in islice(_in_turn(order, leafs, spines), count, None):
        if not laying.lay(leaf, spine):
            return spine
    return laying.switches()


def _in_turn(order: Ints, leafs: Ints, spines: Ints) -> Iterator[tuple[int, int]]:
    """(leaf, spine) of every circuit, in the order in which they are laid."""
    for spine in np.flatnonzero(spines).tolist():
        for leaf in order.tolist():
            yield from repeat((leaf, spine), int(leafs[leaf] * spines[spine]))


def _by_ends(circuits: Iterable[tuple[int, int, int]]) -> Switches:
    """Circuits (leaf, switch, spine), ascending, by the leaf and spine that they join."""
    found: Switches = {}
    for leaf, switch, spine in circuits:
        found.setdefault((leaf, spine), []).append(switch)
    return found


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
