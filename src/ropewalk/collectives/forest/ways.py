"""The ways between hosts that send to each other, with exact shares: what routes say in floating point.

Trees that use the same pair of hosts share its ways in proportion to their rates. Where two nodes are joined by several
links, these share the load in proportion to their bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from ropewalk.collectives.forest.strands import WHOLE, Arc, Trail, TreeStrand
from ropewalk.collectives.optimum.rational import common_unit, meant
from ropewalk.fabric import Fabric
from ropewalk.routing import Routes
from ropewalk.routing.routes import make_routes

Way = tuple[tuple[int, ...], Fraction]
"""Links in the order of travel, and the share of the bytes that take them."""

Ways = dict[Arc, tuple[Way, ...]]
"""For every (sender, receiver) the paths of its bytes, whose shares sum to 1."""

NOTHING = Fraction(0)


def ways_of(fabric: Fabric, spreading: Sequence[TreeStrand], reducing: Sequence[TreeStrand]) -> Ways:
    """The paths of all arcs: from parent to child where strands spread, from child to parent where they reduce."""
    # Amounts are whole numbers of one unit: a thousand hosts have millions of arcs, and fractions are slow to add.
    unit = common_unit(_amounts((*spreading, *reducing)))
    amounts: dict[Arc, dict[Trail, int]] = {}
    for strands, reverse in ((spreading, False), (reducing, True)):
        for strand in strands:
            whole = int(strand.rate / unit)
            for (parent, child), trails in zip(strand.arcs, strand.trails, strict=True):
                known = amounts.setdefault((child, parent) if reverse else (parent, child), {})
                for trail, part in trails:
                    amount = whole if part is WHOLE else int(part * whole)
                    known[trail] = known.get(trail, 0) + amount
    return shared_ways(fabric, amounts)


def shared_ways(fabric: Fabric, amounts: Mapping[Arc, Mapping[Trail, int] | Mapping[Trail, Fraction]]) -> Ways:
    """The paths of every (sender, receiver), from the amounts that take each trail."""
    return {ends: _shared(fabric, trails) for ends, trails in sorted(amounts.items())}


def _amounts(strands: Sequence[TreeStrand]) -> Iterator[Fraction]:
    for strand in strands:
        yield strand.rate
        yield from (part * strand.rate for trails in strand.trails for _, part in trails if part is not WHOLE)


def routes_of(fabric: Fabric, ways: Ways) -> Routes:
    """The same ways as routes."""
    paths = [(pair, links, share) for pair, ways_of_pair in enumerate(ways.values()) for links, share in ways_of_pair]
    return make_routes(
        fabric,
        np.array([src for src, _ in ways], np.int32),
        np.array([dst for _, dst in ways], np.int32),
        np.array([pair for pair, _, _ in paths], np.int64),
        np.array([float(share) for _, _, share in paths], np.float64),
        np.repeat(np.arange(len(paths)), [len(links) for _, links, _ in paths]),
        np.array([link for _, links, _ in paths for link in links], np.int32),
    )


def _shared(fabric: Fabric, trails: Mapping[Trail, int] | Mapping[Trail, Fraction]) -> tuple[Way, ...]:
    total = sum(trails.values())
    shares: dict[tuple[int, ...], Fraction] = {}
    for trail, amount in trails.items():
        share = Fraction(amount, total)
        for links, part in _over_parallel_links(fabric, trail):
            shares[links] = shares.get(links, NOTHING) + part * share
    return tuple(shares.items())


def _over_parallel_links(fabric: Fabric, trail: Trail) -> list[Way]:
    """A trail as ways along single links: the load is laid out from 0 to 1, and each bunch of links divides it."""
    if all(len(bunch) == 1 for bunch in trail):
        return [(tuple(bunch[0] for bunch in trail), WHOLE)]
    ends = [_ends(fabric, bunch) for bunch in trail]
    borders = sorted({border for of_bunch in ends for border in of_bunch})
    ways, low = [], Fraction(0)
    for high in borders:
        # The link of a bunch whose part of the load ends last before, or at, the end of this stretch.
        links = (bunch[sum(end < high for end in of_bunch)] for bunch, of_bunch in zip(trail, ends, strict=True))
        ways.append((tuple(links), high - low))
        low = high
    return ways


def _ends(fabric: Fabric, bunch: tuple[int, ...]) -> list[Fraction]:
    """Where the part of the load that each link of a bunch carries ends; the last ends at 1."""
    speeds = [meant(float(fabric.bandwidth[link])) for link in bunch]
    total = sum(speeds, Fraction(0))
    return [sum(speeds[: place + 1], Fraction(0)) / total for place in range(len(bunch))]
