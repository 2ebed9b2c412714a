"""The collectives of a step, sorted into kinds: same act, same collective, groups that sit alike.

Collectives of one kind are the same tasks between other hosts, so each kind is worked out once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.choices import Choices
from ropewalk.collective.choice import CollectiveChoice
from ropewalk.collective.group import Group
from ropewalk.collective.table import Collective, beside
from ropewalk.errors import GraphError
from ropewalk.fabric import Fabric
from ropewalk.task.seating import Seating, seat
from ropewalk.task.step import Act, Step
from ropewalk.task.template import MEETING, Template, Writer
from ropewalk.task.transport import Transport


@dataclass(frozen=True, eq=False)
class Kind:
    """Collectives that are the same tasks between other hosts: operation i of them is of group `members[row[i]]`."""

    operation: NDArray[np.int64]
    row: NDArray[np.int64]
    members: NDArray[np.int32]
    template: Template


@dataclass(frozen=True, eq=False)
class Use:
    """What turns the collectives of a step into tasks."""

    fabric: Fabric
    host: NDArray[np.int32]
    """Of each rank."""
    server: NDArray[np.int32]
    """Of each host."""
    choice: CollectiveChoice
    table: Choices[Collective]
    transport: Transport
    write: Writer


def kinds_of_collectives(step: Step, use: Use) -> list[Kind]:
    """Every collective of a step, kind by kind."""
    collective = np.flatnonzero(step.act >= Act.ALL_REDUCE)
    if not len(collective):
        return []
    seated = seat(step.groups, use.server[use.host])
    seating = seated.seating_of[step.group[collective]]
    names, name_of_stream = _names(step, use.choice)
    key = step.act[collective].astype(np.int64) * len(seated.seatings) + seating
    key = key * len(names) + name_of_stream[step.stream[collective]]
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    kinds = []
    for part in np.split(order, cuts):
        operation = collective[part]
        sat = seated.seatings[int(seating[part[0]])]
        act, name = Act(int(step.act[operation[0]])), names[int(name_of_stream[step.stream[operation[0]]])]
        template = _template(act, name, sat, use)
        kinds.append(Kind(operation, seated.row[step.group[operation]], sat.members, template))
    return kinds


def missing_acts(step: Step, choice: CollectiveChoice, table: Mapping[str, Collective]) -> tuple[str, ...]:
    """What runs something else than was chosen, because the collective that was chosen does not have the act."""
    used = np.unique(np.column_stack([step.act, step.stream])[step.act >= Act.ALL_REDUCE], axis=0)
    notes = []
    for number, stream in used.tolist():
        act, purpose = Act(number), step.streams[stream]
        name = choice.name_for(purpose)
        if act is not Act.BARRIER and act not in table[name].make and table[name].make.keys() != {Act.ALL_TO_ALL}:
            notes.append(f"{purpose}: {name} is no {act.words}, which runs as {beside(act)}")
    return tuple(notes)


def _names(step: Step, choice: CollectiveChoice) -> tuple[list[str], NDArray[np.int64]]:
    """The collectives that are chosen, and which of them each stream has."""
    chosen = [choice.name_for(purpose) for purpose in step.streams]
    names = list(dict.fromkeys(chosen))
    return names, np.array([names.index(name) for name in chosen], np.int64)


def _template(act: Act, name: str, sat: Seating, use: Use) -> Template:
    if act is Act.BARRIER or sat.ranks == 1:
        return MEETING
    if act not in use.table.named(name).make:
        name = beside(act)
    # Of a single group it is known where it sits; several that sit alike share what depends on their servers alone.
    alone = use.host[sat.members[0]].tolist() if len(sat.members) == 1 else []
    group = Group(sat.servers, fabric=use.fabric if alone else None, members=tuple(alone), own_paths=False)
    refusal = use.table.refusal(name, act, group)
    if refusal is not None:
        raise GraphError(f"{act.words} of {sat.ranks} ranks: {refusal}")
    return use.write(use.table[name].program(act, group), sat.servers, use.transport)
