"""What must hold of circuits inside pods after every event: no fibre in two of them, every job joined as promised."""

from __future__ import annotations

import numpy as np

from ropewalk.errors import Findings, PhysicsError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.circuits import shape_over_pods
from ropewalk.tenancy.optical.invariants import check_job
from ropewalk.tenancy.optical.pod_fibres import free_pod_fibres, inside_pods
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant


def check_pod_circuits(state: Occupancy) -> None:
    """Prove it of a whole state, on top of `state.check()`."""
    plant = inside_pods(state)
    free_pod_fibres(state)
    findings = Findings(PhysicsError, f"circuits of {plant.name}")
    for held in state.jobs.values():
        pods = plant.tiers.pod_of_leaf[[leaf for leaf, _ in held.links]]
        if (pods != plant.tiers.pod_of_spine[[spine for _, spine in held.links]]).any():
            findings.add(f"a circuit of job {held.job} leads to another pod")
        if held.stage == "ocs":
            check_job(plant, held, findings)
            if len(set(pods.tolist())) > 1:
                findings.add(f"job {held.job} is in several pods and has no cores")
        elif held.stage == "ocs-pods":
            _check_over_pods(plant, held, findings)
    findings.raise_if_any()


def _check_over_pods(plant: PodOpticalPlant, held: Allocation, findings: Findings) -> None:
    """Rank (pod, virtual leaf, lane) has its circuit, its lane in every pod, and its core in every pod."""
    shape = shape_over_pods(plant, held)
    if np.prod(shape) != held.size or len(held.links) != held.size or len(held.core_links) != held.size:
        findings.add(f"job {held.job} has not one circuit and one cable to a core for each rank")
        return
    leaf, spine, core = (
        np.array(column).reshape(shape) for column in (held.leaf_of_gpu, held.spine_of_gpu, held.core_of_gpu)
    )
    ranks = zip(held.leaf_of_gpu, held.spine_of_gpu, held.core_of_gpu, strict=True)
    if any((a, b) != link or (b, c) != above
           for (a, b, c), link, above in zip(ranks, held.links, held.core_links, strict=True)):  # fmt: skip
        findings.add(f"a rank of job {held.job} sends over other links than its own")
    lane = spine - plant.tiers.first_spine[plant.tiers.pod_of_spine[spine]]
    if (lane != lane[:1, :1]).any() or tuple(spine[:, 0].ravel().tolist()) != held.spines:
        findings.add(f"virtual leafs of job {held.job} have different lanes")
    if (leaf != leaf[:, :, :1]).any():
        findings.add(f"a virtual leaf of job {held.job} is on several leafs")
    if (core != core[:1]).any():
        findings.add(f"ranks at one place of the pods of job {held.job} have different cores")
    if any(len(set(cores)) < shape[1] for cores in core[0].T.tolist()):
        findings.add(f"two virtual leafs of job {held.job} share a core of a lane")
