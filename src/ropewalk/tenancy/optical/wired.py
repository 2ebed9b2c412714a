"""The fabric that a set of circuits makes at one moment, and the routes of jobs on it, for the simulator."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import RouteError
from ropewalk.fabric import Fabric, FabricDraft
from ropewalk.routing import Router, Routes, single_paths, unique_pairs
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.optical.circuits import Circuit, circuits_of, is_straight, way
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.seats import WiredRanks, wired_inside_servers


def wired_fabric(plant: OpticalPlant, circuits: Collection[Circuit], name: str | None = None) -> Fabric:
    """GPUs as hosts, leafs, spines, and a link each way for every circuit, in sorted order behind the NICs.

    An optical switch is no node: light passes it without being looked at.
    """
    draft = FabricDraft(name or plant.name)
    gpus = draft.add_hosts([f"{server}.{gpu}" for server in plant.server_names for gpu in range(plant.gpus_per_server)])
    leafs = draft.add_switches(plant.leaf_names, level=1)
    spines = draft.add_switches(plant.spine_names[: plant.packet_spines], level=2)
    draft.add_links(gpus, leafs[plant.leaf_of_gpu], plant.nic_bandwidth)
    ordered = sorted(circuits)
    if ordered:
        far = [spines[circuit.spine] if circuit.spine >= 0 else leafs[circuit.peer] for circuit in ordered]
        draft.add_links(leafs[[circuit.leaf for circuit in ordered]], np.array(far), plant.link_bandwidth)
    return draft.freeze(server=wired_inside_servers(draft, plant, gpus))


def circuit_router(plant: OpticalPlant, circuits: Collection[Circuit], jobs: Iterable[Allocation]) -> Router:
    """Routes of jobs on the fabric of these circuits: up the source's circuit, down the one of the destination.

    With several links between a leaf and a spine the choice is fixed all the same, see `way`.
    """
    number = {circuit: place for place, circuit in enumerate(sorted(circuits))}
    held = tuple(jobs)
    seats = WiredRanks.of(plant, 2 * (plant.gpus + len(number)), held)
    circuits_of_job = {allocation.job: circuits_of(plant, allocation) for allocation in held}

    def link(circuit: Circuit, job: Allocation) -> int:
        if circuit not in number:
            raise RouteError(f"job {job.job} has no circuit at switch {circuit.switch} now: route it while it runs")
        return 2 * (plant.gpus + number[circuit])

    def between(job: Allocation, rank: int, peer: int) -> list[int]:
        own, (up, down) = circuits_of_job[job.job], way(job, rank, peer)
        if is_straight(plant, job):
            circuit = own[rank % len(job.spines)]
            return [link(circuit, job) + (job.leaf_of_gpu[rank] != circuit.leaf)]
        return [link(own[up], job), link(own[down], job) + 1]

    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        pair_src, pair_dst = unique_pairs(fabric, src, dst)
        start, links = seats.links(pair_src, pair_dst, between)
        return single_paths(fabric, pair_src, pair_dst, start, links.astype(np.int32))

    return route
