"""What the groups of a plan meet for: which collective, among how many ranks on how many servers, over which sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.collectives.act import Act
from ropewalk.collectives.choice import collective_choice
from ropewalk.collectives.table import COLLECTIVES, beside
from ropewalk.plans import Plan
from ropewalk.task.seating import seat
from ropewalk.training.planned import step_of


@dataclass(frozen=True)
class GroupMeeting:
    """Groups of one purpose that sit alike in servers and run the same collective."""

    purpose: str
    """As in `--algorithm`: data, tensor, …"""
    act: Act
    name: str
    """Of the collective that runs."""
    ranks: tuple[int, ...]
    """The first of the groups, server by server, as its collective numbers them."""
    servers: tuple[int, ...]
    """How many of its ranks sit in each of its servers."""
    groups: int
    least_bytes: int
    most_bytes: int
    along_cables: bool = False
    """Do its rings follow the cables of a network that was designed, in an order of their own?"""

    def takes_over(self, other: GroupMeeting) -> bool:
        """Would a library that sees collective, ranks and size, from the smallest of these on, run the other alike?"""
        return self.act is other.act and len(self.ranks) == len(other.ranks) and self.least_bytes <= other.most_bytes


def meetings_of(plan: Plan) -> list[GroupMeeting]:
    """By purpose, act and seats in servers, in the order in which they first happen.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse
    >>> from ropewalk.strategy import Strategy
    >>> plan = Plan(ModelUse("gpt2", 64), read_cluster("2x4"), Strategy(data=2, tensor=4))
    >>> [(one.purpose, one.act.words, one.name, one.servers, one.groups) for one in meetings_of(plan)]
    [('tensor', 'all-reduce', 'ring', (4,), 2), ('data', 'all-reduce', 'ring', (1, 1), 4)]
    """
    step = step_of(plan)
    choice = collective_choice(plan.communication.algorithm)
    server = np.repeat(np.arange(len(plan.cluster.server_sizes), dtype=np.int32), plan.cluster.server_sizes)
    seated = seat(step.groups, server)
    met = np.flatnonzero((step.act >= Act.ALL_REDUCE) & (step.act != Act.BARRIER))
    alike = np.column_stack([step.stream[met], step.act[met], seated.seating_of[step.group[met]]])
    kinds, first, kind = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    made = []
    for number in np.argsort(first).tolist():
        stream, act, seating = kinds[number].tolist()
        sat, operations = seated.seatings[seating], met[kind.ravel() == number]
        if sat.ranks == 1:
            continue
        runs = _collective(choice.name_for(step.streams[stream]), Act(act))
        row = seated.row[step.group[operations[0]]]
        each = step.amount[operations] / step.repeats[operations]
        made.append(
            GroupMeeting(
                step.streams[stream],
                Act(act),
                runs,
                tuple(sat.members[row].tolist()),
                sat.servers,
                len(np.unique(step.group[operations])),
                int(each.min()),
                int(each.max()),
                along_cables=plan.designed is not None and runs == "ring" and len(sat.servers) > 1,
            )
        )
    return made


def _collective(name: str, act: Act) -> str:
    """What an act runs where a collective was chosen that may not have it."""
    return name if act in COLLECTIVES[name].make else beside(act)
