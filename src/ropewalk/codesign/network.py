"""A network as a step meets it: a fabric whose host s is server s, how pairs are routed, which rings sum weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ropewalk.fabric import Fabric
from ropewalk.fabric.wiring import Orders, Wiring
from ropewalk.routing import Router


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


def wired_network(wiring: Wiring, router: Router, name: str = "plan") -> StepNetwork:
    """The wiring with its routes."""
    return StepNetwork(name, wiring.fabric(), router, wiring.ring_orders)
