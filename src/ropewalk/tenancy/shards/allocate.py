"""A shard for every job: servers of its own, wherever they stand, because panels join any ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import OWN_LEAF, Allocation, AllocationColumns, Reason, Stage, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import first_stages, seats_on, servers_needed
from ropewalk.tenancy.shards.plant import PanelPlant

SHARD: Stage = "shard"


def behind_panels(state: Occupancy) -> PanelPlant:
    """The plant of a state, if its servers are behind patch panels."""
    if not isinstance(state.plant, PanelPlant):
        raise ClusterError(
            f"{state.plant.name} has no patch panels: put its servers behind them with PanelPlant.of_plant, or "
            "allocate by another policy"
        )
    return state.plant


def shard(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
    """One server where one fits, else whole idle servers in as few racks as possible, all of one island.

    Only GPUs can be lacking where one panel has a port for every server.

    >>> from ropewalk.tenancy.plant import plant
    >>> state = Occupancy(PanelPlant.of_plant(plant("leaf-spine:4x8x8", gpus_per_server=4)))
    >>> got = shard(state, "a", 16)
    >>> got.stage, got.guarantee, servers_of(state.plant, got)
    ('shard', 'isolated', (0, 1, 2, 3))
    """
    from ropewalk.tenancy import _seats_kernel as kernel

    plant = behind_panels(state)
    early = first_stages(state, job, gpus)
    if early is not None:
        if isinstance(early, Waiting) or early.stage == "server":
            return early
        return replace(early, stage=SHARD, guarantee="isolated")
    needed, idle = servers_needed(state, gpus), state.idle_servers
    if plant.islands > 1:
        room = np.bincount(plant.island_of_rack, idle, plant.islands).astype(np.int64)
        if room.max() < needed:
            return _too_large_for_islands(plant, gpus, needed, int(room.max()))
        best = int(np.argmin(np.where(room >= needed, room, plant.servers + 1)))
        idle = np.where(plant.island_of_rack == best, idle, 0)
    leafs, servers = kernel.fullest_first(idle, needed)
    seats = seats_on(state, leafs, servers * plant.gpus_per_server)[:gpus]
    return _on(state, job, np.ascontiguousarray(seats))


def _too_large_for_islands(plant: PanelPlant, gpus: int, needed: int, most: int) -> Waiting:
    largest = int(np.bincount(plant.island_of_server).max())
    return Waiting(
        Reason.NETWORK_FRAGMENTATION,
        f"{gpus} GPUs need {needed} servers behind the same panels, and "
        + (f"the largest island has {largest}" if needed > largest else f"no island has more than {most} idle"),
        never=needed > largest,
    )


def on_servers(state: Occupancy, held: Allocation, servers: Sequence[int]) -> Allocation:
    """The same job on other servers, as many as it has, with as many free GPUs of each."""
    size = state.plant.gpus_per_server
    of_server = np.bincount(np.unique(np.array(held.gpus) // size, return_inverse=True)[1]).tolist()
    seats: list[int] = []
    for server, count in zip(servers, of_server, strict=True):
        free = [gpu for gpu in range(size) if int(state.free_gpus[server]) >> gpu & 1]
        seats += [server * size + gpu for gpu in free[:count]]
    return replace(_on(state, held.job, np.array(seats, np.int64)), stage=held.stage, guarantee=held.guarantee)


def servers_of(plant: PanelPlant, held: Allocation) -> tuple[int, ...]:
    """The servers of a job, in the order of its ranks."""
    return tuple(dict.fromkeys(gpu // plant.gpus_per_server for gpu in held.gpus))


def shard_of(state: Occupancy, job: str, gpus: Sequence[int]) -> Allocation | Waiting:
    """A shard of GPUs that are chosen already."""
    plant = behind_panels(state)
    if len(set(plant.island_of_server[np.array(gpus) // plant.gpus_per_server].tolist())) > 1:
        return Waiting(
            Reason.NETWORK_FRAGMENTATION, "no cable joins servers of different islands: choose servers of one"
        )
    return _on(state, job, np.array(gpus, np.int64))


def _on(state: Occupancy, job: str, seats: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Allocation:
    leaf_of_gpu = tuple(state.plant.leaf_of_gpu[seats].tolist())
    return Allocation(
        job=job,
        gpus=tuple(seats.tolist()),
        stage=SHARD,
        leafs=tuple(dict.fromkeys(leaf_of_gpu)),
        spines=(),
        links=(),
        spine_of_gpu=(OWN_LEAF,) * len(seats),
        leaf_of_gpu=leaf_of_gpu,
        guarantee="isolated",
    ).knowing(AllocationColumns(seats))
