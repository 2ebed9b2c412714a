"""Which members are neighbours, by which ways, and how many hops from member to member lie between any two.

Two members are neighbours where a shortest way between them, counted in links, passes no other member. On direct links
that is an arc; under one switch everybody is everybody's neighbour; on servers of GPUs the neighbours of a GPU are
those of its server and those of its rail. A hop between neighbours takes one round, however many switches it crosses.
Bytes spread over all shortest ways that pass no other member, at every node in proportion to the bandwidth of what
leads on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from ropewalk.collectives.optimum.network import Network
from ropewalk.collectives.optimum.rational import meant
from ropewalk.errors import ProgramError

Way = tuple[tuple[int, ...], Fraction]
"""Links in the order in which the data runs, and the share of the bytes that takes them."""

MOST_WAYS = 64
"""Ways of one pair of neighbours; where there are more, every pair takes some of them, other pairs take others."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The members of a network as a graph of hops; ranks are members in order."""

    network: Network
    hops: NDArray[np.int32]
    """[from rank, to rank]: rounds that data needs at least."""
    ways: dict[tuple[int, int], tuple[Way, ...]]
    """From rank to neighbouring rank."""

    @property
    def ranks(self) -> int:
        return len(self.network.members)

    @property
    def diameter(self) -> int:
        return int(self.hops.max())

    def into(self) -> list[list[int]]:
        """For every rank its neighbours that send to it."""
        before: list[list[int]] = [[] for _ in range(self.ranks)]
        for sender, receiver in self.ways:
            before[receiver].append(sender)
        return before


def neighbours_of(network: Network) -> Neighbours:
    """The graph of hops in the direction in which the network's data runs.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import Dgx, IdealSwitch, Ring
    >>> [neighbours_of(network_of(kind.build())).diameter for kind in (Ring(8), IdealSwitch(8), Dgx(2))]
    [4, 1, 2]
    """
    fabric = network.fabric
    ends = (fabric.link_src, fabric.link_dst)
    tail, head = (ends[1], ends[0]) if network.backwards else ends
    members = network.members
    to_go = _links_to_go(fabric.nodes, tail, head, members)
    direct = to_go[members]
    # A shortest way comes apart into stretches between the members on it, so these lengths give all others.
    whole = shortest_path(np.where(np.isfinite(direct), direct, 0.0), method="D")
    near = np.isfinite(direct) & (direct == whole)
    np.fill_diagonal(near, False)
    steps = shortest_path(near.astype(np.float64), method="D", unweighted=True)
    if not np.isfinite(steps).all():
        raise ProgramError(
            f"{fabric.name}: members cannot reach each other in both directions: add links or change the group"
        )
    walker = _Walker(network, tail, head, to_go)
    ways = {(int(w), int(u)): tuple(walker.ways(int(w), int(u))) for w, u in np.argwhere(near)}
    return Neighbours(network, steps.astype(np.int32), ways)


def _links_to_go(
    nodes: int, tail: NDArray[np.int32], head: NDArray[np.int32], members: NDArray[np.int64]
) -> NDArray[np.float64]:
    """[node, rank]: links from a node to a member by ways that pass no member; from a member, to others."""
    is_member = np.zeros(nodes, bool)
    is_member[members] = True
    inner = ~is_member[tail] & (tail != head)
    graph = csr_array((np.ones(int(inner.sum())), (tail[inner], head[inner])), shape=(nodes, nodes))
    to_go = np.full((nodes, len(members)), np.inf)
    to_go[members, np.arange(len(members))] = 0.0
    forwards = np.flatnonzero(~is_member)
    if len(forwards):
        to_go[forwards] = shortest_path(graph, method="D", unweighted=True, indices=forwards)[:, members]
    # Members are where ways end, until every way has been measured: then they get lengths of their own.
    own = np.full((nodes, len(members)), np.inf)
    leaving = is_member[tail] & (tail != head)
    np.minimum.at(own, tail[leaving], 1.0 + to_go[head[leaving]])
    own[members, np.arange(len(members))] = 0.0
    to_go[members] = own[members]
    return to_go


class _Walker:
    """Lists the ways between neighbours link by link."""

    def __init__(
        self, network: Network, tail: NDArray[np.int32], head: NDArray[np.int32], to_go: NDArray[np.float64]
    ) -> None:
        self.head = head.tolist()
        self.to_go = to_go
        self.members = network.members.tolist()
        self.is_member = network.is_member.tolist()
        self.backwards = network.backwards
        self.speed = [meant(speed) for speed in network.fabric.bandwidth.tolist()]
        self.known: dict[tuple[int, int, int], list[Way]] = {}
        self.leaving: list[list[int]] = [[] for _ in range(network.fabric.nodes)]
        for link, (u, v) in enumerate(zip(tail.tolist(), self.head, strict=True)):
            if u != v:
                self.leaving[u].append(link)

    def ways(self, sender: int, receiver: int) -> Iterator[Way]:
        """The ways from rank to rank; of more than `MOST_WAYS` some, which depend on the receiver."""
        for links, share in self._from(self.members[sender], receiver, MOST_WAYS):
            yield (links[::-1] if self.backwards else links), share

    def _from(self, node: int, receiver: int, most: int) -> list[Way]:
        key = (node, receiver, most)
        if key not in self.known:
            self.known[key] = self._listed(node, receiver, most)
        return self.known[key]

    def _listed(self, node: int, receiver: int, most: int) -> list[Way]:
        target = self.members[receiver]
        if node == target:
            return [((), Fraction(1))]
        left = self.to_go[node, receiver] - 1.0
        onward = [link for link in self.leaving[node] if self._is_next(self.head[link], target, receiver, left)]
        if len(onward) > most:
            onward = [onward[(node + receiver + place) % len(onward)] for place in range(most)]
        total = sum((self.speed[link] for link in onward), Fraction(0))
        return [
            ((link, *rest), share * part)
            for link, part in ((link, self.speed[link] / total) for link in onward)
            for rest, share in self._from(self.head[link], receiver, most // len(onward))
        ]

    def _is_next(self, node: int, target: int, receiver: int, left: float) -> bool:
        return node == target if self.is_member[node] else bool(self.to_go[node, receiver] == left)
