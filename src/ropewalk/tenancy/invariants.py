"""What must hold of a cluster after every event: nothing is given away twice, and every reserved set is complete."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import Findings, PhysicsError
from ropewalk.tenancy.allocation import OWN_LEAF, Allocation
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.shards.plant import PanelPlant

if TYPE_CHECKING:
    from ropewalk.tenancy.occupancy import Occupancy

Cable = tuple[int, int, int]
"""(switch below, switch above, number)."""


def check_jobs(state: Occupancy) -> None:
    """No GPU and no cable in two jobs; what no job holds is free; every allocation is what its stage promises."""
    plant = state.plant
    findings = Findings(PhysicsError, f"state of {plant.name}")
    gpu_owner: dict[int, str] = {}
    for held in state.jobs.values():
        for gpu in held.gpus:
            if gpu in gpu_owner:
                findings.add(f"GPU {gpu} is in jobs {gpu_owner[gpu]} and {held.job}")
            gpu_owner[gpu] = held.job
        check_allocation(plant, held, findings)
    left = np.full(plant.servers, (1 << plant.gpus_per_server) - 1, np.int64)
    for gpu in gpu_owner:
        left[gpu // plant.gpus_per_server] &= ~(1 << gpu % plant.gpus_per_server)
    if not np.array_equal(left, state.free_gpus):
        findings.add("the free GPUs are not those that no job holds")
    # Of `releasing` allocations only the links are still taken.
    held_links = (*state.jobs.values(), *state.releasing.values())
    below = [(held.job, held.reserved()) for held in held_links]
    above = [(held.job, held.reserved_above()) for held in held_links]
    _check_cables("(leaf, spine, number)", below, plant.cables, state.links.bits, findings)
    _check_cables("(spine, core, number)", above, plant.core_cables, state.core_links.bits, findings)
    findings.raise_if_any()


def _check_cables(
    what: str,
    held: Iterable[tuple[str, list[Cable]]],
    cables: NDArray[np.int32],
    free: NDArray[np.int64],
    findings: Findings,
) -> None:
    owner: dict[Cable, str] = {}
    for job, reserved in held:
        for cable in reserved:
            if cable in owner:
                findings.add(f"cable {what} {cable} is in jobs {owner[cable]} and {job}")
            owner[cable] = job
    left = (np.int64(1) << cables.astype(np.int64)) - 1
    for below, above, number in owner:
        left[below, above] &= ~(1 << number)
    if not np.array_equal(left, free):
        findings.add(f"the free cables {what} are not those that no job holds")


def check_allocation(plant: Plant, held: Allocation, findings: Findings) -> None:
    """One allocation by itself: ranks leaf by leaf, and links that form what its stage promises."""
    if held.leaf_of_gpu != tuple(plant.leaf_of_gpu[list(held.gpus)].tolist()):
        findings.add(f"job {held.job} lists wrong leafs for its GPUs")
        return  # the rest goes by these leafs
    if held.leafs != tuple(dict.fromkeys(held.leaf_of_gpu)):
        findings.add(f"job {held.job} lists leafs {held.leafs}, its ranks visit others")
        return
    units = [leaf // plant.rails for leaf in held.leaf_of_gpu]
    turns = sum(a != b for a, b in pairwise(units))
    if turns != len(set(units)) - 1:
        findings.add(f"job {held.job} returns to a leaf: ranks must be ordered leaf by leaf")
    if held.stage in ("server", "leaf") and (held.links or set(held.spine_of_gpu) - {OWN_LEAF}):
        findings.add(f"job {held.job} is on one leaf but reserves links")
    if held.stage in ("clos", "ocs-core"):
        _check_clos(plant, held, findings)
    if isinstance(plant, PanelPlant) and len(set(plant.island_of_rack[list(held.leafs)].tolist())) > 1:
        findings.add(f"job {held.job} is on islands that no cable joins")


def _check_clos(plant: Plant, held: Allocation, findings: Findings) -> None:
    links = set(held.links)
    if len(links) < len(held.links):
        findings.add(f"job {held.job} reserves a link twice")
    stray = [
        (gpu, spine)
        for gpu, leaf, spine in zip(held.gpus, held.leaf_of_gpu, held.spine_of_gpu, strict=True)
        if (leaf, spine) not in links
    ]
    for gpu, spine in stray:
        findings.add(f"GPU {gpu} of job {held.job} sends to spine {spine}, to which its leaf has no reserved link")
    if stray or held.guarantee != "contention-free":
        return
    pods = list(dict.fromkeys(plant.tiers.pod_of_leaf[list(held.leafs)].tolist()))
    each = len(held.spines) // (len(pods) * plant.rails)
    spines = {}
    for leaf in held.leafs:
        group = pods.index(int(plant.tiers.pod_of_leaf[leaf])) * plant.rails + leaf % plant.rails
        spines[leaf] = held.spines[group * each : (group + 1) * each]
    whole = {(leaf, spine) for leaf, own in spines.items() for spine in own}
    if links != whole:
        findings.add(f"job {held.job} reserves {len(links)} links, not all {len(whole)} of its leafs times its spines")
    for leaf in held.leafs:
        own = tuple(s for at, s in zip(held.leaf_of_gpu, held.spine_of_gpu, strict=True) if at == leaf)
        if own != spines[leaf]:
            findings.add(f"job {held.job} on leaf {leaf}: its i-th GPU must send to its i-th spine")
    if len(pods) > 1 and held.stage == "clos":
        _check_cores(plant, held, pods, findings)


def _check_cores(plant: Plant, held: Allocation, pods: list[int], findings: Findings) -> None:
    """Over pods: GPU i of the k-th leaf of each pod has one core, every lane has equal cores, all cables reserved."""
    links = set(held.core_links)
    if len(links) < len(held.core_links):
        findings.add(f"job {held.job} reserves a link to a core twice")
    lane = plant.tiers.lane_of_spine()
    pod_of_leaf = plant.tiers.pod_of_leaf
    place: dict[int, int] = {}
    for pod in pods:
        for rail in range(plant.rails):
            mine = [leaf for leaf in held.leafs if pod_of_leaf[leaf] == pod and leaf % plant.rails == rail]
            place |= {leaf: number for number, leaf in enumerate(mine)}
    core_of: dict[tuple[int, int], int] = {}
    wanted = set()
    for leaf, spine, core in zip(held.leaf_of_gpu, held.spine_of_gpu, held.core_of_gpu, strict=True):
        seat = (int(lane[spine]), place[leaf])
        if core_of.setdefault(seat, core) != core:
            findings.add(f"job {held.job}: GPUs of lane {seat[0]} on the same leaf of their pods send to other cores")
        wanted |= {(int(plant.tiers.first_spine[pod]) + seat[0], core) for pod in pods}
    if len({(at, core) for (at, _), core in core_of.items()}) < len(core_of):
        findings.add(f"job {held.job}: two leafs of a pod send to one core in one lane")
    if links != wanted:
        findings.add(f"job {held.job} reserves {len(links)} links to cores, not all {len(wanted)} of its spines")
