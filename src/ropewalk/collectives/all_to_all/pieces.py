"""Few equal pieces for every pair: what a program of equal chunks can carry of amounts that are any fractions.

Amounts with a small common unit become pieces without loss. Otherwise every pair gets the whole pieces that its ways
are worth, and each piece that is left goes the way whose fullest arc it fills least. The rate of the result is
computed exactly, so that a schedule promises what its pieces reach and not what the fractions would.
"""

from __future__ import annotations

import math

from ropewalk.collectives.all_to_all.paths import PairPaths
from ropewalk.errors import ProgramError

Way = tuple[int, tuple[int, ...]]


def in_pieces(paths: PairPaths, most: int) -> PairPaths:
    """The ways with amounts in pieces, at most so many for each pair."""
    if most < 1:
        raise ProgramError(f"{most} pieces of a pair carry nothing: give at least 1")
    unit = math.gcd(paths.whole, *paths.amount)
    if paths.whole // unit <= most:
        return paths.with_amounts([amount // unit for amount in paths.amount], paths.whole // unit)
    return _rounded(paths, most)


def _rounded(paths: PairPaths, pieces: int) -> PairPaths:
    arc_class = paths.network.arc_class
    limit: dict[int, int] = {}
    for number, capacity in zip(arc_class.tolist(), paths.network.capacity, strict=True):
        limit[number] = limit.get(number, 0) + capacity
    classes = arc_class[paths.arc].tolist()
    start = paths.arc_start.tolist()
    way = [classes[start[path] : start[path + 1]] for path in range(paths.paths)]
    given = [amount * pieces // paths.whole for amount in paths.amount]
    load = dict.fromkeys(limit, 0)
    of_pair: dict[tuple[int, int], list[int]] = {}
    for path, pair in enumerate(zip(paths.source.tolist(), paths.destination.tolist(), strict=True)):
        of_pair.setdefault(pair, []).append(path)
        for number in way[path]:
            load[number] += given[path]
    for own in of_pair.values():
        for _ in range(pieces - sum(given[path] for path in own)):
            chosen = min(own, key=lambda path: max((load[number] + 1) / limit[number] for number in way[path]))
            given[chosen] += 1
            for number in way[chosen]:
                load[number] += 1
    return paths.with_amounts(given, pieces)
