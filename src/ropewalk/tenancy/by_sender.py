"""Paths under source routing: every link of a flow follows from its sender, and from where it must arrive.

Up it goes over the spine of the sender, and over the sender's core where it leaves the pod. Down there is no choice: of
the other pod it takes the spine in the same lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.by_place import way_up
from ropewalk.tenancy.plant import Plant

if TYPE_CHECKING:
    from ropewalk.tenancy.paths import SwitchNetwork


@dataclass(frozen=True, eq=False)
class _Rule:
    """Of every flow the spine and cable up, and towards other pods core and cable; -1 for none."""

    spine: Ints
    rise: Ints
    core: Ints
    climb: Ints
    # Cables down: those that the job has reserved, else by the number of the cable up.
    fall: Ints
    drop: Ints


def by_sender(network: SwitchNetwork, allocation: Allocation, src: Ints, dst: Ints) -> NDArray[np.int32]:
    """[flow, hop]: paths of flows whose way up depends on the sender; -1 where that way does not lead on."""
    plant, tiers = network.plant, network.plant.tiers
    if not plant.spines:
        return np.full((len(src), 2), -1, np.int32)
    leaf = np.array(allocation.leaf_of_gpu, np.int64)
    a, b = leaf[src], leaf[dst]
    near = tiers.pod_of_leaf[a] == tiers.pod_of_leaf[b]
    rule = _reserved if allocation.links else _by_place
    way = rule(plant, allocation, src, a, b, near)
    last = _arriving(plant, way.spine, b)
    leads = (way.spine >= 0) & (last >= 0)
    leads &= _alive(network.cables, a, way.spine, way.rise) & _alive(network.cables, b, last, way.fall)
    above = network.alive_above
    over = _alive(above, way.spine, way.core, way.climb) & _alive(above, last, way.core, way.drop)
    leads &= near | (over & (way.core >= 0))
    path = np.full((len(src), 4 if plant.cores else 2), -1, np.int64)
    path[near, 0] = _link(plant.first_cable, a, way.spine, way.rise)[near]
    path[near, 1] = _link(plant.first_cable, b, last, way.fall)[near] + 1
    if plant.cores:
        far = ~near
        path[far, 0] = _link(plant.first_cable, a, way.spine, way.rise)[far]
        path[far, 1] = _link(plant.first_core_cable, way.spine, way.core, way.climb)[far]
        path[far, 2] = _link(plant.first_core_cable, last, way.core, way.drop)[far] + 1
        path[far, 3] = _link(plant.first_cable, b, last, way.fall)[far] + 1
    path[~leads] = -1
    return path.astype(np.int32)


def _arriving(plant: Plant, spine: Ints, leaf: Ints) -> Ints:
    """The spine in the same lane of the pod of another leaf; -1 where that pod has fewer."""
    tiers = plant.tiers
    pod = tiers.pod_of_leaf[leaf]
    there = tiers.first_spine[pod] + spine - tiers.first_spine[tiers.pod_of_spine[spine]] if plant.cores else spine
    return np.where((spine >= 0) & (there < tiers.first_spine[pod + 1]), there, -1)


def _alive(cables: NDArray[np.int32], below: Ints, above: Ints, cable: Ints) -> NDArray[np.bool_]:
    if not cables.size:
        return np.zeros(len(below), bool)
    return np.asarray(cables[below, above] > cable)


def _link(first: Ints, below: Ints, above: Ints, cable: Ints) -> Ints:
    return 2 * (first[below, above] + cable)


def _by_place(plant: Plant, allocation: Allocation, src: Ints, a: Ints, b: Ints, near: NDArray[np.bool_]) -> _Rule:
    """The fixed rule of a plant without isolation; it goes on downwards by the number of the cable up."""
    rule, gpu = way_up(plant), allocation.columns.gpus[src]
    spine, rise, core, climb = rule.spine[gpu], rule.cable[gpu], rule.core[gpu], rule.core_cable[gpu]
    last = _arriving(plant, spine, b)
    fall = rise % np.maximum(plant.cables[b, last], 1)
    drop = climb % np.maximum(plant.core_cables[last, core], 1) if plant.cores else climb
    return _Rule(spine, rise, core, climb, fall, drop)


def _reserved(plant: Plant, allocation: Allocation, src: Ints, a: Ints, b: Ints, near: NDArray[np.bool_]) -> _Rule:
    """Over the spine, the core and the cables that the job has reserved."""
    own, strand = _strands(plant.cables.shape, allocation.reserved())
    spine = np.array(allocation.spine_of_gpu, np.int64)[src]
    # A leaf with fewer GPUs of the job has fewer of its spines: what is sent there shares those.
    for flow in np.flatnonzero(near & ((spine < 0) | ~own[a, spine] | ~own[b, spine])).tolist():
        common = np.flatnonzero(own[a[flow]] & own[b[flow]])
        spine[flow] = common[src[flow] % len(common)] if len(common) else -1
    last = _arriving(plant, spine, b)
    rise, fall = strand[a, spine], strand[b, last]
    core, climb, drop = np.full(len(src), -1, np.int64), np.zeros(len(src), np.int64), np.zeros(len(src), np.int64)
    if allocation.core_links:
        _, above = _strands(plant.core_cables.shape, allocation.reserved_above())
        core = np.array(allocation.core_of_gpu, np.int64)[src]
        climb, drop = above[spine, core], above[last, core]
    return _Rule(spine, rise, core, climb, fall, drop)


def _strands(shape: tuple[int, ...], reserved: list[tuple[int, int, int]]) -> tuple[NDArray[np.bool_], Ints]:
    """[below, above]: does the job have a cable there, and which?"""
    own, strand = np.zeros(shape, bool), np.zeros(shape, np.int64)
    if reserved:
        below, above, cable = np.array(reserved, np.int64).T
        own[below, above], strand[below, above] = True, cable
    return own, strand
