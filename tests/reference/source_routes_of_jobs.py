"""Every pair of GPUs of some jobs on its path under the routing by source, as a router of the plant's fabric."""

import numpy as np

from ropewalk.fabric import Fabric
from ropewalk.routing import Router, Routes, single_paths, unique_pairs
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.paths import Network, source
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.routes import links_of_flows


def source_routes_of_jobs(plant: Plant, jobs: list[Allocation]) -> Router:
    network = Network(plant, plant.cables, lambda: np.zeros(0), 0)
    seat = {gpu: (job, rank) for job in jobs for rank, gpu in enumerate(job.gpus)}

    def cables(src: int, dst: int) -> tuple[int, int]:
        (job, a), (_, b) = seat[src], seat[dst]
        (up,), (down,) = source(network, job, np.array([a]), np.array([b]))
        return int(up), int(down)

    def route(fabric: Fabric, src: np.ndarray, dst: np.ndarray) -> Routes:
        a, b = unique_pairs(fabric, src, dst)
        cross = np.flatnonzero(plant.leaf_of_gpu[a] != plant.leaf_of_gpu[b])
        chosen = np.array([cables(int(a[pair]), int(b[pair])) for pair in cross], np.int64).reshape(-1, 2)
        start, link = links_of_flows(plant, a.astype(np.int64), b.astype(np.int64), chosen[:, 0], chosen[:, 1])
        return single_paths(fabric, a, b, start, link.astype(np.int32))

    return route
