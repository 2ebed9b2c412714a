"""A fibre breaks: how rings are closed without it, what a step then costs, and what a spare port gives back.

First aid needs no hands: the hop that lost its cable goes another way over cables that are still there, over one laid
for pairs where that is as short, since rings are the busy ones. Until a robot has patched a spare port, that is how
the job runs. With a spare port at both ends the wiring is the same graph again, over other ports.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ropewalk.codesign.evaluate import time_step
from ropewalk.codesign.network import StepNetwork
from ropewalk.codesign.rings import ring_cables
from ropewalk.errors import FabricError
from ropewalk.fabric import Fabric
from ropewalk.fabric.wiring import Wiring
from ropewalk.routing import Router, Routes, make_routes
from ropewalk.task.step import Step

PATCH_S = 180.0
"""Seconds until a robot has moved a fibre of a patch panel: minutes, as their makers say."""


@dataclass(frozen=True)
class FibreFailure:
    """What one broken fibre does to a step, and for how long."""

    cable: tuple[int, int]
    detour: tuple[int, ...]
    """Servers that the ring now passes between the two ends, ends included; just the ends where a parallel cable is
    left."""
    over_pair_cable: bool
    """Does the detour use a cable that belongs to no ring?"""
    before_s: float
    degraded_s: float
    repatched_s: float | None
    """A step after spare ports were patched; None where an end has none."""
    patch_s: float

    @property
    def slow_down(self) -> float:
        return self.degraded_s / self.before_s

    @property
    def lost_s(self) -> float:
        """Training time that is lost until the spare ports are patched."""
        return self.patch_s * (1 - self.before_s / self.degraded_s)


def without_cable(wiring: Wiring, a: int, b: int) -> Wiring:
    """The wiring after one cable between two servers broke; rings keep their order, the broken hop has no cable."""
    ends = (min(a, b), max(a, b)) if wiring.duplex else (a, b)
    if ends not in {cable[:2] for cable in wiring.cables}:
        raise FabricError(f"no cable joins server {a} and server {b}: name one that the wiring has")
    cables = tuple(
        (low, high, count - ((low, high) == ends))
        for low, high, count in wiring.cables
        if count > 1 or (low, high) != ends
    )
    return replace(wiring, cables=cables)


def detour(wiring: Wiring, a: int, b: int) -> tuple[int, ...]:
    """The way from a to b with the fewest hops; of equal ones that over the fewest cables of rings, then the lowest
    servers."""
    of_rings = ring_cables(wiring)
    beside: dict[int, list[tuple[int, int]]] = {server: [] for server in range(wiring.servers)}
    for low, high, count in wiring.cables:
        only_rings = int(of_rings[low, high] >= count)
        beside[low].append((high, only_rings))
        if wiring.duplex:
            beside[high].append((low, only_rings))
    heap: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, (a,))]
    seen: set[int] = set()
    while heap:
        hops, busy, way = heapq.heappop(heap)
        if way[-1] == b:
            return way
        if way[-1] in seen:
            continue
        seen.add(way[-1])
        for onward, only_rings in beside[way[-1]]:
            if onward not in seen:
                heapq.heappush(heap, (hops + 1, busy + only_rings, (*way, onward)))
    raise FabricError(f"without that cable server {b} cannot be reached from server {a}: patch a spare port first")


def break_fibre(
    step: Step,
    wiring: Wiring,
    router_of: Callable[[Wiring], Router],
    cable: tuple[int, int],
    *,
    spare_ports: int = 1,
    patch_s: float = PATCH_S,
) -> FibreFailure:
    """Run a step before and after a cable breaks; `router_of` routes any wiring."""
    a, b = cable
    rings = wiring.ring_orders
    broken = without_cable(wiring, a, b)
    ways = [detour(broken, a, b), *([detour(broken, b, a)] if wiring.duplex else [])]
    aided = _with_ways(router_of(broken), ways)
    before = time_step(step, StepNetwork("whole", wiring.fabric(), router_of(wiring), rings)).seconds
    degraded = time_step(step, StepNetwork("broken", broken.fabric(), aided, rings)).seconds
    of_rings = ring_cables(broken)
    counts = {(low, high): count for low, high, count in broken.cables}
    hops = [(x, y) if not wiring.duplex or x < y else (y, x) for x, y in pairwise(ways[0])]
    return FibreFailure(
        cable=(a, b),
        detour=ways[0],
        over_pair_cable=any(counts[hop] > of_rings[hop] for hop in hops),
        before_s=before,
        degraded_s=degraded,
        repatched_s=before if spare_ports > 0 else None,
        patch_s=patch_s,
    )


def _with_ways(router: Router, ways: list[tuple[int, ...]]) -> Router:
    """A router with fixed single ways for some pairs."""

    def routed(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        found = router(fabric, src, dst)
        links = {
            (int(a), int(b)): link
            for link, (a, b) in enumerate(zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True))
        }
        fixed = {(way[0], way[-1]): [links[hop] for hop in pairwise(way)] for way in ways}
        share: list[float] = []
        pair_of_path: list[int] = []
        path_of_hop: list[int] = []
        link_of_hop: list[int] = []
        for pair in range(found.pairs):
            ends = int(found.pair_src[pair]), int(found.pair_dst[pair])
            paths = range(int(found.path_start[pair]), int(found.path_start[pair + 1]))
            own = [(float(found.share[path]), found.link[found.link_start[path] : found.link_start[path + 1]].tolist())
                   for path in paths]  # fmt: skip
            for part, hops in [(1.0, fixed[ends])] if ends in fixed else own:
                path_of_hop += [len(share)] * len(hops)
                link_of_hop += hops
                pair_of_path.append(pair)
                share.append(part)
        return make_routes(
            fabric, found.pair_src, found.pair_dst, np.array(pair_of_path), np.array(share), np.array(path_of_hop),
            np.array(link_of_hop, np.int32),
        )  # fmt: skip

    return routed
