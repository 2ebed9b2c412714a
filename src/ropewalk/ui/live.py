"""A live cluster as a page draws it: who holds which GPUs and links, how full links are, who waits and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.serve.answers import queue, status
from ropewalk.serve.speed import recent_step_s, slowdown
from ropewalk.tenancy.optical.plant import OpticalPlant

if TYPE_CHECKING:
    from ropewalk.serve.state import State
    from ropewalk.tenancy.allocation import Allocation
    from ropewalk.tenancy.plant import Plant

MOST_LEAFS = 256
"""Leafs that are drawn; of more, the first."""
MOST_SPINES_ABOVE = 256
"""Spines whose cables to cores are drawn."""
MOST_JOBS = 2_000
MOST_WAITING = 200


def live(state: State) -> dict[str, Any]:
    """Everything the page of the cluster shows, in one document of numbers and names."""
    plant = state.occupancy.plant
    running = [job for job in state.jobs.values() if job.allocation is not None][:MOST_JOBS]
    shown, above = min(plant.leafs, MOST_LEAFS), min(plant.spines, MOST_SPINES_ABOVE) if plant.cores else 0
    held = [job.allocation for job in state.jobs.values() if job.allocation is not None]
    load, core_load = link_load(plant, held)
    now = status(state)
    return {
        "status": now,
        "queue": queue(state, MOST_WAITING),
        "leafs": list(plant.leaf_names[:shown]),
        "spines": list(plant.spine_names),
        "cores": list(plant.core_names),
        "optical": isinstance(plant, OpticalPlant),
        "cables": plant.cables[:shown].tolist(),
        "core_cables": plant.core_cables[:above].tolist(),
        "load": np.round(load[:shown], 3).tolist(),
        "core_load": np.round(core_load[:above], 3).tolist(),
        "servers": _servers(plant, shown),
        "gpus_per_server": plant.gpus_per_server,
        "gpus_per_cell": plant.gpus_per_server // plant.rails,
        "left_out": plant.leafs - shown,
        "out_of_service": {"drained": now["drained"], "failed": now["failed"]},
        "jobs": [
            {
                "id": job.id, "name": job.name, "user": job.user, "gpus": job.gpus, "started_at": job.started_at,
                "expected_s": job.expected_s, "version": job.version, "degraded": job.degraded,
                "recent_step_s": recent_step_s(job), "slowdown": slowdown(job), "slow": job.slow,
                **_held(plant, job.allocation, shown, above),
            }
            for job in running
            if job.allocation is not None
        ],
    }  # fmt: skip


def _servers(plant: Plant, shown: int) -> list[list[str]]:
    """Names of the servers of every leaf that is drawn; on rails those of its unit, which have a GPU on it each."""
    first = plant.first_server
    units = [leaf // plant.rails for leaf in range(shown)]
    return [list(plant.server_names[first[unit] : first[unit + 1]]) for unit in units]


def link_load(plant: Plant, held: Iterable[Allocation]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[leaf, spine] and [spine, core]: what NICs send over the cables between the two when all that are routed there
    send at full speed, as a part of what the cables carry; above 1 they wait for each other.
    """
    below, above = (np.zeros(cables.shape) for cables in (plant.cables, plant.core_cables))
    for one in held:
        leaf, spine = np.array(one.leaf_of_gpu, np.int64), np.array(one.spine_of_gpu, np.int64)
        up = spine >= 0
        np.add.at(below, (leaf[up], spine[up]), 1.0)
        if one.core_of_gpu:
            core = np.array(one.core_of_gpu, np.int64)
            over = up & (core >= 0)
            np.add.at(above, (spine[over], core[over]), 1.0)
    full = plant.nic_bandwidth / plant.link_bandwidth
    return (
        below * full / np.maximum(plant.cables, 1),
        above * full / np.maximum(plant.core_cables, 1),
    )


def _held(plant: Plant, held: Allocation, shown: int, above: int) -> dict[str, Any]:
    """What a job holds: GPUs by (leaf, server on it), cables by (leaf, spine) and (spine, core)."""
    counts: dict[tuple[int, int], int] = {}
    for gpu, leaf in zip(held.gpus, held.leaf_of_gpu, strict=True):
        if leaf < shown:
            place = (leaf, gpu // plant.gpus_per_server - int(plant.first_server[leaf // plant.rails]))
            counts[place] = counts.get(place, 0) + 1
    return {
        "stage": held.stage,
        "guarantee": held.guarantee,
        "on_leafs": len(held.leafs),
        "dedicated_links": len(held.links),
        "gpus_at": [[leaf, server, count] for (leaf, server), count in sorted(counts.items())],
        "links": [[leaf, spine] for leaf, spine in held.links if leaf < shown],
        "core_links": [[spine, core] for spine, core in held.core_links if spine < above],
    }
