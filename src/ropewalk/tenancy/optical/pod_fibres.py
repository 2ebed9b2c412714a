"""Which fibres inside pods are free, and which circuits stand for the cables of the plant.

A job gets such *home* circuits first, by the very search of vClos: as long as they are there, it starts wherever it
would start with cables.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.errors import ClusterError, Findings, PhysicsError
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.circuits import ends_of
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.laying import Laying
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant

NOWHERE = -1


def inside_pods(state: Occupancy) -> PodOpticalPlant:
    """The plant of a state, if leafs and spines of its pods meet in optical switches."""
    if not isinstance(state.plant, PodOpticalPlant):
        raise ClusterError(
            f"{state.plant.name} has no optical switches inside pods: put them in with PodOpticalPlant.of_plant"
        )
    return state.plant


def free_pod_fibres(state: Occupancy) -> FreeFibres:
    """[leaf, switch of its pod] and [spine, switch of its pod] of the whole plant that a new job may use.

    A drained link takes the fibre of its leaf out of service that stands for its cable.
    """
    plant = inside_pods(state)
    leaf, spine = _taken(state, plant)
    free, room = plant.leaf_fibres & (leaf == 0), plant.spine_fibres.astype(np.int64) - spine
    room[sorted(int(number) for number in state.drained.spines)] = 0
    if state.drained.links:
        below, above = np.array(sorted(state.drained.links), np.int64).T
        home = home_switches(plant)[below, above]
        at, cable = np.nonzero(home != NOWHERE)
        free[below[at], home[at, cable]] = False
    return FreeFibres(free, room)


def of_pod(plant: PodOpticalPlant, fibres: FreeFibres, pod: int) -> FreeFibres:
    """The same of one pod, with its leafs, spines and switches numbered from 0."""
    tiers, switches = plant.tiers, plant.pods[pod].switches
    leafs = slice(*tiers.first_leaf[pod : pod + 2].tolist())
    spines = slice(*tiers.first_spine[pod : pod + 2].tolist())
    return FreeFibres(fibres.leaf[leafs, :switches], fibres.spine[spines, :switches])


@lru_cache(maxsize=64)
def home_switches(plant: PodOpticalPlant) -> Ints:
    """[leaf, spine, cable]: the switch of the circuit that stands for a cable; -1 where there is none.

    It is a colouring of the cables by switches, so no two of them need the same fibre.
    """
    found = np.full((*plant.cables.shape, max(int(plant.cables.max(initial=0)), 1)), NOWHERE, np.int64)
    for pod, own in enumerate(plant.pods):
        first_leaf, first_spine = int(plant.tiers.first_leaf[pod]), int(plant.tiers.first_spine[pod])
        cables = plant.cables[first_leaf : first_leaf + own.leafs, first_spine : first_spine + own.packet_spines]
        laying = Laying.over(FreeFibres(own.leaf_fibres, own.spine_fibres.astype(np.int64)))
        for leaf, spine in np.argwhere(cables > 0).tolist():
            for _ in range(int(cables[leaf, spine])):
                laying.lay(leaf, spine)
        for (leaf, spine), switches in laying.switches().items():
            found[first_leaf + leaf, first_spine + spine, : len(switches)] = switches
    return found


def with_home_cables(state: Occupancy, fibres: FreeFibres) -> Occupancy:
    """The state as if it had cables: those are free whose home circuits can all be set now."""
    plant = inside_pods(state)
    home = home_switches(plant)
    leaf, spine, cable = np.nonzero(home != NOWHERE)
    switch = home[leaf, spine, cable]
    free = fibres.leaf[leaf, switch]
    # A fibre of the spine that somebody else's circuit has taken may be that of any home circuit there.
    wanted = np.zeros(fibres.spine.shape, np.int64)
    np.add.at(wanted, (spine[free], switch[free]), 1)
    free &= fibres.spine[spine, switch] >= wanted[spine, switch]
    cabled = state.copy()
    cabled.links.bits = np.zeros_like(state.links.bits)
    np.bitwise_or.at(cabled.links.bits, (leaf[free], spine[free]), np.int64(1) << cable[free])
    cabled.links.recount()
    return cabled


def _taken(state: Occupancy, plant: PodOpticalPlant) -> tuple[Ints, Ints]:
    """Circuits at every fibre of leafs and at the fibres of every spine; more than there are is a bug."""
    leaf = np.zeros(plant.leaf_fibres.shape, np.int64)
    spine = np.zeros(plant.spine_fibres.shape, np.int64)
    for held in (*state.jobs.values(), *state.releasing.values()):
        if held.has_circuits:
            ends = ends_of(plant, held)
            np.add.at(leaf, (ends.leaf, ends.switch), 1)
            np.add.at(spine, (ends.spine, ends.switch), 1)
    findings = Findings(PhysicsError, f"circuits of {plant.name}")
    for at, switch in np.argwhere(leaf > plant.leaf_fibres).tolist():
        findings.add(f"the fibre of {plant.leaf_names[at]} to switch {switch} is in {leaf[at, switch]} circuits")
    for at, switch in np.argwhere(spine > plant.spine_fibres).tolist():
        findings.add(
            f"{plant.spine_names[at]} has {plant.spine_fibres[at, switch]} fibres to switch {switch} "
            f"and {spine[at, switch]} circuits there"
        )
    findings.raise_if_any()
    return leaf, spine
