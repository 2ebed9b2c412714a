"""What an optimum is: a bandwidth that no schedule can beat, and the cut that says why."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.optimum.network import Network
from ropewalk.fabric import Fabric
from ropewalk.words import listed

MOST_NAMED = 6
"""Nodes and links that a sentence names."""


@dataclass(frozen=True)
class Cut:
    """A set of nodes that data has to leave, and the links it can leave by."""

    members: tuple[int, ...]
    """Hosts of the group inside, whose shards must come out (or, in a reduction, whose results must get in)."""
    forwarders: tuple[int, ...]
    """Other nodes inside: switches, and hosts that are not in the group."""
    links: tuple[int, ...]
    """Links of the fabric that data crosses the cut by."""
    limits: tuple[int, ...]
    """Hosts whose own limit is crossed instead of links of theirs."""
    capacity: Fraction
    """Bytes/s of all of them together."""

    def described(self, fabric: Fabric) -> str:
        """The cut in a sentence, with the names of the fabric."""
        inside = listed([fabric.node_names[node] for node in (*self.members, *self.forwarders)], MOST_NAMED)
        crossing = listed([fabric.link_name(link) for link in self.links], MOST_NAMED)
        limits = listed([f"limit of {fabric.node_names[host]}" for host in self.limits], MOST_NAMED)
        over = ", ".join(part for part in (crossing, limits) if part)
        return f"{len(self.members)} members ({inside}) share {float(self.capacity):.6g} bytes/s over {over}"


@dataclass(frozen=True)
class Optimum:
    """The best bandwidth of a collective on a fabric.

    `algbw` is size over time, where the size is the whole buffer: what an all-gather ends with on every rank, what a
    reduce-scatter starts with, what an all-reduce or a broadcast is about, and N times what a rank sends to each
    other one in an all-to-all.
    """

    collective: str
    algbw: Fraction | float
    """Bytes/s."""
    bottleneck: Cut | None
    """A cut that alone forbids more; None where only several cuts together do."""
    method: str
    exact: bool
    """Whether the fraction is proved, both that it can be reached and that nothing is better."""
    cuts: tuple[tuple[Cut, Fraction], ...] = ()
    """Cuts with weights that together forbid more, where one is not enough."""

    @property
    def seconds_per_byte(self) -> Fraction | float:
        return 1 / self.algbw

    def inverse_rate(self, ranks: int) -> Fraction | float:
        """Seconds in which every one of so many ranks moves one byte of its own: 1/x* of the literature."""
        return ranks / self.algbw


def cut_around(network: Network, inside: NDArray[np.bool_]) -> Cut:
    """The cut around a set of vertices."""
    arcs = network.leaving(inside)
    whole = np.flatnonzero(inside[: network.fabric.nodes])
    member = network.is_member[whole]
    limits = {int(network.node[network.tail[arc]]) for arc in arcs if not network.links[arc]}
    return Cut(
        members=tuple(whole[member].tolist()),
        forwarders=tuple(whole[~member].tolist()),
        links=tuple(sorted(link for arc in arcs for link in network.links[arc])),
        limits=tuple(sorted(limits)),
        capacity=network.bandwidth(network.capacity_of(arcs)),
    )
