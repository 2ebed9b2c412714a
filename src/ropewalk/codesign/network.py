"""A network as a step meets it: a fabric whose host s is server s, how pairs are routed, which rings sum weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ropewalk.fabric import Fabric
from ropewalk.fabric.wiring import Wiring
from ropewalk.routing import Router

Orders = tuple[tuple[int, ...], ...]
"""Directed rings over the members 0 … k-1 of a group: the order in which each of them visits the members."""


@dataclass(frozen=True, eq=False)
class StepNetwork:
    """What a step is timed on."""

    name: str
    fabric: Fabric
    """Hosts 0 … n-1 are the servers; a fabric may have further hosts that nobody uses."""
    router: Router
    rings: Callable[[int], Orders]
    """From the size of a group, whose members stand in the order of its seat, to the rings that sum over it."""


def one_ring(size: int) -> Orders:
    """One ring one way, which keeps the single NIC of every server busy both ways."""
    return (tuple(range(size)),)


def regular_rings(size: int, jumps: tuple[int, ...], *, both_ways: bool) -> Orders:
    """Member i sends to member i + jump; both ways, every ring has its opposite beside it.

    >>> regular_rings(5, (2,), both_ways=False)
    ((0, 2, 4, 1, 3),)
    """
    forward = [tuple(place * jump % size for place in range(size)) for jump in jumps]
    if not both_ways or size == 2:
        return tuple(forward)
    return tuple(order for ring in forward for order in (ring, (ring[0], *ring[:0:-1])))


def rings_of_wiring(wiring: Wiring) -> Callable[[int], Orders]:
    """The rings that a wiring has for groups of a size; a size it has none for goes round in the order of its seat."""
    jumps = {rings.size: rings.jumps for rings in wiring.rings if rings.jumps}

    def rings(size: int) -> Orders:
        return regular_rings(size, jumps.get(size, (1,)), both_ways=wiring.duplex)

    return rings


def wired_network(wiring: Wiring, router: Router, name: str = "plan") -> StepNetwork:
    """The wiring with its routes."""
    return StepNetwork(name, wiring.fabric(), router, rings_of_wiring(wiring))
