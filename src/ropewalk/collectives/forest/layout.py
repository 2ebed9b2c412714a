"""A forest laid out on its fabric: the arrows of its lanes, and the ways between hosts.

Where all hosts are alike and a forest is the trees of host 0 and their shifted images, only those are looked at, and
the rest is moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.collectives.forest.columns import LaneColumns, columns_of, moved_columns
from ropewalk.collectives.forest.demand import Path
from ropewalk.collectives.forest.forest import Forest
from ropewalk.collectives.forest.halves import Halves
from ropewalk.collectives.forest.lanes import lanes_of
from ropewalk.collectives.forest.strands import Arc, Surveyor, Trail, TreeStrand, strands_of
from ropewalk.collectives.forest.symmetric import SymmetricForest
from ropewalk.collectives.forest.ways import Ways, shared_ways, ways_of


@dataclass(frozen=True, eq=False)
class ForestLayout:
    """Arrows between hosts, and the ways they take."""

    columns: LaneColumns
    ways: Ways


def layout_of(halves: Halves, relays_as_ranks: bool) -> ForestLayout:
    """The lanes and paths of a forest."""
    alike = [half for half in halves.both if isinstance(half, SymmetricForest)]
    if len(alike) == len(halves.both):
        return _moved_layout(halves, alike)
    members = halves.network.members.tolist()
    reducing = tuple(_strands(halves.reducing, relays_as_ranks))
    spreading = tuple(_strands(halves.spreading, relays_as_ranks))
    columns = columns_of(lanes_of(reducing, spreading, members, members))
    return ForestLayout(columns, ways_of(halves.network.fabric, spreading, reducing))


def _strands(half: Forest | None, relays_as_ranks: bool) -> Iterator[TreeStrand]:
    if half is not None:
        yield from strands_of(half.network, half.trees, relays_as_ranks)


def _moved_layout(halves: Halves, alike: list[SymmetricForest]) -> ForestLayout:
    """Lanes of host 0 and their images; here every host is a member, so there are no relays."""
    first = {half.network.backwards: tuple(strands_of(half.network, half.first, False)) for half in alike}
    members = halves.network.members.tolist()
    lanes = lanes_of(first.get(True, ()), first.get(False, ()), members[:1], members)
    moved = np.stack([alike[0].shifts.moved(member) for member in members])
    return ForestLayout(moved_columns(columns_of(lanes), moved), _moved_ways(halves, alike, moved))


def _moved_ways(halves: Halves, alike: list[SymmetricForest], moved: Ints) -> Ways:
    """What the trees of one root put on each way counts for every image of it, whichever host it leaves from."""
    amounts: dict[Arc, dict[Trail, Fraction]] = {}
    for half in alike:
        surveyor = Surveyor(half.network, relays_as_ranks=False)
        from_first = _from_first_host(half, moved)
        for to in moved.tolist():
            for path, amount in from_first.items():
                there = tuple(to[vertex] for vertex in path)
                ends = (there[-1], there[0]) if half.network.backwards else (there[0], there[-1])
                known = amounts.setdefault(ends, {})
                (trail,) = surveyor.trails(there)
                known[trail] = known.get(trail, Fraction(0)) + amount
    return shared_ways(halves.network.fabric, amounts)


def _from_first_host(half: SymmetricForest, moved: Ints) -> dict[Path, Fraction]:
    """Ways of the first trees, moved back so that they leave from host 0, with all that takes them."""
    amounts: dict[Path, Fraction] = {}
    back: dict[int, list[int]] = {}
    shift_to = {host: shift for shift, host in enumerate(moved[:, int(half.network.members[0])].tolist())}
    for tree in half.first:
        for branch in tree.branches:
            if branch.parent not in back:
                back[branch.parent] = np.argsort(moved[shift_to[branch.parent]]).tolist()
            for path, rate in branch.ways:
                home = tuple(back[branch.parent][vertex] for vertex in path)
                amounts[home] = amounts.get(home, Fraction(0)) + rate
    return amounts
