"""GPUs only: jobs get servers and share every link, as under ECMP or plain source routing without isolation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.allocation import OWN_LEAF, Allocation, AllocationColumns, Reason, Stage, Waiting
from ropewalk.tenancy.by_place import way_up
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import first_stages, seats_on, servers_needed


def gpus_only(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
    """One leaf where one fits, else whole idle servers on as few leafs as possible; no link is reserved.

    The leafs with most idle servers are filled first, and what is left goes to the best-fitting leaf. Only GPUs and
    servers can keep such a job waiting.
    """
    from ropewalk.tenancy import _seats_kernel as kernel

    early = first_stages(state, job, gpus)
    if early is not None:
        return early
    apart = islands(state, gpus)
    if apart is not None:
        return apart
    leafs, servers = kernel.fullest_first(state.idle_servers, servers_needed(state, gpus))
    seats = seats_on(state, leafs, servers * state.plant.gpus_per_server)[:gpus]
    return sharing(state, job, gpus, np.ascontiguousarray(seats))


def islands(state: Occupancy, gpus: int) -> Waiting | None:
    """The reason to wait of a job that needs several units of a plant on which nothing joins them."""
    plant = state.plant
    if plant.spines:
        return None
    return Waiting(
        Reason.NETWORK_FRAGMENTATION,
        f"no unit has {servers_needed(state, gpus)} idle servers, and nothing connects the units of {plant.name}",
        never=gpus > int(plant.gpus_per_unit.max()),
    )


def sharing(state: Occupancy, job: str, gpus: int, seats: NDArray[np.int64]) -> Allocation:
    """What a job gets on these GPUs, which are sorted: no link is its own."""
    plant, way = state.plant, way_up(state.plant)
    leaf_of_gpu = tuple(plant.leaf_of_gpu[seats].tolist())
    alone = leaf_of_gpu[0] // plant.rails == leaf_of_gpu[-1] // plant.rails
    if alone:
        inside = seats[0] // plant.gpus_per_server == seats[-1] // plant.gpus_per_server
        stage: Stage = "server" if inside else "leaf"
        spines: tuple[int, ...] = (OWN_LEAF,) * gpus
    else:
        stage, spines = "shared", tuple(way.spine[seats].tolist())
    return Allocation(
        job=job,
        gpus=tuple(seats.tolist()),
        stage=stage,
        leafs=tuple(dict.fromkeys(leaf_of_gpu)),
        spines=(),
        links=(),
        spine_of_gpu=spines,
        leaf_of_gpu=leaf_of_gpu,
        guarantee="contention-free" if alone else "none",
        core_of_gpu=() if alone or not plant.cores else tuple(way.core[seats].tolist()),
    ).knowing(AllocationColumns(seats))
