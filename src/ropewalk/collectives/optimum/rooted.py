"""Broadcast and reduce: as fast as the narrowest cut between the root and any other member (Edmonds 1973)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ropewalk.collectives.optimum.gather import Ratio
from ropewalk.collectives.optimum.maxflow import FlowNetwork
from ropewalk.collectives.optimum.network import Network


def narrowest_cut_from(network: Network, root: int) -> Ratio:
    """The least of all maximum flows from a host to the other members, and the cut that limits it.

    >>> from ropewalk.collectives.optimum.modelling import network_of
    >>> from ropewalk.fabric import Mesh
    >>> narrowest_cut_from(network_of(Mesh((3, 3)).build()), 4).value
    Fraction(2, 1)
    """
    flows = FlowNetwork(network.vertices, network.tail, network.head)
    others = network.members[network.members != root]
    best = flows.cut(network.capacity, root, int(others[0]))
    at = 1
    while at < len(others):
        narrower = flows.first_shortfall(network.capacity, root, others[at:], best.flow)
        if narrower is None:
            break
        best, at = narrower, at + narrower.position + 1
    return Ratio(Fraction(best.flow), np.asarray(best.source_side))


def narrowest_between_members(network: Network) -> Fraction:
    """The least flow from any member to any other one: no cut between two members is narrower.

    >>> from ropewalk.collectives.optimum.modelling import network_of
    >>> from ropewalk.fabric import Mesh
    >>> narrowest_between_members(network_of(Mesh((3, 3)).build()))
    Fraction(2, 1)
    """
    first = int(network.members[0])
    return min(narrowest_cut_from(one_way, first).value for one_way in (network, network.reversed()))
