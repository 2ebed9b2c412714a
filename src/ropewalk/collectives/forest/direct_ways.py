"""Direct ways: how data gets from one member to others through switches alone, one way for every set of arcs used."""

from __future__ import annotations

from ropewalk.collectives.forest.demand import Path
from ropewalk.collectives.optimum.network import Network

Usage = tuple[int, ...]
"""The classes of the arcs along a way, in rising order."""


def direct_ways(network: Network, start: int) -> dict[Usage, dict[int, Path]]:
    """Shortest ways from a member to others by each of its arcs, by what they use and where they end.

    Of ways that use arcs of the same classes, one is as good as the other.

    >>> from ropewalk.collectives.optimum import network_of
    >>> from ropewalk.fabric import Ring
    >>> direct_ways(network_of(Ring(4).build()), 0)
    {(0,): {1: (0, 1)}, (1,): {3: (0, 3)}}
    """
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(network.vertices)]
    classes = network.arc_class.tolist()
    for tail, head, kind in zip(network.tail.tolist(), network.head.tolist(), classes, strict=True):
        leaving[tail].append((head, kind))
    is_member = network.is_member.tolist()
    found: dict[Usage, dict[int, Path]] = {}
    for first, kind in leaving[start]:
        layer: dict[int, dict[Usage, Path]] = {first: {(kind,): (start, first)}}
        seen = {start}
        while layer:
            seen.update(layer)
            further: dict[int, dict[Usage, Path]] = {}
            for vertex, ways in layer.items():
                if is_member[vertex]:
                    for usage, path in ways.items():
                        found.setdefault(usage, {}).setdefault(vertex, path)
                    continue
                for head, next_kind in leaving[vertex]:
                    if head in seen:
                        continue
                    there = further.setdefault(head, {})
                    for usage, path in ways.items():
                        there.setdefault(tuple(sorted((*usage, next_kind))), (*path, head))
            layer = further
    return found
