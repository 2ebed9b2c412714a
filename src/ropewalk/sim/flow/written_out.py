"""One operation of every kind, written out for all ranks and folded: what the layout of a gang is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats, Ints
from ropewalk.errors import GraphError
from ropewalk.progress import watcher
from ropewalk.ragged import ranges
from ropewalk.room import foresee
from ropewalk.routing import Routes
from ropewalk.sim.flow.layout import Copies, GangLayout
from ropewalk.sim.flow.symmetry import Folding, fold
from ropewalk.sim.flow.system import System, system_of
from ropewalk.task.expand import Expansion
from ropewalk.task.graph import TaskKind
from ropewalk.task.kinds import Settled, Use
from ropewalk.task.lower.gang import Gang
from ropewalk.task.lower.one_of_each import Key, one_of_each
from ropewalk.task.lower.roster import Roster
from ropewalk.task.passes.launched_once import starts_up
from ropewalk.task.step import Step

RANK_BYTES, KIND_BYTES = 2500.0, 170.0
"""Of memory for each rank, and for each rank and kind of operation: measured on 16,000 to 800,000 ranks."""
RANK_S = 45e-6


@dataclass(frozen=True, eq=False)
class WrittenOut:
    """One operation of every kind, written out for all ranks, and its classes."""

    keys: tuple[Key, ...]
    roster: Roster
    step: Step
    routed: Expansion
    routes: Routes
    system: System
    folding: Folding
    terms: Floats
    """By task: what makes up its delay."""
    first: list[Ints]
    last: list[Ints]
    """By kind: the first and the last task of each of its copies."""

    @cached_property
    def kinds(self) -> list[KindClasses]:
        return [_kind(self.folding, self.terms, *ends) for ends in zip(self.first, self.last, strict=True)]

    def layout(self) -> GangLayout:
        """What a gang with these kinds is simulated with."""
        ranks = _ranks(self.system, self.folding)
        return _joined(self.keys, self.roster, self.kinds, self.folding.quotient, ranks)


def foresee_ranks(ranks: int, kinds: int) -> None:
    """Say or refuse what it takes to write out so many kinds of operations for all ranks."""
    needed = ranks * (RANK_BYTES + kinds * KIND_BYTES)
    foresee(f"a step of {ranks:,} ranks", needed, "use fewer GPUs", seconds=ranks * RANK_S)


def written_out(keys: tuple[Key, ...], roster: Roster, use_for: Callable[[Step], Use]) -> WrittenOut:
    """Expand one operation of each kind for all ranks, and fold them; `use_for` says with what a step is expanded."""
    from ropewalk.sim.flow.dominated import without_dominated_links

    foresee_ranks(roster.ranks, len(keys))
    tell = watcher()
    tell(0, None, "writing collectives for all ranks")
    gang, place = one_of_each(keys)
    step = gang.step(roster, 0.0, {})
    use = use_for(step)
    if use.router is None:
        raise GraphError("a layout needs routes: expand its step with a router")
    expansion = Expansion.of(step, replace(use, settled=_settled(keys, gang, place, roster)))
    tell(0, None, "routing what they send")
    routed, routes = expansion.routed(use.router)
    system = without_dominated_links(system_of(routed.graph, routes))
    terms = _delay_terms(expansion, routed, routes)
    # What makes up a delay is told apart, not only its sum: an operation may stand for several.
    code = np.zeros(len(terms))
    for column in terms.T:
        values, rank = np.unique(column, return_inverse=True)
        code = code * len(values) + rank
    tell(0, None, "looking for ranks that are alike")
    folding = fold(replace(system, delay=code))
    assert folding is not None
    ends = _tasks_of_copies(gang, place, roster, routed)
    return WrittenOut(keys, roster, step, routed, routes, system, folding, terms, *ends)


def _settled(keys: tuple[Key, ...], gang: Gang, place: Ints, roster: Roster) -> dict[int, Settled]:
    """By operation of the step: what a library chose for the size of its kind."""
    cuts = np.cumsum(gang.copies(roster)[place])[:-1]
    copies = np.split(gang.numbers(roster, place), cuts)
    return {one: key[-1] for key, several in zip(keys, copies, strict=True) if key[-1] for one in several.tolist()}


def _delay_terms(expansion: Expansion, routed: Expansion, routes: Routes) -> Floats:
    """By task: start-up, latency for each operation, latency of the path, start-up of a launch."""
    terms = np.zeros((routed.graph.tasks, 4))
    task = np.flatnonzero(routed.graph.kind == TaskKind.TRANSFER)
    if len(task):
        own, each = routed.latencies(routes, task)
        paid = expansion.launch_s[expansion.operation_of_task[task]]
        launch = np.where(starts_up(expansion, task), paid, 0.0)
        terms[task] = np.column_stack([expansion.graph.start_up[task], each, own, launch])
    return terms


def _tasks_of_copies(gang: Gang, place: Ints, roster: Roster, routed: Expansion) -> tuple[list[Ints], list[Ints]]:
    """By kind: the first and the last task of each of its copies."""
    operations, cuts = gang.numbers(roster, place), np.cumsum(gang.copies(roster)[place])[:-1]
    owner = routed.operation_of_task
    first, behind = (np.searchsorted(owner, operations + one).astype(np.int64) for one in (0, 1))
    return np.split(first, cuts), np.split(behind - 1, cuts)


@dataclass(frozen=True, eq=False)
class KindClasses:
    """Classes of the tasks of a kind, what each waits for in the kind, and where its copies begin and end."""

    classes: Ints
    terms: Floats
    waits: list[list[int]]
    copies: Copies


def _kind(folding: Folding, terms: Floats, first: Ints, last: Ints) -> KindClasses:
    tasks = ranges(first, last - first + 1)
    classes, member = np.unique(folding.task_class[tasks], return_index=True)
    number = {one: at for at, one in enumerate(classes.tolist())}
    quotient = folding.quotient
    waits = [
        [
            number[at]
            for at in quotient.dep[quotient.dep_start[one] : quotient.dep_start[one + 1]].tolist()
            if at in number
        ]
        for one in classes.tolist()
    ]
    entry, exit_ = (np.searchsorted(classes, folding.task_class[end]) for end in (first, last))
    found = KindClasses(classes, terms[tasks[member]], waits, Copies(entry, exit_))
    return _without_markers(found, quotient.kind[classes] == TaskKind.MARKER)


def _without_markers(kind: KindClasses, marker: NDArray[np.bool_]) -> KindClasses:
    """Leave out markers between two tasks: whoever waits for such a one waits for what it waits for."""
    followers = [0] * len(kind.waits)
    for waits in kind.waits:
        for at in waits:
            followers[at] += 1
    instead = list(range(len(kind.waits)))
    entries, exits = set(kind.copies.entry.tolist()), set(kind.copies.exit.tolist())
    for at, waits in enumerate(kind.waits):
        if marker[at] and at in exits and len(waits) == 1 and not followers[at]:
            instead[at] = waits[0]
        elif len(waits) == 1 and marker[waits[0]] and waits[0] in entries and followers[waits[0]] == 1:
            instead[waits[0]] = at
    stays = np.flatnonzero([instead[at] == at for at in range(len(instead))])
    place = {at: number for number, at in enumerate(stays.tolist())}
    moved = np.array([place[instead[at]] for at in range(len(instead))])
    left = [[place[one] for one in kind.waits[at] if instead[one] == one] for at in stays.tolist()]
    copies = Copies(moved[kind.copies.entry], moved[kind.copies.exit])
    return KindClasses(kind.classes[stays], kind.terms[stays], left, copies)


def _ranks(system: System, folding: Folding) -> Ints:
    """By class of streams: how many there are, that is, ranks."""
    compute = np.flatnonzero(system.kind == TaskKind.COMPUTE)
    class_of = np.zeros(system.streams, np.int64)
    class_of[system.place[compute]] = folding.quotient.place[folding.task_class[compute]]
    return np.bincount(class_of, minlength=folding.quotient.streams)


def _joined(
    keys: tuple[Key, ...], roster: Roster, kinds: list[KindClasses], quotient: System, ranks: Ints
) -> GangLayout:
    classes = np.concatenate([kind.classes for kind in kinds])
    waits = [deps for kind in kinds for deps in kind.waits]
    what = quotient.kind[classes]
    start_up, each, own, launch = np.concatenate([kind.terms for kind in kinds]).T.copy()
    return GangLayout(
        keys,
        roster,
        tuple(kind.copies for kind in kinds),
        np.cumsum([0, *(len(kind.classes) for kind in kinds)]).astype(np.int64),
        what,
        quotient.place[classes],
        np.where(what == TaskKind.COMPUTE, 1.0, quotient.amount[classes]),
        start_up,
        each,
        own,
        launch,
        np.cumsum([0, *map(len, waits)]).astype(np.int64),
        np.array([at for deps in waits for at in deps], np.int64),
        quotient.flow_cap,
        quotient.use_start,
        quotient.use_link,
        quotient.use_weight,
        quotient.capacity,
        ranks,
    )
