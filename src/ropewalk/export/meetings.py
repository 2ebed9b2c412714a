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
class Meeting:
    """Groups of one purpose and size that run the same collective."""

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


def meetings_of(plan: Plan) -> list[Meeting]:
    """By purpose, act and number of ranks, in the order in which they first happen.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse
    >>> from ropewalk.strategy import Strategy
    >>> plan = Plan(ModelUse("gpt2", 64), read_cluster("2x4"), Strategy(data=2, tensor=4))
    >>> [(one.purpose, one.act.words, one.name, one.servers, one.groups) for one in meetings_of(plan)]
    [('tensor', 'all-reduce', 'ring', (4,), 2), ('data', 'all-reduce', 'ring', (1, 1), 4)]
    """
    step = step_of(plan)
    choice = collective_choice(plan.communication.algorithm)
    met = np.flatnonzero((step.act >= Act.ALL_REDUCE) & (step.act != Act.BARRIER))
    server = np.repeat(np.arange(len(plan.cluster.server_sizes), dtype=np.int32), plan.cluster.server_sizes)
    sizes = np.array([len(group) for group in step.groups])
    found: dict[tuple[int, int, int], list[int]] = {}
    for operation in met.tolist():
        size = int(sizes[step.group[operation]])
        if size > 1:
            found.setdefault((int(step.stream[operation]), int(step.act[operation]), size), []).append(operation)
    made = []
    for (stream, number, _), operations in found.items():
        act, purpose = Act(number), step.streams[stream]
        name = choice.name_for(purpose)
        each = step.amount[operations] / step.repeats[operations]
        sat = seat([step.groups[step.group[operations[0]]]], server).seatings[0]
        runs = name if act in COLLECTIVES[name].make else beside(act)
        groups = len(np.unique(step.group[operations]))
        span = int(each.min()), int(each.max())
        laid = plan.designed is not None and runs == "ring" and len(sat.servers) > 1
        made.append(Meeting(purpose, act, runs, tuple(sat.members[0].tolist()), sat.servers, groups, *span, laid))
    return made
