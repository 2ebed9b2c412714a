"""What must hold of a cluster after every event: nothing is given away twice, and every reserved set is complete."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import Findings, PhysicsError
from ropewalk.tenancy.allocation import OWN_LEAF, Allocation
from ropewalk.tenancy.plant import Plant


def check_jobs(
    plant: Plant, jobs: Iterable[Allocation], free_gpus: NDArray[np.int64], free_cables: NDArray[np.int64]
) -> None:
    """No GPU and no cable in two jobs; what no job holds is free; every allocation is what its stage promises."""
    findings = Findings(PhysicsError, f"state of {plant.name}")
    gpu_owner: dict[int, str] = {}
    cable_owner: dict[tuple[int, int, int], str] = {}
    for held in jobs:
        for gpu in held.gpus:
            if gpu in gpu_owner:
                findings.add(f"GPU {gpu} is in jobs {gpu_owner[gpu]} and {held.job}")
            gpu_owner[gpu] = held.job
        for cable in held.reserved():
            if cable in cable_owner:
                findings.add(f"cable (leaf, spine, number) {cable} is in jobs {cable_owner[cable]} and {held.job}")
            cable_owner[cable] = held.job
        check_allocation(plant, held, findings)
    left = np.full(plant.servers, (1 << plant.gpus_per_server) - 1, np.int64)
    for gpu in gpu_owner:
        left[gpu // plant.gpus_per_server] &= ~(1 << gpu % plant.gpus_per_server)
    if not np.array_equal(left, free_gpus):
        findings.add("the free GPUs are not those that no job holds")
    cables_left = (np.int64(1) << plant.cables.astype(np.int64)) - 1
    for leaf, spine, number in cable_owner:
        cables_left[leaf, spine] &= ~(1 << number)
    if not np.array_equal(cables_left, free_cables):
        findings.add("the free cables are not those that no job holds")
    findings.raise_if_any()


def check_allocation(plant: Plant, held: Allocation, findings: Findings) -> None:
    """One allocation by itself: ranks leaf by leaf, and links that form what its stage promises."""
    if held.leaf_of_gpu != tuple(plant.leaf_of_gpu[list(held.gpus)].tolist()):
        findings.add(f"job {held.job} says that its GPUs are on other leafs than they are")
    if held.leafs != tuple(dict.fromkeys(held.leaf_of_gpu)):
        findings.add(f"job {held.job} lists leafs {held.leafs}, its ranks visit others")
    turns = sum(a != b for a, b in zip(held.leaf_of_gpu, held.leaf_of_gpu[1:], strict=False))
    if turns != len(held.leafs) - 1:
        findings.add(f"job {held.job} comes back to a leaf: ranks must be ordered leaf by leaf")
    if held.stage in ("server", "leaf") and (held.links or set(held.spine_of_gpu) - {OWN_LEAF}):
        findings.add(f"job {held.job} stays on one leaf and yet reserves links")
    if held.stage == "clos":
        _check_clos(held, findings)


def _check_clos(held: Allocation, findings: Findings) -> None:
    links = set(held.links)
    if len(links) < len(held.links):
        findings.add(f"job {held.job} reserves a link twice")
    for gpu, leaf, spine in zip(held.gpus, held.leaf_of_gpu, held.spine_of_gpu, strict=True):
        if (leaf, spine) not in links:
            findings.add(f"GPU {gpu} of job {held.job} sends to spine {spine}, to which its leaf has no reserved link")
    if held.guarantee != "contention-free":
        return
    whole = {(leaf, spine) for leaf in held.leafs for spine in held.spines}
    if links != whole:
        findings.add(f"job {held.job} reserves {len(links)} links, not all {len(whole)} of its leafs times its spines")
    for leaf in held.leafs:
        own = [s for at, s in zip(held.leaf_of_gpu, held.spine_of_gpu, strict=True) if at == leaf]
        if own != list(held.spines):
            findings.add(f"job {held.job} on leaf {leaf}: its i-th GPU must send to its i-th spine")
