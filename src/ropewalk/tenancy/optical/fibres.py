"""Which fibres are free: worked out from what the running jobs hold, so that there is no second book to keep.

A job keeps its circuits from start to end: nothing here or in the allocator changes an allocation that runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints, Words
from ropewalk.errors import ClusterError, Findings, PhysicsError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.circuits import NONE, ends_of
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.words import words_of


@dataclass(frozen=True)
class FreeFibres:
    """Fibres that a new job may use; what is drained is left out."""

    leaf: NDArray[np.bool_]
    """[leaf, switch]"""
    spine: NDArray[np.int64]
    """[spine, switch]: how many."""

    @cached_property
    def of_leaf(self) -> NDArray[np.int64]:
        return np.asarray(self.leaf.sum(axis=1), np.int64)

    @cached_property
    def of_spine(self) -> NDArray[np.int64]:
        return np.asarray(self.spine.sum(axis=1), np.int64)

    @cached_property
    def leaf_words(self) -> Words:
        """[leaf, word]: bit k says that the fibre to switch k is free."""
        return words_of(self.leaf)

    @cached_property
    def spine_words(self) -> Words:
        """[spine, word]: bit k says that it has a free fibre at switch k."""
        return words_of(self.spine > 0)

    @cached_property
    def common(self) -> Ints:
        """[leaf, spine]: switches through which the two could be joined now."""
        return self.common_of(np.arange(len(self.leaf)))

    def common_of(self, leafs: Ints) -> Ints:
        """The same of some leafs, row by row."""
        from ropewalk.tenancy.optical._fibres_kernel import shared_switches

        return np.asarray(shared_switches(self.leaf_words[leafs], self.spine_words), np.int64)


def optical(state: Occupancy) -> OpticalPlant:
    """The plant of a state, if it has an optical layer."""
    if not isinstance(state.plant, OpticalPlant):
        raise ClusterError(
            f"{state.plant.name} has no optical switches: put them in with OpticalPlant.of_plant, or allocate by vclos"
        )
    return state.plant


def free_fibres(state: Occupancy) -> FreeFibres:
    """What the running jobs and the drained parts leave free."""
    plant = optical(state)
    leaf, spine = taken(state, plant)
    up = state.drained.links_up(plant)[:, plant.packet_spines :]
    down = sorted(int(number) for number in state.drained.spines)
    fibres = plant.spine_fibres - spine
    fibres[[number for number in down if number < plant.packet_spines]] = 0
    fibres[:, [number - plant.packet_spines for number in down if number >= plant.packet_spines]] = 0
    return FreeFibres(plant.leaf_fibres & (leaf == 0) & up, fibres)


def laid_beside(state: Occupancy, old: Allocation) -> Allocation:
    """What of the circuits of an allocation can still be laid, beside everything that is taken now.

    A fibre is in one circuit only: where another one has been set up, the old one is gone.
    """
    plant = state.plant if isinstance(state.plant, PodOpticalPlant) else optical(state)
    leaf, spine = taken(state, plant)
    leaf_room, spine_room = plant.leaf_fibres.astype(np.int64) - leaf, plant.spine_fibres - spine
    ends, kept = ends_of(plant, old), []
    for number, (at, to, switch) in enumerate(zip(ends.leaf, ends.spine, ends.switch, strict=True)):
        if leaf_room[at, switch] < 1 or (to != NONE and spine_room[to, switch] < 1):
            continue
        leaf_room[at, switch] -= 1
        if to != NONE:
            spine_room[to, switch] -= 1
        kept.append(number)
    return replace(
        old, links=tuple(old.links[number] for number in kept), cables=tuple(old.cables[number] for number in kept)
    )


def taken(state: Occupancy, plant: OpticalPlant | PodOpticalPlant) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Circuits at every fibre of the leafs and at the fibres of every spine; more than there are is a bug."""
    holders = (*state.jobs.values(), *state.releasing.values())
    ends = ends_of(plant, *(allocation for allocation in holders if allocation.has_circuits))
    to_spine = ends.spine != NONE
    leaf = _counted(ends.leaf, ends.switch, plant.leaf_fibres.shape)
    spine = _counted(ends.spine[to_spine], ends.switch[to_spine], plant.spine_fibres.shape)
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


def _counted(row: Ints, column: Ints, shape: tuple[int, ...]) -> Ints:
    """How often each place of a table is named."""
    return (
        np.bincount(row * shape[1] + column, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64, copy=False)
    )
