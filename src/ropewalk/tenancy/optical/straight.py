"""Two leafs joined straight through the optical switches: no spine in between, any split, any pattern.

Both leafs must have a free fibre to the same switch for every circuit, judged on the fibres that are free; each circuit
takes both fibres, and both are written down with the job.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import over_idle_servers, servers_needed
from ropewalk.tenancy.optical.fibres import FreeFibres, optical
from ropewalk.tenancy.optical.plant import OpticalPlant


def joined_straight(state: Occupancy, fibres: FreeFibres, job: str, gpus: int) -> Allocation | None:
    """Halves of the job on two leafs, the first half one server larger where the number is odd; best fit."""
    plant = optical(state)
    servers = servers_needed(state, gpus)
    if servers < 2:
        return None
    first = -(-servers // 2)
    width = first * plant.gpus_per_server
    pair = _best_pair(state.idle_servers, fibres, first, servers - first, width)
    if pair is None:
        return None
    chosen = (*over_idle_servers(state, pair[0], width), *over_idle_servers(state, pair[1], gpus - width))
    return _joined(plant, fibres, job, chosen, pair, width)


def joined_pair(state: Occupancy, fibres: FreeFibres, job: str, gpus: tuple[int, ...]) -> Allocation | None:
    """GPUs that are chosen already, if they are on two leafs, the first of which has no fewer of them."""
    plant = optical(state)
    leaf_of_gpu = plant.leaf_of_gpu[list(gpus)].tolist()
    leafs = tuple(dict.fromkeys(leaf_of_gpu))
    width = leaf_of_gpu.count(leafs[0])
    if len(leafs) != 2 or 2 * width < len(gpus):
        return None
    if int((fibres.leaf[leafs[0]] & fibres.leaf[leafs[1]]).sum()) < width:
        return None
    return _joined(plant, fibres, job, gpus, (leafs[0], leafs[1]), width)


def _joined(
    plant: OpticalPlant, fibres: FreeFibres, job: str, chosen: tuple[int, ...], pair: tuple[int, int], width: int
) -> Allocation:
    gpus = len(chosen)
    switches = _least_useful(fibres, pair, width)
    spines = tuple(plant.packet_spines + switch for switch in switches)
    return Allocation(
        job=job,
        gpus=chosen,
        stage="ocs",
        leafs=pair,
        spines=spines,
        links=tuple((leaf, spine) for leaf in pair for spine in spines),
        spine_of_gpu=tuple(spines[rank % width] for rank in range(gpus)),
        leaf_of_gpu=(pair[0],) * width + (pair[1],) * (gpus - width),
        cables=(0,) * (2 * width),
    )


def _best_pair(
    idle: NDArray[np.int64], fibres: FreeFibres, first: int, second: int, width: int
) -> tuple[int, int] | None:
    """(leaf of the larger part, leaf of the smaller) with the fewest idle servers together."""
    from ropewalk.tenancy.optical._fibres_kernel import cheapest_pair

    larger = np.flatnonzero((idle >= first) & (fibres.of_leaf >= width))
    smaller = np.flatnonzero((idle >= second) & (fibres.of_leaf >= width))
    if not len(larger) or not len(smaller):
        return None
    one, other = cheapest_pair(fibres.leaf_words, larger, smaller, idle, width)
    return None if one < 0 else (int(one), int(other))


def _least_useful(fibres: FreeFibres, pair: tuple[int, int], width: int) -> list[int]:
    """Switches that both leafs reach; first those with the fewest spine fibres left for each leaf that wants one."""
    common = np.flatnonzero(fibres.leaf[pair[0]] & fibres.leaf[pair[1]])
    spare = fibres.spine.sum(axis=0) - fibres.leaf.sum(axis=0)
    chosen = common[np.argsort(spare[common], kind="stable")][:width]
    return sorted(chosen.tolist())
