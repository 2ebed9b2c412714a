"""What is to be brought up: a fabric or a plan at speeds that this machine carries, with its routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import LabError
from ropewalk.fabric import Fabric
from ropewalk.lab.capacity import Capacity, capacity_for, exact_scale
from ropewalk.lab.forwarding import LabTables, every_pair, hashed, pinned
from ropewalk.lab.network import LabNetwork, LabSettings
from ropewalk.plans import Plan
from ropewalk.routing import Router, Routes, router_for, shortest
from ropewalk.routing.listed import Path, listed, router_listed
from ropewalk.routing.routes import unique_pairs
from ropewalk.routing.servers import between_servers

HASH = "hash"
"""The routing of the kernel itself: ECMP by a hash of addresses and ports."""
DESIGNED = "plan"
"""The routes that a plan was designed with."""


@dataclass(frozen=True, eq=False)
class LabRequest:
    """A lab to be made."""

    name: str
    source: str
    """What it is made from, as people typed it."""
    network: LabNetwork
    routing: str
    routes: Routes | None
    """Of every pair of hosts; None where the kernel hashes."""

    def tables(self) -> LabTables:
        return tables_of(self.network.fabric, self.routes)


def tables_of(fabric: Fabric, routes: Routes | None) -> LabTables:
    """What pins routes, or lets the kernel hash."""
    return hashed(fabric) if routes is None else pinned(routes)


def scaled(
    fabric: Fabric, scale: float | None = None, settings: LabSettings | None = None
) -> tuple[LabNetwork, Capacity]:
    """A fabric at speeds that the machine carries, and what it carries.

    Without a scale, speeds stay as they are where they can be kept within a few per cent, and are divided by the
    smallest of 1, 2, 5, 10, … that makes them exact otherwise.
    """
    whole = LabNetwork(fabric)
    asked = capacity_for(whole.injected_bits)
    if scale is None and asked.error is None:
        scale = exact_scale(asked.injected_bits, asked.exact_bits)
    network = LabNetwork(fabric, 1.0 if scale is None else scale, settings or LabSettings())
    network.check()
    exact = exact_scale(asked.injected_bits, asked.exact_bits)
    return network, require_carried(network, f"use --scale 1:{exact:g}, or leave it out")


def require_carried(network: LabNetwork, remedy: str) -> Capacity:
    """What the machine carries; networks that are too fast for it are refused."""
    capacity = capacity_for(network.injected_bits)
    if capacity.error is None:
        raise LabError(f"lab of {network.fabric.name} at scale 1:{network.scale:g}: {capacity.said()}: {remedy}")
    return capacity


def routes_by_name(fabric: Fabric, routing: str, seed: int = 0) -> tuple[str, Routes | None]:
    """The router that a name means on a fabric, and its routes between all hosts."""
    if routing == HASH:
        return HASH, None
    router = router_for(fabric, routing)
    return router.name, router.make(seed)(fabric, *every_pair(fabric))


def routes_of_plan(plan: Plan, fabric: Fabric) -> tuple[str, Routes | None]:
    """The routes of a plan: those that it was designed with, or those of its router."""
    if plan.designed is None:
        return routes_by_name(fabric, plan.communication.routing, plan.communication.seed)
    return DESIGNED, between_servers(or_shortest(plan.designed.routes))(fabric, *every_pair(fabric))


def or_shortest(paths: Sequence[Path]) -> Router:
    """A router that knows some paths and takes the shortest between all other hosts: acknowledgements need them."""
    ends = {(nodes[0], nodes[-1]) for _, nodes in paths}

    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        pairs = unique_pairs(fabric, src, dst)
        others = np.array([pair not in ends for pair in zip(*(end.tolist() for end in pairs), strict=True)], bool)
        between = listed(shortest(fabric, pairs[0][others], pairs[1][others])) if others.any() else ()
        return router_listed([*paths, *between])(fabric, src, dst)

    return route
