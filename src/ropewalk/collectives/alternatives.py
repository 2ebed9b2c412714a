"""What else runs on a fabric: collectives as libraries have them, each on the same group and over the best routes.

They show how far a schedule that was made for the fabric is ahead. Rank i is member i of the network.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ropewalk.collectives.act import EXCHANGES, Act
from ropewalk.collectives.group import group_on
from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.schedule import Schedule
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.errors import ProgramError

Alternatives = dict[str, Callable[[], Schedule]]
"""Schedules by the name of what makes them, built when they are called."""


def alternatives(network: Network, collective: str, *, root: int | None = None) -> Alternatives:
    """Everything that fits the collective and the group; a broadcast or reduce has its root, a host, at `root`.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import IdealSwitch
    >>> list(alternatives(network_of(IdealSwitch(6).build()), "allgather"))
    ['ring', 'best-ring', 'mesh', 'hips', 'bruck', 'pat', 'breadth-first']
    """
    known = [act.key for act in EXCHANGES]
    if collective not in known:
        raise ProgramError(f"no alternatives are known for {collective!r}: choose {', '.join(known)}")
    if not network.equal_shards and collective in ("allgather", "reducescatter"):
        raise ProgramError("the alternatives of this collective support equal shards only: leave the shards out")
    act, group = Act.of_key(collective), group_on(network, root)
    fitting = [COLLECTIVES[name] for name in COLLECTIVES.names_for(act, group)]
    return {one.name: partial(one.schedule, act, group) for one in fitting if act in one.in_libraries}
