"""Volcano's network-topology-aware plugin: HyperNodes of the lowest tier that hold a job, the fullest of them first.

A HyperNode scores (used + request) / allocatable, weighted over resources, and nothing where the job does not fit; the
highest score of the lowest tier with a HyperNode that holds the job wins. Inside it, task by task, a node is preferred
whose HyperNode is nearest to those that the job has already, and of equally near ones the HyperNode with most of its
tasks.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.placements.levels import Levels, levels_of
from ropewalk.tenancy.placements.seated import GangRequest

GPU = "nvidia.com/gpu"


def bin_packing_score(
    used: Mapping[str, float],
    allocatable: Mapping[str, float],
    request: Mapping[str, float],
    weights: Mapping[str, int],
) -> float:
    """How full a HyperNode would be with a job in it, from 0 (the job does not fit) to 1.

    >>> bin_packing_score({}, {"cpu": 12, "memory": 16}, {"cpu": 8, "memory": 8}, {"cpu": 1, "memory": 1})
    0.5833333333333333
    """
    total = weight_of_all = 0.0
    for resource, amount in request.items():
        weight = weights.get(resource)
        if weight is None:
            continue
        held, most = used.get(resource, 0.0), allocatable.get(resource, 0.0)
        if held + amount > most:
            return 0.0
        total += weight * (held + amount) / most
        weight_of_all += weight
    return total / weight_of_all if weight_of_all else 0.0


def by_hypernodes(state: Occupancy, asked: GangRequest) -> Ints:
    """Servers of a job, by GPUs alone."""
    levels = levels_of(state.plant)
    inside = _hypernode(levels, asked, state)
    return _nodes(levels, np.where(inside, asked.room, 0), asked.parts)


def _hypernode(levels: Levels, asked: GangRequest, state: Occupancy) -> NDArray[np.bool_]:
    """The servers of the HyperNode that is filled: the lowest tier that holds the job, then the highest score."""
    size, request = state.plant.gpus_per_server, {GPU: asked.parts * asked.share}
    for level in range(levels.depth - 1, -1, -1):
        holds = np.flatnonzero(levels.sums(level, asked.room) >= asked.parts).tolist()
        if holds:
            could = size * levels.sums(level, np.ones_like(asked.room))
            used = could - levels.sums(level, state.free_in_server)
            scores = [bin_packing_score({GPU: used[at]}, {GPU: could[at]}, request, {GPU: 1}) for at in holds]
            return np.asarray(levels.of_server[level] == holds[int(np.argmax(scores))])
    return np.ones(levels.servers, bool)


def _nodes(levels: Levels, room: Ints, parts: int) -> Ints:
    """One part after the other: on the leaf of the part before, then on the nearest with most parts."""
    left, found, leafs = room.copy(), np.zeros(0, np.int64), levels.of_server[-1]
    while len(found) < parts:
        idle = np.flatnonzero(left)
        near = np.zeros(len(idle), np.int64)
        if len(found):
            near = (levels.of_server[:, idle] == levels.of_server[:, [found[-1]]]).sum(axis=0)
        mine = np.bincount(leafs[found], minlength=levels.count(levels.depth - 1))[leafs[idle]]
        leaf = leafs[idle[np.lexsort((idle, -mine, -near))[0]]]
        on_leaf = np.flatnonzero((leafs == leaf) & (left > 0))[: parts - len(found)]
        found = np.concatenate([found, on_leaf])
        left[on_leaf] -= 1
    return found
