"""All-gather and reduce-scatter: the narrowest cut for the shards behind it, exactly, by a few maximum flows.

The shards of a set S of nodes must leave it over the links that lead out of it, so an all-gather takes at least
max over S of w(S) / B(S) for shards w, where S does not hold all members. Forests of trees reach that bound where
every switch can send what it receives (ForestColl, arXiv 2402.06787). A reduce-scatter is an all-gather backwards.

The maximum is found by Newton's (Dinkelbach's) iteration: at a time p/q per unit of shard, a member v lacks nothing
if a flow of q W reaches it from a source that feeds q w(u) into every member u, over links of p c. Where less gets
through, the cut that stops it has a larger ratio, and that ratio is the next p/q. Earlier members stay satisfied.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk.collectives.optimum.network import Network


class Ratio(NamedTuple):
    """The largest ratio of shards to capacity, and a set of vertices that has it."""

    value: Fraction
    """Whole shards a unit of capacity, see `Network.weight` and `Network.unit`."""
    inside: NDArray[np.bool_]


def largest_ratio(network: Network) -> Ratio:
    """The cut with the most shards behind the least capacity, of all cuts that leave out a member.

    >>> from ropewalk.collectives.optimum.modelling import network_of
    >>> from ropewalk.fabric import Torus
    >>> largest_ratio(network_of(Torus((4, 4)).build())).value
    Fraction(15, 4)
    """
    best = _around_one_member(network)
    total = network.total_weight
    sinks = network.sinks
    while len(sinks):
        p, q = best.value.numerator, best.value.denominator
        capacity = [p * c for c in network.capacity] + [q * w for w in network.weight]
        shortfall = network.flow_network.first_shortfall(capacity, network.vertices, sinks, q * total)
        if shortfall is None:
            break
        inside = shortfall.source_side[: network.vertices]
        better = Ratio(Fraction(network.weight_in(inside), network.capacity_of(network.leaving(inside))), inside)
        assert better.value > best.value, "a cut that stops the flow has a larger ratio"
        best = better
        sinks = sinks[shortfall.position :]
    return best


def _around_one_member(network: Network) -> Ratio:
    """The largest ratio among cuts that leave out a single member: where the iteration starts."""
    entering = np.zeros(network.vertices, object)
    np.add.at(entering, network.head, np.array(network.capacity, object))
    ratios = [
        Fraction(network.total_weight - weight, int(entering[member]))
        for member, weight in zip(network.members, network.weight, strict=True)
    ]
    first = max(range(len(ratios)), key=ratios.__getitem__)
    inside = np.ones(network.vertices, np.bool_)
    inside[network.members[first]] = False
    return Ratio(ratios[first], inside)
