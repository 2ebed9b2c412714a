"""The fabric that the jobs of a moment run on, and the links of their flows: cables, optical circuits or one switch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.errors import ClusterError
from ropewalk.fabric import Fabric
from ropewalk.ragged import ranges
from ropewalk.routing import Routes, single_paths
from ropewalk.tenancy.optical.circuits import circuits_of
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.optical.wired import circuit_router, wired_fabric
from ropewalk.tenancy.optical.wired_inside import InsideWires
from ropewalk.tenancy.optical.wired_pods import PodWires
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.routes import links_of_flows
from ropewalk.tenancy.routings import ROUTINGS, routing_named
from ropewalk.tenancy.snapshot.tenant import Moment


@dataclass(frozen=True, eq=False)
class Wires:
    """A fabric, and the links that flows between the GPUs of a plant take on it."""

    plant: Plant
    fabric: Fabric
    links: Callable[[Ints, Ints, Ints, Ints, Ints], tuple[Ints, Ints]]
    """(sources, destinations, cables of those that cross leafs, where they enter and leave the network) -> CSR (start,
    link); see `links_of_flows`."""


def wires_of(moment: Moment, hop_latency_s: float = 0.0) -> Wires:
    """What is between the GPUs at a moment; a hop is a NIC's link or a cable, inside servers there is no latency."""
    plant = moment.plant
    if not routing_named(moment.policy.routing).simulated:
        plain = ", ".join(name for name, one in ROUTINGS.items() if one.simulated)
        raise ClusterError(
            f"a snapshot runs flows on fixed paths with equal priority, which {moment.policy.name} does not: use one "
            f"of {plain} (--routing)"
        )
    if moment.policy.panels:
        raise ClusterError(
            f"under {moment.policy.name} every job has cables of its own, so no two jobs share a link and there is "
            "nothing to simulate together: choose another policy, such as --isolate vclos"
        )
    if isinstance(plant, OpticalPlant):
        wires = _circuits(plant, moment)
    elif isinstance(plant, CoreOpticalPlant):
        wires = _between_pods(plant, moment)
    elif isinstance(plant, PodOpticalPlant):
        wires = _inside_pods(plant, moment)
    elif moment.policy.routing == "ideal":
        # A network that never holds a flow up is one switch that all NICs share.
        wires = _cables(plant, _under_one_switch(plant))
    else:
        wires = _cables(plant, plant)
    return replace(wires, fabric=_delayed(wires.fabric, plant, hop_latency_s)) if hop_latency_s else wires


def _delayed(fabric: Fabric, plant: Plant, hop_latency_s: float) -> Fabric:
    inside = 2 * plant.gpus if plant.gpus_per_server > 1 else 0  # they stand behind all others
    latency = np.where(np.arange(fabric.links) < fabric.links - inside, hop_latency_s, 0.0)
    return replace(fabric, latency=latency)


def _cables(plant: Plant, cabled: Plant) -> Wires:
    return Wires(plant, cabled.fabric(), partial(links_of_flows, cabled))


def _under_one_switch(plant: Plant) -> Plant:
    return replace(
        plant,
        server_leaf=np.zeros(plant.servers, np.int32),
        cables=np.zeros((1, 0), np.int32),
        leaf_names=("ideal switch",),
        spine_names=(),
        rails=1,
        core_cables=np.zeros((0, 0), np.int32),
        core_names=(),
    )


def _circuits(plant: OpticalPlant, moment: Moment) -> Wires:
    jobs = [tenant.allocation for tenant in moment.tenants]
    circuits = [circuit for job in jobs for circuit in circuits_of(plant, job)]
    fabric = wired_fabric(plant, circuits)
    route = circuit_router(plant, circuits, jobs)

    def links(src: Ints, dst: Ints, path: Ints, enter: Ints, leave: Ints) -> tuple[Ints, Ints]:
        routes = route(fabric, src.astype(np.int32), dst.astype(np.int32))
        row = routes.find(src, dst)
        hops = routes.hops[row]
        start = np.concatenate([[0], np.cumsum(hops)]).astype(np.int64)
        return start, routes.link[ranges(routes.link_start[row], hops)].astype(np.int64)

    return Wires(plant, fabric, links)


def _between_pods(plant: CoreOpticalPlant, moment: Moment) -> Wires:
    pods = PodWires.of(plant, [tenant.allocation for tenant in moment.tenants])

    def links(src: Ints, dst: Ints, path: Ints, enter: Ints, leave: Ints) -> tuple[Ints, Ints]:
        return pods.links(src, dst)

    return Wires(plant, pods.fabric, links)


def _inside_pods(plant: PodOpticalPlant, moment: Moment) -> Wires:
    inside = InsideWires.of(plant, [tenant.allocation for tenant in moment.tenants])

    def links(src: Ints, dst: Ints, path: Ints, enter: Ints, leave: Ints) -> tuple[Ints, Ints]:
        return inside.links(src, dst)

    return Wires(plant, inside.fabric, links)


class PathRows:
    """Collects the paths of all flows; flows between the same GPUs over the same links have one row."""

    def __init__(self, wires: Wires) -> None:
        self.wires = wires
        self._rows: dict[tuple[int, ...], int] = {}
        self._ends: list[tuple[int, int]] = []

    def rows(self, src: Ints, dst: Ints, path: Ints, enter: Ints, leave: Ints) -> NDArray[np.int32]:
        """The row of the routes that every flow takes."""
        start, link = self.wires.links(src, dst, path, enter, leave)
        at, flat = start.tolist(), link.tolist()
        found = []
        for flow, ends in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
            # The first and the last link belong to the two GPUs, so links alone tell paths apart.
            links = tuple(flat[at[flow] : at[flow + 1]])
            row = self._rows.setdefault(links, len(self._rows))
            if row == len(self._ends):
                self._ends.append(ends)
            found.append(row)
        return np.array(found, np.int32)

    def routes(self) -> Routes:
        """All paths, every one a row that tasks name."""
        ends = np.array(self._ends, np.int32).reshape(-1, 2)
        start = np.concatenate([[0], np.cumsum([len(path) for path in self._rows])]).astype(np.int64)
        link = np.array([link for path in self._rows for link in path], np.int32)
        routes = single_paths(self.wires.fabric, ends[:, 0], ends[:, 1], start, link)
        return replace(routes, appended=routes.pairs)
