"""Source routes of running jobs on the fabric of a plant, for the flow simulator.

Up goes the cable of the source's spine, down the cable that the source's job holds between that spine and the leaf of
the destination. Jobs that share their links come down on the cable of the number they went up on.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ropewalk.cluster.allocation import OWN_LEAF, Allocation
from ropewalk.cluster.plant import Plant
from ropewalk.errors import RouteError
from ropewalk.fabric import Fabric
from ropewalk.routing import Router, Routes, single_paths, unique_pairs


def source_router(plant: Plant, jobs: Iterable[Allocation]) -> Router:
    """The router of some jobs: GPUs of a server meet inside it, GPUs of a leaf on the leaf, others over their spine."""
    held = tuple(jobs)
    job = np.full(plant.gpus, -1, np.int64)
    spine = np.full(plant.gpus, OWN_LEAF, np.int64)
    cable = np.zeros(plant.gpus, np.int64)
    reserved: dict[tuple[int, int, int], int] = {}
    for number, allocation in enumerate(held):
        gpus = np.array(allocation.gpus, np.int64)
        job[gpus] = number
        spine[gpus] = allocation.spine_of_gpu
        own = {(leaf, at): strand for leaf, at, strand in allocation.reserved()}
        cable[gpus] = [own.get(ends, 0) for ends in zip(allocation.leaf_of_gpu, allocation.spine_of_gpu, strict=True)]
        reserved.update({(number, *ends): strand for ends, strand in own.items()})

    def down_cable(src: NDArray[np.int64], leaf: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cable from the spine of a source to the leaf of its destination."""
        wanted = zip(job[src].tolist(), leaf.tolist(), spine[src].tolist(), cable[src].tolist(), strict=True)
        return np.array([reserved.get((number, at, via), strand) for number, at, via, strand in wanted], np.int64)

    def route(fabric: Fabric, src: NDArray[np.int32], dst: NDArray[np.int32]) -> Routes:
        pair_src, pair_dst = unique_pairs(fabric, src, dst)
        a, b = pair_src.astype(np.int64), pair_dst.astype(np.int64)
        leaf_a, leaf_b = plant.leaf_of_gpu[a].astype(np.int64), plant.leaf_of_gpu[b].astype(np.int64)
        cross = np.flatnonzero(leaf_a != leaf_b)
        _refuse_strangers(plant, a[cross], b[cross], job, spine)
        inside = a // plant.gpus_per_server == b // plant.gpus_per_server
        hops = np.full(len(a), 2, np.int64)
        hops[cross] = 4
        start = np.concatenate([[0], np.cumsum(hops)])
        link = np.zeros(start[-1], np.int64)
        link[start[:-1]] = np.where(inside, plant.inside_up(a), plant.nic_up(a))
        link[start[1:] - 1] = np.where(inside, plant.inside_up(b), plant.nic_up(b)) + 1
        via = spine[a[cross]]
        link[start[cross] + 1] = plant.leaf_up(leaf_a[cross], via, cable[a[cross]])
        link[start[cross] + 2] = plant.leaf_up(leaf_b[cross], via, down_cable(a[cross], leaf_b[cross])) + 1
        return single_paths(fabric, pair_src, pair_dst, start, link.astype(np.int32))

    return route


def _refuse_strangers(
    plant: Plant, src: NDArray[np.int64], dst: NDArray[np.int64], job: NDArray[np.int64], spine: NDArray[np.int64]
) -> None:
    """Between leafs, both ends must belong to one job that has a spine, and the spine a cable to both leafs."""
    for wrong, fact in (
        ((job[src] < 0) | (job[src] != job[dst]), "are not GPUs of one running job"),
        (spine[src] == OWN_LEAF, "are on two leafs, and the job has no spines"),
    ):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            raise RouteError(f"GPUs {src[first]} and {dst[first]} {fact}: route between the ranks of a placed job")
    unwired = plant.cables[plant.leaf_of_gpu[dst], spine[src]] == 0
    if unwired.any():
        first = int(np.flatnonzero(unwired)[0])
        raise RouteError(
            f"spine {spine[src[first]]} has no cable to the leaf of GPU {dst[first]}: give the job spines that reach "
            "all its leafs"
        )
