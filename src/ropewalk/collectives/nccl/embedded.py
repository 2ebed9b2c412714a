"""Rings along the links of a server whose GPUs are joined directly, as NCCL lays them.

On a DGX-1 some pairs of GPUs have two NVLinks, some one and most none. NCCL looks for rings through all GPUs that use
every link at most once in each direction: three on the V100s, each run both ways, fill all six NVLinks of every GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ropewalk.fabric import Fabric

Cycles = tuple[tuple[int, ...], ...]
"""Orders in which rings visit the ranks of a group."""
MOST_SEARCHED = 8
"""GPUs of a server up to which rings are searched."""
MOST_TRIED = 1000
"""Sets of rings that are looked at."""


def joined_directly(fabric: Fabric) -> bool:
    """Have some GPUs links to each other, without a switch between them?"""
    return bool(((fabric.link_src < fabric.hosts) & (fabric.link_dst < fabric.hosts)).any())


def rings_along_links(fabric: Fabric, hosts: NDArray[np.int32]) -> Cycles:
    """As many rings through these hosts as their links have room for; none where a switch joins them.

    >>> from ropewalk.fabric import Torus
    >>> rings_along_links(Torus((2, 4)).build(), np.array([0, 1, 2, 3], np.int32))
    ((0, 1, 2, 3),)
    """
    many = len(hosts)
    if not 2 < many <= MOST_SEARCHED or not joined_directly(fabric):
        return ()
    place = np.full(fabric.nodes, -1)
    place[hosts] = np.arange(many)
    src, dst = place[fabric.link_src], place[fabric.link_dst]
    both = (src >= 0) & (dst >= 0)
    speed = np.zeros((many, many))
    np.add.at(speed, (src[both], dst[both]), fabric.bandwidth[both])
    if not speed.any():
        return ()
    lanes = np.floor(np.minimum(speed, speed.T) / speed[speed > 0].min() + 1e-9).astype(int)
    return _packed(tuple(map(tuple, lanes.tolist())))


@lru_cache(maxsize=256)
def _packed(lanes: tuple[tuple[int, ...], ...]) -> Cycles:
    """The most rings that use no pair more often than it has lanes, the first found of them."""
    most = min(sum(row) for row in lanes) // 2
    best: list[tuple[int, ...]] = []
    for found in islice(_packings(np.array(lanes), list(_cycles(lanes)), 0, ()), MOST_TRIED):
        best = list(found) if len(found) > len(best) else best
        if len(best) == most:
            break
    return tuple(best)


def _packings(left: NDArray[np.int64], cycles: list[tuple[int, ...]], first: int, taken: Cycles) -> Iterator[Cycles]:
    """Sets of rings, each as large as it gets, in the order of the rings."""
    grown = False
    for at in range(first, len(cycles)):
        ends = np.array(cycles[at]), np.roll(cycles[at], -1)
        if (left[ends] > 0).all():
            rest = left.copy()
            rest[ends] -= 1
            rest[ends[::-1]] -= 1
            grown = True
            yield from _packings(rest, cycles, at, (*taken, cycles[at]))
    if not grown:
        yield taken


def _cycles(lanes: tuple[tuple[int, ...], ...]) -> Iterator[tuple[int, ...]]:
    """All rings through all ranks, each in one direction, from rank 0 on."""

    def go_on(path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(path) == len(lanes):
            if lanes[path[-1]][0] and path[1] < path[-1]:
                yield path
            return
        for one in range(1, len(lanes)):
            if one not in path and lanes[path[-1]][one]:
                yield from go_on((*path, one))

    yield from go_on((0,))
