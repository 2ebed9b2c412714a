"""What must hold of an optical plant after every event: no fibre in two circuits, every job joined as promised."""

from __future__ import annotations

from collections import Counter

from ropewalk.errors import Findings, PhysicsError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.circuits import is_straight, virtual_leaf
from ropewalk.tenancy.optical.fibres import free_fibres, optical
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant


def check_circuits(state: Occupancy) -> None:
    """Prove it of a whole state, on top of `state.check()`."""
    plant = optical(state)
    free_fibres(state)
    findings = Findings(PhysicsError, f"circuits of {plant.name}")
    for held in state.jobs.values():
        if held.stage == "ocs":
            check_job(plant, held, findings)
    findings.raise_if_any()


def check_job(plant: OpticalPlant | PodOpticalPlant, held: Allocation, findings: Findings) -> None:
    """A job has a circuit from every virtual leaf to every virtual spine, and its ranks use them by the rule."""
    width = len(held.spines)
    if not width or len(held.links) != len(held.cables) or len(held.links) % width:
        findings.add(f"job {held.job} has {len(held.links)} circuits for {width} virtual spines")
        return
    rows = [held.links[first : first + width] for first in range(0, len(held.links), width)]
    if len(rows) != virtual_leaf(held, held.size - 1) + 1:
        findings.add(f"job {held.job} has circuits for {len(rows)} virtual leafs, its ranks fill another number")
        return
    for number, row in enumerate(rows):
        if {leaf for leaf, _ in row} != {row[0][0]} or tuple(spine for _, spine in row) != held.spines:
            findings.add(f"virtual leaf {number} of job {held.job} is not joined with each virtual spine once")
    for rank in range(held.size):
        if held.leaf_of_gpu[rank] != rows[virtual_leaf(held, rank)][0][0]:
            findings.add(f"rank {rank} of job {held.job} is not on the leaf of its virtual leaf")
        if held.spine_of_gpu[rank] != held.spines[rank % width]:
            findings.add(f"rank {rank} of job {held.job} does not send to the virtual spine of its place")
    if is_straight(plant, held):
        if len(held.leafs) != 2 or len(rows) != 2 or max(Counter(held.spines).values()) > 1:
            findings.add(f"job {held.job} has direct circuits but not two leafs with a switch for each")
    elif max(held.spines) >= plant.packet_spines:
        findings.add(f"job {held.job} mixes spines and direct circuits")
