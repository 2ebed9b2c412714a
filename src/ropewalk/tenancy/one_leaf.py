"""The first two stages of every allocation: does the job fit at all, and does it fit under one leaf?

A job under one leaf reserves no link: its bytes never reach a spine, and links held for nothing would only keep others
waiting.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import OWN_LEAF, Allocation, AllocationColumns, Reason, Waiting
from ropewalk.tenancy.occupancy import Occupancy


def first_stages(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting | None:
    """A reason to wait that no choice of links could remove, or a place under one leaf; None where leafs must share."""
    free, fitting, leaf = _best_leaf(state, job, gpus)
    return _refused(state, gpus, free, fitting) or (_on_leaf(state, job, gpus, leaf) if leaf >= 0 else None)


def servers_needed(state: Occupancy, gpus: int) -> int:
    """The fewest servers that hold a job."""
    return -(-gpus // state.plant.gpus_per_server)


def refused(state: Occupancy, job: str, gpus: int) -> Waiting | None:
    """Too few GPUs, or enough of them but too few servers with enough; None where neither stands in the way."""
    free, fitting, _ = _best_leaf(state, job, gpus)
    return _refused(state, gpus, free, fitting)


def under_one_leaf(state: Occupancy, job: str, gpus: int) -> Allocation | None:
    """Best fit: of the leafs that hold the whole job, the one with the fewest free GPUs."""
    leaf = _best_leaf(state, job, gpus)[2]
    return _on_leaf(state, job, gpus, leaf) if leaf >= 0 else None


def over_idle_servers(state: Occupancy, leaf: int, gpus: int) -> list[int]:
    """GPUs of the fewest idle servers of a leaf: evenly where that is possible, else with the last one not full."""
    seats: list[int] = seats_on(state, np.array([leaf]), np.array([gpus])).tolist()
    return seats


def seats_on(state: Occupancy, leafs: NDArray[np.int64], shares: NDArray[np.int64]) -> NDArray[np.int64]:
    """So many GPUs of idle servers of every leaf, leaf by leaf."""
    from ropewalk.tenancy import _seats_kernel as kernel

    plant = state.plant
    seats: NDArray[np.int64] = kernel.over_idle_servers(
        leafs, shares, state.free_in_server, plant.first_server, plant.gpus_per_server
    )
    if len(seats) < shares.sum():
        short = int(np.searchsorted(np.cumsum(shares), len(seats), side="right"))
        leaf, gpus = int(leafs[short]), int(shares[short])
        raise ClusterError(
            f"leaf {leaf} has {len(state.idle_servers_of(leaf))} idle servers, {gpus} GPUs need "
            f"{servers_needed(state, gpus)}: choose another"
        )
    return seats


def _best_leaf(state: Occupancy, job: str, gpus: int) -> tuple[int, int, int]:
    """(free GPUs, servers that hold what the job needs of one, the best-fitting leaf or -1)."""
    from ropewalk.tenancy import _seats_kernel as kernel

    if gpus < 1:
        raise ClusterError(f"job {job} asks for {gpus} GPUs: ask for 1 or more")
    plant = state.plant
    size = plant.gpus_per_server
    free, fitting, leaf = kernel.best_leaf(
        state.free_in_server,
        state.free_on_leaf,
        state.idle_servers,
        plant.first_server,
        size,
        min(gpus, size),
        servers_needed(state, gpus),
    )
    return free, fitting, leaf


def _refused(state: Occupancy, gpus: int, free: int, fitting: int) -> Waiting | None:
    plant = state.plant
    if gpus > free:
        never = gpus > plant.gpus
        fact = f"{plant.name} has {plant.gpus}" if never else f"{free} {'is' if free == 1 else 'are'} free"
        return Waiting(Reason.GPU_SHORTAGE, f"{gpus} GPUs are requested, {fact}", never=never)
    needed = servers_needed(state, gpus)
    if fitting >= needed:
        return None
    return Waiting(
        Reason.SERVER_FRAGMENTATION,
        f"{free} GPUs are free, but only {fitting} server{'s' * (fitting != 1)} with "
        f"{min(gpus, plant.gpus_per_server)} of them, and {gpus} GPUs need {needed}",
        never=needed > plant.servers,
    )


def _on_leaf(state: Occupancy, job: str, gpus: int, leaf: int) -> Allocation:
    """Inside one server or under one leaf; on rails, on the leafs of one unit."""
    from ropewalk.tenancy import _seats_kernel as kernel

    plant = state.plant
    inside = gpus <= plant.gpus_per_server
    if inside:
        first, last = plant.first_server[leaf], plant.first_server[leaf + 1]
        seats = kernel.inside_one_server(
            state.free_gpus, state.free_in_server, first, last, plant.gpus_per_server, gpus
        )
    else:
        seats = seats_on(state, np.array([leaf]), np.array([gpus]))
    leaf_of_gpu = (leaf,) * gpus if plant.rails == 1 else tuple(plant.leaf_of_gpu[seats].tolist())
    return Allocation(
        job=job,
        gpus=tuple(seats.tolist()),
        stage="server" if inside else "leaf",
        leafs=(leaf,) if plant.rails == 1 else tuple(dict.fromkeys(leaf_of_gpu)),
        spines=(),
        links=(),
        spine_of_gpu=(OWN_LEAF,) * gpus,
        leaf_of_gpu=leaf_of_gpu,
    ).knowing(AllocationColumns(seats))
