"""From whole capacities to trees: which of the ways to build them is used, the shallow and fast ones first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ropewalk.collectives.forest.demand import CapacityGraph
from ropewalk.collectives.forest.everyone import by_way_of_everyone, straight_to_everyone
from ropewalk.collectives.forest.layers import layered
from ropewalk.collectives.forest.packing import Bundle, deepest, packed, packed_together
from ropewalk.collectives.forest.servers import by_servers
from ropewalk.collectives.forest.splitting import split_by_guesses, split_switches
from ropewalk.collectives.forest.thinning import thinned
from ropewalk.collectives.optimum.network import Network

_PACKED_AGAIN_UP_TO = 32
"""Members up to which trees are packed over all direct ways that were found, for the shallowest."""
_TOGETHER_UP_TO = 64
"""Trees up to which they are also packed all together, which is slow."""
_BY_WAY_OF_UP_TO = 128
"""Members up to which a broadcast goes through all of them: it has that many trees."""


def bundles_of(network: Network, wiring: CapacityGraph) -> tuple[CapacityGraph, list[Bundle]]:
    """Trees that fill a wiring, with the wiring they take their ways from.

    In one hop where the fabric has room for that, or in two from a single root; from server to server; in layers, over
    direct ways that keep to leaves and servers, or over those that a wide core allows; and as they can be packed where
    layers do not do.
    """
    if not network.is_member.all():
        straight = straight_to_everyone(wiring)
        if straight is None and len(wiring.trees) == 1 and len(wiring.members) <= _BY_WAY_OF_UP_TO:
            straight = by_way_of_everyone(wiring)
        if straight is not None:
            return straight
        if len(wiring.members) > _PACKED_AGAIN_UP_TO and (over_servers := by_servers(wiring)) is not None:
            return over_servers
    split = []
    for each in _split(network, wiring):
        if (bundles := layered(each)) is not None:
            return each, bundles
        split.append(each)
    if len(wiring.members) > _PACKED_AGAIN_UP_TO:
        return split[0], packed(split[0])
    ways_to_pack = (packed, packed_together) if wiring.total <= _TOGETHER_UP_TO else (packed,)
    tried = [(each, pack(each)) for each in split for pack in ways_to_pack]
    return min(tried, key=lambda pair: deepest(pair[1]))


def _split(network: Network, wiring: CapacityGraph) -> Iterator[CapacityGraph]:
    """Wirings without switches: those that guesses lead to, or the one that splitting pair by pair leads to."""
    if network.is_member.all():
        yield wiring
        return
    outermost_first = _outermost_first(network)
    guessed = False
    inwards, outwards, meshed = thinned(wiring), wiring.copy(), wiring.copy()
    if split_by_guesses(inwards, outermost_first[::-1]):
        guessed = True
        yield inwards
    if split_by_guesses(outwards, outermost_first):
        guessed = True
        yield outwards
    if len(wiring.members) <= _PACKED_AGAIN_UP_TO and split_by_guesses(meshed, outermost_first, rails=False):
        guessed = True
        yield meshed
    if not guessed:
        split_switches(wiring, outermost_first)
        yield wiring


def _outermost_first(network: Network) -> list[int]:
    """Switches by falling tier, then those without hosts, then slow ones: what is left keeps the servers together."""
    level = network.fabric.level[network.node]
    touches = np.zeros(network.vertices, np.bool_)
    touches[network.tail[network.is_member[network.head]]] = True
    fastest = [0] * network.vertices
    for tail, capacity in zip(network.tail.tolist(), network.capacity, strict=True):
        fastest[tail] = max(fastest[tail], capacity)
    others = np.flatnonzero(~network.is_member).tolist()
    return sorted(others, key=lambda v: (-int(level[v]), bool(touches[v]), fastest[v], v))
