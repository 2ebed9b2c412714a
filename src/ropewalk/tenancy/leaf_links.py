"""All cables of a leaf, or of a pod, as one link up and one down: what flows meet on that are spread over every path.

Where packets of a flow take every path in turn, or flows the emptiest one at the moment, two flows hold each other up
only where their leaf has not enough cables for both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints, Ints32
from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.paths import SwitchNetwork, hops_of
from ropewalk.tenancy.plant import Plant


def leaf_links(plant: Plant) -> int:
    """A link up and a link down for every leaf; with three tiers, for every pod as well."""
    return 2 * (plant.leafs + plant.tiers.pods * bool(plant.cores))


def leaf_widths(plant: Plant, cables: NDArray[np.int32], core_cables: NDArray[np.int32]) -> NDArray[np.float64]:
    """Cables that are alive of every leaf, and of every pod to cores, up and down."""
    of_leaf = cables.sum(axis=1)
    of_pod = np.bincount(plant.tiers.pod_of_spine, core_cables.sum(axis=1), minlength=plant.tiers.pods)
    widths = np.concatenate([of_leaf, of_pod]) if plant.cores else of_leaf
    return np.repeat(np.maximum(widths, 1), 2).astype(np.float64)


def over_leafs(network: SwitchNetwork, allocation: Allocation, src: Ints, dst: Ints) -> Ints32:
    """The links up of the leaf, and of the pod, that a flow leaves, and those down on the other side."""
    plant = network.plant
    leaf, pod = np.array(allocation.leaf_of_gpu, np.int64), plant.tiers.pod_of_leaf
    start, end = leaf[src], leaf[dst]
    near = pod[start] == pod[end]
    joined: NDArray[np.bool_] = np.any((network.cables[start] > 0) & (network.cables[end] > 0), axis=1)
    if not near.all():
        joined[~near] = _joined_pods(network)[pod[start[~near]], pod[end[~near]]]
    apart = np.flatnonzero(~joined)
    if len(apart):
        a, b = (network.plant.leaf_names[at] for at in (start[apart[0]], end[apart[0]]))
        raise ClusterError(f"job {allocation.job}: no spine connects {a} and {b}: give both a cable to the same spine")
    path = np.full((len(src), hops_of(plant)), -1, np.int32)
    path[:, 0] = 2 * start
    path[near, 1] = 2 * end[near] + 1
    if not near.all():
        over = 2 * (plant.leafs + pod)
        path[~near, 1], path[~near, 2] = over[start[~near]], over[end[~near]] + 1
        path[~near, 3] = 2 * end[~near] + 1
    return path


def _joined_pods(network: SwitchNetwork) -> NDArray[np.bool_]:
    """[pod, pod]: do both have a cable to the same core?"""
    tiers = network.plant.tiers
    reach = np.zeros((tiers.pods, network.plant.cores), bool)
    np.logical_or.at(reach, tiers.pod_of_spine, network.alive_above > 0)
    return np.asarray((reach[:, None] & reach).any(axis=2))
