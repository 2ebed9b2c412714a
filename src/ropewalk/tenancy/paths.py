"""The paths of flows between leafs under every routing: a row of links for each, cables up and cables down.

Links are those between switches alone: cable c has link 2c up and 2c + 1 down. A flow takes two of them inside a pod,
and four over a core where it leaves its pod. A NIC belongs to one job, so
what its flows do to each other is known without looking at anybody else.

In a leaf-spine fabric a flow is hashed once, at its leaf; the spine chooses only between parallel cables. That is where
polarisation bites: with the same hash everywhere, flows that reach a spine all pick the same of its cables down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints, Ints32
from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.by_sender import by_sender
from ropewalk.tenancy.plant import Plant


@dataclass(frozen=True, eq=False)
class SwitchNetwork:
    """The network between switches as flows find it: what is alive, and what it carries on average."""

    plant: Plant
    cables: NDArray[np.int32]
    """[leaf, spine]: cables that are alive."""
    load: Callable[[], NDArray[np.float64]]
    """Flows on every link, mean over time; asked for by those who balance."""
    seed: int
    width: NDArray[np.float64] | None = None
    """Cables that each link stands for; 1 each unless given."""
    core_cables: NDArray[np.int32] | None = None
    """[spine, core]: cables that are alive; all of them unless given."""

    @property
    def alive_above(self) -> NDArray[np.int32]:
        """[spine, core]: cables that are alive."""
        return self.plant.core_cables if self.core_cables is None else self.core_cables

    def share(self, path: Ints32, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """[flow, hop]: how much flows of these weights load the links of their paths."""
        there = path >= 0
        if self.width is None:
            return weight[:, None] * there
        return np.where(there, weight[:, None] / self.width[np.where(there, path, 0)], 0.0)


Choose = Callable[[SwitchNetwork, Allocation, Ints, Ints], Ints32]
"""(network, allocation, senders, receivers as places in `allocation.gpus`) -> [flow, hop]: the links of flows that run
at the same time between different leafs, in order; -1 throughout where the network does not hold a flow up, and at the
end of a path that is shorter than others."""


def links_of(plant: Plant) -> int:
    """Links between switches of a plant, both directions."""
    return 2 * plant.switch_cables


def hops_of(plant: Plant) -> int:
    """Links between switches that a flow takes at most."""
    return 4 if plant.cores else 2


def _ends(allocation: Allocation, src: Ints, dst: Ints) -> tuple[Ints, Ints]:
    gpus = allocation.columns.gpus
    return gpus[src], gpus[dst]


def _hash(network: SwitchNetwork, allocation: Allocation, src: Ints, dst: Ints, polarised: bool) -> Ints32:
    from ropewalk.tenancy._paths_kernel import hashed
    from ropewalk.tenancy._pod_paths_kernel import hashed_over_cores

    plant, seed = network.plant, network.seed & (2**63 - 1)
    start, end = _ends(allocation, src, dst)
    path = _unheld(plant, src)
    near = _same_pod(plant, start, end)
    flows = start[near], end[near]
    path[near, 0], path[near, 1] = hashed(*flows, plant.leaf_of_gpu, network.cables, plant.first_cable, seed, polarised)
    if not near.all():
        path[~near] = hashed_over_cores(start[~near], end[~near], *_tables(network), seed, polarised)
    if (path[:, 0] < 0).any():
        lost = int(np.flatnonzero(path[:, 0] < 0)[0])
        leafs = plant.leaf_of_gpu[[start[lost], end[lost]]]
        a, b = (plant.leaf_names[leaf] for leaf in leafs)
        raise ClusterError(f"job {allocation.job}: no spine connects {a} and {b}: give both a cable to the same spine")
    return path


def _same_pod(plant: Plant, start: Ints, end: Ints) -> NDArray[np.bool_]:
    pod = plant.tiers.pod_of_leaf
    return np.asarray(pod[plant.leaf_of_gpu[start]] == pod[plant.leaf_of_gpu[end]])


def _tables(network: SwitchNetwork) -> tuple[NDArray[Any], ...]:
    """What is alive between switches, and how it is numbered."""
    plant, tiers = network.plant, network.plant.tiers
    numbers = tiers.pod_of_leaf, tiers.first_spine, tiers.first_core, tiers.end_core
    alive = network.cables, network.alive_above
    return plant.leaf_of_gpu, *alive, plant.first_cable, plant.first_core_cable, *numbers


def ecmp(network: SwitchNetwork, allocation: Allocation, src: Ints, dst: Ints) -> Ints32:
    """Every flow by the hash of its ends, with a seed of its own at every switch."""
    return _hash(network, allocation, src, dst, False)


def polarised_ecmp(network: SwitchNetwork, allocation: Allocation, src: Ints, dst: Ints) -> Ints32:
    """Every flow by the hash of its ends, the same at every switch."""
    return _hash(network, allocation, src, dst, True)


def balanced(network: SwitchNetwork, allocation: Allocation, src: Ints, dst: Ints) -> Ints32:
    """One flow after the other onto the path that carries least, as an ideal adaptive balancer would at job start."""
    from ropewalk.tenancy._paths_kernel import least_loaded
    from ropewalk.tenancy._pod_paths_kernel import least_loaded_over_cores

    plant, load = network.plant, network.load()
    start, end = _ends(allocation, src, dst)
    path = _unheld(plant, src)
    near = _same_pod(plant, start, end)
    flows = start[near], end[near]
    path[near, 0], path[near, 1] = least_loaded(*flows, plant.leaf_of_gpu, network.cables, plant.first_cable, load)
    if not near.all():
        path[~near] = least_loaded_over_cores(start[~near], end[~near], *_tables(network), load)
    if (path[:, 0] < 0).any():
        return ecmp(network, allocation, src, dst)  # names the leafs that nothing joins
    return path


def source(network: SwitchNetwork, allocation: Allocation, src: Ints, dst: Ints) -> Ints32:
    """By the sender alone: over its reserved spine and core, or over those of its place where none are reserved.

    A flow to a leaf that has not reserved the sender's spine takes another spine of the job that both leafs have. What
    would lead over a dead link is hashed over whatever is alive, and may meet other jobs there.
    """
    if allocation.has_circuits:
        # Circuits belong to one job and every GPU has its own: nothing but its NIC can hold a flow up.
        return _unheld(network.plant, src)
    path = by_sender(network, allocation, src, dst)
    lost = np.flatnonzero(path[:, 0] < 0)
    if len(lost):
        path[lost] = ecmp(network, allocation, src[lost], dst[lost])
    return path


def ideal(network: SwitchNetwork, allocation: Allocation, src: Ints, dst: Ints) -> Ints32:
    """No link between switches ever holds a flow up."""
    return _unheld(network.plant, src)


def _unheld(plant: Plant, src: Ints) -> Ints32:
    return np.full((len(src), hops_of(plant)), -1, np.int32)
