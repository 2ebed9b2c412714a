"""The allocation of leafs that are known to share enough free spines, and over pods enough free cores.

GPU i of a leaf sends to the i-th spine of its pod and rail; what it sends to other pods goes over the k-th core of that
lane, where its leaf is the k-th of its pod.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.tenancy.allocation import NO_CABLES, Allocation, AllocationColumns, CableColumns
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import seats_on


def tree_allocation(state: Occupancy, job: str, gpus: int, units: Sequence[Sequence[int]]) -> Allocation:
    """Equal numbers of GPUs on the leafs, or on rails the units, of every pod of the job."""
    rows = np.array(units, np.int64)
    found = tree_over(state, job, rows, seats_on(state, rows.ravel(), np.full(rows.size, gpus // rows.size)))
    assert found is not None, "these leafs were found because they share enough spines and cores"
    return found


def tree_over(state: Occupancy, job: str, rows: Ints, seats: Ints) -> Allocation | None:
    """The same for GPUs that are chosen already, as many on each of `rows` [pod, leaf]; None where links lack."""
    plant, rails = state.plant, state.plant.rails
    pods, leafs = rows.shape
    share = len(seats) // rows.size // rails
    lanes = _lanes(state, rows, share)
    if lanes is None:
        return None
    pod = plant.tiers.pod_of_leaf[rows[:, 0] * rails]
    # [pod, rail, place]: the spine of the GPU at that place of every leaf.
    spines = plant.tiers.first_spine[pod][:, None, None] + lanes
    # [pod, leaf, rail]: leafs in the order in which ranks visit them.
    leaf = rows[:, :, None] * rails + np.arange(rails)
    below = np.repeat(leaf.ravel(), share)
    above = np.broadcast_to(spines[:, None], (pods, leafs, *lanes.shape)).ravel()
    cores, core_links = _cores(state, spines, leafs) if pods > 1 else ([], NO_CABLES)
    return Allocation.over_links(
        job,
        AllocationColumns(seats, CableColumns(below, above, state.links.first_free(below, above)), core_links),
        leafs=leaf.ravel().tolist(),
        spines=spines.ravel().tolist(),
        spine_of_gpu=_by_server(above, rails, share),
        leaf_of_gpu=_by_server(below, rails, share),
        core_of_gpu=cores,
    )


def _by_server(of_links: Ints, rails: int, share: int) -> list[int]:
    """What stands unit by unit, rail by rail, in the order of ranks: server by server, and through its rails."""
    found: list[int] = of_links.reshape(-1, rails, share).transpose(0, 2, 1).ravel().tolist()
    return found


def _lanes(state: Occupancy, rows: Ints, spines: int) -> Ints | None:
    """[rail, place]: of the lanes that all leafs reach, and over pods enough cores, those with fewest free cables."""
    from ropewalk.tenancy.vclos import _clos_kernel as kernel

    plant, rails = state.plant, state.plant.rails
    pods = plant.tiers.pod_of_leaf[rows[:, 0] * rails]
    first = plant.tiers.first_spine
    found = []
    for rail in range(rails):
        shared = kernel.shared_by(rows.ravel() * rails + rail, state.spine_words)
        if len(rows) > 1:
            shared = kernel.lanes_with_cores(shared, state.core_links.words, first[pods], rows.shape[1])
        ports = np.zeros(plant.tiers.lanes, np.int64)
        for pod in pods.tolist():
            mine = state.ports_of_spine[first[pod] : first[pod + 1]]
            ports[: len(mine)] += mine
        chosen = kernel.fullest(shared, ports)[:spines]
        if len(chosen) < spines:
            return None
        found.append(np.sort(chosen))
    return np.stack(found)


def _cores(state: Occupancy, spines: Ints, leafs: int) -> tuple[list[int], CableColumns]:
    """Core of every GPU, and the cables between all spines of the job and the cores of their lanes."""
    from ropewalk.tenancy.vclos import _clos_kernel as kernel

    pods, rails, share = spines.shape
    tiers, above_spines = state.plant.tiers, state.core_links
    lanes = np.ascontiguousarray(spines.reshape(pods, -1))
    chosen = kernel.emptied_cores(
        lanes, above_spines.words, above_spines.ports_above, tiers.first_core, tiers.end_core, leafs
    )
    # [rail, place, leaf]: the cores of every lane, those with fewest free cables.
    cores = chosen.reshape(rails, share, leafs)
    below = np.repeat(spines.ravel(), leafs)
    above = np.broadcast_to(cores, (pods, *cores.shape)).ravel()
    links = CableColumns(below, above, state.core_links.first_free(below, above))
    # GPUs of a pod: leaf by leaf, place by place, rail by rail.
    of_pod = cores.transpose(2, 1, 0).ravel()
    return np.tile(of_pod, pods).tolist(), links
