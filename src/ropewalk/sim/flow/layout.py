"""The classes of a layout: which copies of an operation are simultaneous, whatever a gang does with them.

A gang stands for all ranks: an operation of it has a copy for every rank, or for every group of them (`task.lower`).
In a layout every kind of operation runs once, between computations of its ranks, over its routes. Colour refinement of
that (`symmetry.fold`) merges copies, ranks and links that nothing in the layout tells apart. The partition is equitable
for any gang with these kinds: copies of one class meet ranks of the same classes, so what waits for them, and what they
wait for, are again whole classes, and links of one class carry the same flows of every class. So a gang is simulated
with one task for each class of tasks of each operation, and has the times of all copies to rounding. What is not
symmetric has several classes, in the worst case as many as there are copies; nothing is approximated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.sim.flow.in_order import Alone, alone_in
from ropewalk.task.lower.gang import SIDES, relations
from ropewalk.task.lower.moves import Scope
from ropewalk.task.lower.one_of_each import Key
from ropewalk.task.lower.roster import Roster


@dataclass(frozen=True, eq=False)
class Copies:
    """The copies of a kind, by the tasks of the kind that they begin and end with."""

    entry: Ints
    exit: Ints

    @cached_property
    def begin_together(self) -> bool:
        return bool((self.entry == self.entry[0]).all())

    @cached_property
    def end_together(self) -> bool:
        return bool((self.exit == self.exit[0]).all())


@dataclass(frozen=True, eq=False)
class GangLayout:
    """Tasks of every kind of operation, a task for each class, kind after kind; flows and links by class."""

    keys: tuple[Key, ...]
    roster: Roster
    copies: tuple[Copies, ...]
    task_start: Ints
    """By kind: its first task."""
    task_kind: NDArray[np.int8]
    place: Ints
    """By task: the flow of a transfer, the stream of a computation, that is the class of its rank."""
    amount: Floats
    """Of an operation of one byte or second."""
    start_up: Floats
    each: Floats
    """Latency for each operation that it stands for, and of its own path at least."""
    own: Floats
    launch: Floats
    """What it does not pay where its operation goes on with the launch before it."""
    dep_start: Ints
    dep: Ints
    """Tasks of the same kind, counted in the kind."""
    flow_cap: Floats
    use_start: Ints
    use_link: NDArray[np.int32]
    use_weight: Floats
    capacity: Floats
    ranks: Ints
    """By stream: ranks of the class."""
    _pairs: dict[tuple[int, int], tuple[Ints, Ints]] = field(default_factory=dict)

    @cached_property
    def alone(self) -> Alone:
        """Kinds that take as long as alone."""
        return alone_in(self)

    @property
    def tasks(self) -> int:
        return int(self.task_start[-1])

    def numbers(self, keys: tuple[Key, ...]) -> Ints:
        """Which of the kinds these are."""
        known = {key: number for number, key in enumerate(self.keys)}
        return np.array([known[key] for key in keys], np.int64)

    def pairs(self, waiting: int, awaited: int) -> tuple[Ints, Ints]:
        """Which tasks of a kind wait for which of another one where an operation waits for an operation."""
        key = waiting, awaited
        if key not in self._pairs:
            mine, theirs = self.copies[waiting], self.copies[awaited]
            if mine.begin_together and theirs.end_together:
                self._pairs[key] = mine.entry[:1], theirs.exit[:1]
            else:
                one, other = self.meeting(waiting, awaited)
                width = int(theirs.exit.max()) + 1
                pair = np.unique(mine.entry[one] * width + theirs.exit[other])
                self._pairs[key] = pair // width, pair % width
        return self._pairs[key]

    def meeting(self, waiting: int, awaited: int) -> tuple[Ints, Ints]:
        """Copies of two kinds that have a rank in common."""
        mine, theirs = self.keys[waiting][1:4], self.keys[awaited][1:4]
        one, other = (
            self.roster.kinds[self.roster.kind_of(Scope(scope), stage, peer)] for scope, stage, peer in (mine, theirs)
        )
        if one.even and other.even:
            return SIDES[0](one, other)
        (side,) = relations(*(np.array([end]) for end in (*mine[1:], *theirs[1:])))
        return SIDES[side](one, other)
