"""An order of the servers in which regular rings fit the groups of a step: as many bytes as possible on cosets.

Rings are laid over cosets (`cosets.py`), but ranks are numbered as their framework numbers them: replicas of a stage on
neighbouring servers, say. Before the cables are laid no server has a place yet, so places are given such that groups
become cosets, groups with the most bytes first. Groups that cross those (tensor parallelism over two servers beside
data parallelism over all, say) cannot be cosets as well. Their rings are fixed instead, member after member, and count
as bytes between pairs, for which cables are laid by matchings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ropewalk.codesign.cosets import is_coset
from ropewalk.codesign.demands import Demands, GroupSum


def on_cosets(demands: Demands, *, duplex: bool) -> tuple[Demands, tuple[int, ...]]:
    """The demands as servers in their places have them, all sums over cosets; and the place of every server.

    >>> blocks = GroupSum((0, 1, 2, 3), 8.0), GroupSum((4, 5, 6, 7), 8.0), GroupSum((0, 4), 2.0)
    >>> placed, places = on_cosets(Demands(8, blocks, np.zeros((8, 8))), duplex=True)
    >>> places, [group.servers for group in placed.sums], float(placed.pairs.sum())
    ((0, 2, 4, 6, 1, 3, 5, 7), [(0, 2, 4, 6), (1, 3, 5, 7)], 4.0)
    """
    kept: list[GroupSum] = []
    fixed: list[GroupSum] = []
    places = tuple(range(demands.servers))
    families = _families(demands.sums)
    for family in sorted(families, key=lambda one: -sum(group.wire_bytes for group in one)):
        found = _places(demands.servers, [*kept, *family], places)
        if found is None:
            fixed += family
        else:
            kept, places = [*kept, *family], found
    pairs = demands.pairs.copy()
    for group in fixed:
        members = np.array(group.servers)
        hop = group.wire_bytes / len(members) / (2 if duplex else 1)
        for onward in (1, -1) if duplex else (1,):
            pairs[members, np.roll(members, -onward)] += hop
    seats = (GroupSum(tuple(places[server] for server in group.servers), group.size_bytes) for group in kept)
    placed = np.zeros_like(pairs)
    placed[np.ix_(places, places)] = pairs
    return Demands(demands.servers, tuple(seats), placed), places


def _families(sums: Sequence[GroupSum]) -> list[list[GroupSum]]:
    """Groups of one size that share no server, as groups of one purpose do."""
    families: list[tuple[list[GroupSum], set[int]]] = []
    for group in sums:
        for family, taken in families:
            if len(family[0].servers) == len(group.servers) and taken.isdisjoint(group.servers):
                family.append(group)
                taken.update(group.servers)
                break
        else:
            families.append(([group], set(group.servers)))
    return [family for family, _ in families]


def _places(servers: int, groups: list[GroupSum], places: tuple[int, ...]) -> tuple[int, ...] | None:
    """Places at which all groups are cosets in their own order; those of before where they do."""
    if _fit(servers, groups, places):
        return places
    found = [0] * servers
    members = sorted({frozenset(group.servers) for group in groups}, key=lambda group: (-len(group), min(group)))
    _spread(list(range(servers)), members, range(servers), found)
    return tuple(found) if _fit(servers, groups, tuple(found)) else None


def _spread(servers: list[int], groups: list[frozenset[int]], places: range, found: list[int]) -> None:
    """Give `servers` the places of an arithmetic progression so that groups among them get progressions in it.

    That works where groups nest: two either share no server or one contains the other, and each size divides the next.
    """
    inside = [group for group in groups if group <= set(servers) and len(group) < len(servers)]
    if not inside or len(servers) % len(inside[0]):
        for server, place in zip(servers, places, strict=True):
            found[server] = place
        return
    size = len(inside[0])
    # Servers of one group stand together, larger groups first, so that cutting into blocks cuts no group.
    ordered = list(dict.fromkeys([server for group in inside for server in sorted(group)] + servers))
    parts = len(servers) // size
    for part in range(parts):
        _spread(ordered[part * size : (part + 1) * size], inside, places[part::parts], found)


def _fit(servers: int, groups: list[GroupSum], places: tuple[int, ...]) -> bool:
    return all(_goes_round(servers, [places[server] for server in group.servers]) for group in groups)


def _goes_round(servers: int, coset: list[int]) -> bool:
    """Is it a coset whose members ascend, beginning anywhere?"""
    steps = {(b - a) % servers for a, b in zip(coset, [*coset[1:], coset[0]], strict=True)}
    return is_coset(servers, coset) and steps == {servers // len(coset) % servers}
