"""Which cables of a wiring belong to rings, and which were laid for pairs or for short ways."""

from __future__ import annotations

from collections import Counter

from ropewalk.fabric.wiring import Wiring

Ends = tuple[int, int]


def ring_cables(wiring: Wiring) -> Counter[Ends]:
    """How many cables of each pair belong to rings; duplex pairs with the lower server first.

    >>> from ropewalk.fabric.wiring import GroupRings
    >>> ring_cables(Wiring(4, 2, True, 1.0, 0.0, (GroupRings(4, (1,)),), ((0, 1, 1),), 2, 0))[0, 3]
    1
    """
    found: Counter[Ends] = Counter()
    for rings in wiring.rings:
        if rings.wired:
            for jump in rings.jumps:
                found.update(ends for ends, _ in wiring.ring_cables(rings.size, jump))
    return found


def cables_by_kind(wiring: Wiring) -> tuple[list[tuple[Ends, int]], list[tuple[Ends, int]]]:
    """(cables of rings, all others), each with how many."""
    rings, others = [], []
    of_rings = ring_cables(wiring)
    for a, b, count in wiring.cables:
        mine = min(of_rings[a, b], count)
        if mine:
            rings.append(((a, b), mine))
        if count > mine:
            others.append(((a, b), count - mine))
    return rings, others
