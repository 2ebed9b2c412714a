"""Thinner links between switches: what crosses the core once need not be given the whole core.

Trees that cross between leaves once and spread inside need little of a wide core. Taking away what they do not need
makes the direct ways that are left point the right way: most of them inside, one for each tree across.
"""

from __future__ import annotations

from ropewalk.collectives.forest.demand import CapacityGraph


def thinned(wiring: CapacityGraph) -> CapacityGraph:
    """The wiring with arcs between switches as thin as all trees allow, all in the same proportion.

    Where rounding that proportion would make a switch receive more than it sends, nothing is taken away.
    """
    members = set(wiring.members)
    between = {ends: amount for ends, amount in wiring.capacity.items() if not members.intersection(ends)}
    widest = max(between.values(), default=0)

    def cut_to(part: int) -> dict[tuple[int, int], int]:
        return {ends: amount * part // widest - amount for ends, amount in between.items()}

    low, high = 0, widest
    while low < high:
        part = (low + high) // 2
        if wiring.shortfall(cut_to(part), wiring.members) is None:
            high = part
        else:
            low = part + 1
    changes = cut_to(high) if between else {}
    surplus: dict[int, int] = {}
    for (u, v), change in changes.items():
        surplus[u] = surplus.get(u, 0) - change
        surplus[v] = surplus.get(v, 0) + change
    if any(surplus.values()):
        changes = {}
    thin = CapacityGraph(wiring.vertices, dict(wiring.trees), wiring.members, wiring.unit)
    for ends, ways in wiring.ways.items():
        for path, amount in ways:
            thin.add(path, amount + changes.get(ends, 0))
    return thin
