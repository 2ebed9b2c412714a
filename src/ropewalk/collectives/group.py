"""Who takes part in a collective and where they sit: all that the choice of an algorithm may depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.on_fabric import host_groups
from ropewalk.collectives.over_servers import Servers
from ropewalk.errors import ProgramError
from ropewalk.fabric import Fabric

if TYPE_CHECKING:
    from ropewalk.collectives.optimum.network import Network


@dataclass(frozen=True)
class Group:
    """Ranks server by server, and as much of the network around them as is known.

    >>> from ropewalk.fabric import Dgx
    >>> whole_fabric(Dgx(2, gpus=4).build()).servers
    (4, 4)
    """

    servers: Servers
    """How many ranks sit in each server."""
    leafs: tuple[int, ...] = ()
    """How many consecutive ranks sit under each leaf switch, where that is known."""
    block: int = 0
    """Consecutive ranks that a hierarchy takes together, where servers do not say so."""
    fabric: Fabric | None = None
    members: tuple[int, ...] = ()
    """The host of each rank; without any, rank i is host i of the fabric."""
    root: int = 0
    """The rank that a broadcast starts from or a reduce ends at."""
    own_paths: bool = True
    """Whether a collective may bring paths of its own; otherwise the network routes its sends."""
    segments: int = 1
    """Pieces in which a buffer follows itself down the trees of a schedule that is made for the network."""
    spare: bool = False
    """Whether a rank may have nothing to exchange and only serve the others."""
    given: Network | None = field(default=None, compare=False)

    @property
    def ranks(self) -> int:
        return sum(self.servers)

    @property
    def is_whole_fabric(self) -> bool:
        return self.fabric is not None and self.members in ((), tuple(range(self.fabric.hosts)))

    @cached_property
    def network(self) -> Network:
        """The network of the group: its members, and everything that forwards for them."""
        if self.given is not None:
            return self.given
        if self.fabric is None:
            raise ProgramError("the network of this group is unknown: give its fabric")
        from ropewalk.collectives.optimum import network_of  # loads Numba, which groups of servers alone do without

        return network_of(self.fabric, self.members or None)

    @cached_property
    def grid(self) -> NDArray[np.int64] | None:
        """Ranks with a row for each block that sits together; None where there are no equal blocks of two or more."""
        if self.given is not None:
            from ropewalk.collectives.blocks import blocks_of  # loads SciPy

            return blocks_of(self.given)
        size = self.block or (self.servers[0] if len(set(self.servers)) == 1 else 0)
        if not 1 < size < self.ranks or self.ranks % size:
            return None
        return np.arange(self.ranks).reshape(-1, size)


def whole_fabric(fabric: Fabric, *, own_paths: bool = False) -> Group:
    """All hosts of a fabric, rank i on host i."""
    servers, (_, block) = _servers(fabric, np.arange(fabric.hosts)), host_groups(fabric)
    return Group(servers, block=block, fabric=fabric, own_paths=own_paths, spare=True)


def group_on(network: Network, root: int | None = None) -> Group:
    """The members of a network in their order; a root is one of its hosts."""
    from ropewalk.collectives.best_ring import root_rank  # loads Numba

    return Group(
        _servers(network.fabric, network.members),
        fabric=network.fabric,
        members=tuple(network.members.tolist()),
        root=root_rank(network, root),
        given=network,
    )


def _servers(fabric: Fabric, members: NDArray[np.int64]) -> Servers:
    """Consecutive ranks in each server; where a server comes up twice, or none are known, every rank is one."""
    if fabric.server is None:
        return (1,) * len(members)
    runs = [(server, len(list(run))) for server, run in groupby(fabric.server[members].tolist())]
    if len({server for server, _ in runs}) < len(runs):
        return (1,) * len(members)
    return tuple(length for _, length in runs)
