"""How the groups of a gang sit in servers, and what a library chooses for each of them by size."""

from __future__ import annotations

import numpy as np

from ropewalk.collectives.nccl import Library, chosen
from ropewalk.collectives.over_servers import Servers
from ropewalk.errors import GraphError
from ropewalk.fabric import Fabric
from ropewalk.task.kinds import Settled
from ropewalk.task.lower.moves import Scope
from ropewalk.task.lower.roster import Roster
from ropewalk.task.seating import seat
from ropewalk.task.step import Act


class GroupChoices:
    """What a library chooses for the groups of one roster; how they sit is looked up once."""

    def __init__(self, roster: Roster, fabric: Fabric, library: Library | None) -> None:
        self.roster, self.library = roster, library
        self.server = np.arange(fabric.hosts, dtype=np.int32) if fabric.server is None else fabric.server
        self._sat: dict[tuple[Scope, int, int], tuple[Servers, ...]] = {}
        self._chosen: dict[tuple[Act, Scope, int, int, float], Settled] = {}

    def __call__(self, act: Act, scope: Scope, stage: int, peer: int, size_bytes: float) -> Settled:
        """The choice for each way in which groups of this scope sit."""
        key = act, scope, stage, peer, size_bytes
        if key not in self._chosen:
            self._chosen[key] = self._choose(act, (scope, stage, peer), size_bytes)
        return self._chosen[key]

    def _choose(self, act: Act, where: tuple[Scope, int, int], size_bytes: float) -> Settled:
        if self.library is None:
            raise GraphError("nccl chooses by the cluster it runs on: settle the use of the network first")
        if where not in self._sat:
            found = seat(self.roster.members(*where), self.server)
            self._sat[where] = tuple(one.servers for one in found.seatings)
        groups = [(servers, self.library.communicator(servers)) for servers in self._sat[where] if sum(servers) > 1]
        return tuple((servers, chosen(act, group, size_bytes)) for servers, group in groups)
