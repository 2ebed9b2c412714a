"""Which fibres inside pods are free, and which circuits stand for the cables of the plant.

A job gets such *home* circuits first, by the very search of vClos: as long as they are there, it starts wherever it
would start with cables.
"""

from __future__ import annotations

import numpy as np

from ropewalk.errors import ClusterError
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.fibres import FreeFibres, taken
from ropewalk.tenancy.optical.pod_plant import NOWHERE, PodOpticalPlant


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
    leaf, spine = taken(state, plant)
    free, room = plant.leaf_fibres & (leaf == 0), plant.spine_fibres.astype(np.int64) - spine
    room[sorted(int(number) for number in state.drained.spines)] = 0
    if state.drained.links:
        below, above = np.array(sorted(state.drained.links), np.int64).T
        home = plant.home_switch[below, above]
        at, cable = np.nonzero(home != NOWHERE)
        free[below[at], home[at, cable]] = False
    return FreeFibres(free, room)


def of_pod(plant: PodOpticalPlant, fibres: FreeFibres, pod: int) -> FreeFibres:
    """The same of one pod, with its leafs, spines and switches numbered from 0."""
    tiers, switches = plant.tiers, plant.pods[pod].switches
    leafs = slice(*tiers.first_leaf[pod : pod + 2].tolist())
    spines = slice(*tiers.first_spine[pod : pod + 2].tolist())
    return FreeFibres(fibres.leaf[leafs, :switches], fibres.spine[spines, :switches])


def with_home_cables(state: Occupancy, fibres: FreeFibres) -> Occupancy:
    """The state as if it had cables: those are free whose home circuits can all be set now."""
    plant = inside_pods(state)
    home = plant.home_switch
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
