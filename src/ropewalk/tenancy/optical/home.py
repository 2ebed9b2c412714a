"""Circuits that stand for the cables of the plant: where all of them are set, pods are joined as if without switches.

Jobs over pods take such *home* circuits first, by the very search of vClos. As long as they are there, a job with
circuits starts wherever it would start with cables; others leave them alone where they can.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.lanes import CoreLanes
from ropewalk.tenancy.optical.laying import Laying
from ropewalk.tenancy.vclos.search import NODE_BUDGET
from ropewalk.tenancy.vclos.subtree import FoundTree, search_subtree
from ropewalk.tenancy.words import words_of

NOWHERE = -1


@lru_cache(maxsize=64)
def home_switches(plant: CoreOpticalPlant) -> Ints:
    """[spine, packet core]: the switch of the circuit that replaces their cable, or -1.

    It is a colouring of the cables by switches, so no two of them need the same fibre.
    """
    laying = Laying.over(FreeFibres(plant.core_cables[:, : plant.switches] > 0, plant.core_fibres.astype(np.int64)))
    cables = np.ascontiguousarray(np.argwhere(plant.home_cables > 0))
    at = 0
    while at < len(cables):
        at = laying.lay(cables, at) + 1  # a cable that no circuit can replace has none
    spine, switch, core = laying.circuits()
    found = np.full(plant.home_cables.shape, NOWHERE, np.int64)
    found[spine, core] = switch
    return found


def home_words(state: Occupancy, plant: CoreOpticalPlant, fibres: FreeFibres) -> NDArray[np.uint64]:
    """[spine, word]: bit c says that the home circuit of the spine to core c can be set now."""
    home = home_switches(plant)
    spine, core = np.nonzero(home >= 0)
    switch = home[spine, core]
    free = fibres.leaf[spine, switch]
    # A fibre of the core that somebody else's circuit has taken may be that of any home circuit there.
    wanted = np.zeros(fibres.spine.shape, np.int64)
    np.add.at(wanted, (core[free], switch[free]), 1)
    free &= fibres.spine[core, switch] >= wanted[core, switch]
    padded = np.zeros((plant.spines, plant.packet_cores), bool)
    padded[spine[free], core[free]] = True
    return words_of(padded)


def over_home_circuits(
    state: Occupancy, plant: CoreOpticalPlant, fibres: FreeFibres, pods: int, leafs: int, spines: int
) -> tuple[Ints, Ints, CoreLanes] | None:
    """(leafs [pod, leaf], spines [lane, pod], circuits) as vClos would have them with cables; None where it has not."""
    from ropewalk.tenancy.vclos import _clos_kernel as kernel

    words, tiers = home_words(state, plant, fibres), plant.tiers
    found = search_subtree(state, pods, leafs, spines, node_budget=NODE_BUDGET, spine_words=words)
    if not isinstance(found, FoundTree):
        return None
    rows = np.array(found.leafs, np.int64)
    first = tiers.first_spine[tiers.pod_of_leaf[rows[:, 0]]]
    shared = kernel.lanes_with_cores(kernel.shared_by(rows.ravel(), state.spine_words), words, first, leafs)
    ports = np.zeros(tiers.lanes, np.int64)
    for start in first.tolist():
        mine = state.ports_of_spine[start : start + tiers.lanes]
        ports[: len(mine)] += mine
    lanes = np.sort(kernel.fullest(shared, ports)[:spines])[:, None] + first
    core = np.empty((spines, leafs), np.int64)
    for lane in range(spines):
        common = kernel.shared_by(lanes[lane], words)
        core[lane] = np.sort(kernel.fullest(common, fibres.of_spine)[:leafs])
    switch = home_switches(plant)[lanes[:, None, :], core[:, :, None]]
    return rows, lanes, CoreLanes(core, switch)
