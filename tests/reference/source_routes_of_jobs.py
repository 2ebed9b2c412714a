"""Every pair of GPUs of some jobs on its path under the routing by source, as a router of the plant's fabric."""

import numpy as np

from ropewalk.fabric import Fabric
from ropewalk.routing import Router, Routes, single_paths, unique_pairs
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.paths import SwitchNetwork, hops_of, source
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.relays import relayed
from ropewalk.tenancy.routes import links_of_flows


def source_routes_of_jobs(plant: Plant, jobs: list[Allocation]) -> Router:
    network = SwitchNetwork(plant, plant.cables, lambda: np.zeros(0), 0)
    seat = {gpu: (job, rank) for job in jobs for rank, gpu in enumerate(job.gpus)}

    def ends(src: int, dst: int) -> tuple[Allocation, int, int]:
        (job, a), (_, b) = seat[src], seat[dst]
        enter, leave = relayed(np.array(job.gpus), plant.rails, np.array([a]), np.array([b]))
        return job, int(enter[0]), int(leave[0])

    def cables(job: Allocation, a: int, b: int) -> list[int]:
        (row,) = source(network, job, np.array([a]), np.array([b])).tolist()
        return row

    def route(fabric: Fabric, src: np.ndarray, dst: np.ndarray) -> Routes:
        a, b = unique_pairs(fabric, src, dst)
        over = [ends(int(one), int(two)) for one, two in zip(a, b, strict=True)]
        enter = np.array([job.gpus[rank] for job, rank, _ in over])
        leave = np.array([job.gpus[rank] for job, _, rank in over])
        cross = np.flatnonzero(plant.leaf_of_gpu[enter] != plant.leaf_of_gpu[leave])
        cross = cross[a[cross] // plant.gpus_per_server != b[cross] // plant.gpus_per_server]
        chosen = np.array([cables(*over[pair]) for pair in cross], np.int64).reshape(-1, hops_of(plant))
        start, link = links_of_flows(plant, a.astype(np.int64), b.astype(np.int64), chosen, enter, leave)
        return single_paths(fabric, a, b, start, link.astype(np.int32))

    return route
