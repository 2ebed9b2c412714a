"""The paths of flows between leafs under every routing: which cable up, which cable down.

Links are those between leafs and spines alone: cable c has link 2c up and 2c + 1 down. A NIC belongs to one job, so
what its flows do to each other is known without looking at anybody else.

In a leaf-spine fabric a flow is hashed once, at its leaf; the spine chooses only between parallel cables. That is where
polarisation bites: with the same hash everywhere, flows that reach a spine all pick the same of its cables down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.plant import Plant

Flows = NDArray[np.int64]
Links = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Network:
    """The leaf-spine network as flows find it: what is alive, and what it carries on average."""

    plant: Plant
    cables: NDArray[np.int32]
    """[leaf, spine]: cables that are alive."""
    load: Callable[[], NDArray[np.float64]]
    """Flows on every link, mean over time; asked for by those who balance."""
    seed: int


Choose = Callable[[Network, Allocation, Flows, Flows], tuple[Links, Links]]
"""(network, allocation, senders, receivers as places in `allocation.gpus`) -> (links up, links down) of flows that run
at the same time between different leafs; -1 where the network does not hold a flow up."""


def links_of(plant: Plant) -> int:
    """Leaf-spine links of a plant, both directions."""
    return 2 * int(plant.cables.sum())


def _ends(allocation: Allocation, src: Flows, dst: Flows) -> tuple[Flows, Flows]:
    gpus = np.array(allocation.gpus, np.int64)
    return gpus[src], gpus[dst]


def _hash(network: Network, allocation: Allocation, src: Flows, dst: Flows, polarised: bool) -> tuple[Links, Links]:
    from ropewalk.tenancy._paths_kernel import hashed

    plant = network.plant
    start, end = _ends(allocation, src, dst)
    up, down = hashed(
        start, end, plant.leaf_of_gpu, network.cables, plant.first_cable, network.seed & (2**63 - 1), polarised
    )
    if (up < 0).any():
        lost = int(np.flatnonzero(up < 0)[0])
        leafs = plant.leaf_of_gpu[[start[lost], end[lost]]]
        a, b = (plant.leaf_names[leaf] for leaf in leafs)
        raise ClusterError(f"job {allocation.job}: no spine joins {a} and {b}: give both a cable to the same spine")
    return up, down


def ecmp(network: Network, allocation: Allocation, src: Flows, dst: Flows) -> tuple[Links, Links]:
    """Every flow by the hash of its ends, with a seed of its own at every switch."""
    return _hash(network, allocation, src, dst, False)


def polarised_ecmp(network: Network, allocation: Allocation, src: Flows, dst: Flows) -> tuple[Links, Links]:
    """Every flow by the hash of its ends, the same at every switch."""
    return _hash(network, allocation, src, dst, True)


def balanced(network: Network, allocation: Allocation, src: Flows, dst: Flows) -> tuple[Links, Links]:
    """One flow after the other onto the path that carries least, as an ideal adaptive balancer would at job start."""
    from ropewalk.tenancy._paths_kernel import least_loaded

    plant = network.plant
    start, end = _ends(allocation, src, dst)
    up, down = least_loaded(start, end, plant.leaf_of_gpu, network.cables, plant.first_cable, network.load())
    if (up < 0).any():
        return ecmp(network, allocation, src, dst)  # names the leafs that nothing joins
    return up, down


def source(network: Network, allocation: Allocation, src: Flows, dst: Flows) -> tuple[Links, Links]:
    """By the sender alone: over its reserved spine, or over the cable of its place on the leaf where none is reserved.

    A flow to a leaf that has not reserved the sender's spine takes another spine of the job that both leafs have. What
    would lead over a dead link is hashed over whatever is alive, and may meet other jobs there.
    """
    if allocation.stage == "ocs":
        # Circuits belong to one job and every GPU has its own: nothing but its NIC can hold a flow up.
        return np.full(len(src), -1, np.int32), np.full(len(src), -1, np.int32)
    wanted = _reserved(network.plant, allocation) if allocation.links else _by_place(network.plant, allocation)
    up, down = _by_table(network, allocation, src, dst, *wanted)
    lost = np.flatnonzero(up < 0)
    if len(lost):
        up[lost], down[lost] = ecmp(network, allocation, src[lost], dst[lost])
    return up, down


def ideal(network: Network, allocation: Allocation, src: Flows, dst: Flows) -> tuple[Links, Links]:
    """No link between leafs and spines ever holds a flow up."""
    return np.full(len(src), -1, np.int32), np.full(len(src), -1, np.int32)


Strands = dict[tuple[int, int], int]


def _reserved(plant: Plant, allocation: Allocation) -> tuple[NDArray[np.int64], NDArray[np.int64], Strands]:
    """Spine of every rank, its cable there, and the job's cable of every (leaf, spine)."""
    strands = {(leaf, spine): cable for leaf, spine, cable in allocation.reserved()}
    spine = np.array(allocation.spine_of_gpu, np.int64)
    cable = [strands.get(link, 0) for link in zip(allocation.leaf_of_gpu, allocation.spine_of_gpu, strict=True)]
    return spine, np.array(cable, np.int64), strands


def _by_place(plant: Plant, allocation: Allocation) -> tuple[NDArray[np.int64], NDArray[np.int64], Strands]:
    """The fixed rule of a plant without isolation: the i-th GPU of a leaf has the i-th cable of the leaf."""
    spine = np.full(allocation.size, -1, np.int64)
    cable = np.zeros(allocation.size, np.int64)
    gpus, leafs = np.array(allocation.gpus, np.int64), np.array(allocation.leaf_of_gpu, np.int64)
    for leaf in allocation.leafs:
        counts = plant.cables[leaf]
        if not counts.any():
            continue
        of_cable = np.repeat(np.arange(plant.spines), counts)
        strand = np.arange(len(of_cable)) - np.repeat(np.cumsum(counts) - counts, counts)
        mine = np.flatnonzero(leafs == leaf)
        place = (gpus[mine] - plant.first_server[leaf] * plant.gpus_per_server) % len(of_cable)
        spine[mine], cable[mine] = of_cable[place], strand[place]
    return spine, cable, {}


def _by_table(
    network: Network,
    allocation: Allocation,
    src: Flows,
    dst: Flows,
    spine_of: NDArray[np.int64],
    cable_of: NDArray[np.int64],
    strands: Strands,
) -> tuple[Links, Links]:
    """The paths of flows whose spine depends on the sender; -1 where that spine does not lead on."""
    plant, alive = network.plant, network.cables
    leaf = np.array(allocation.leaf_of_gpu, np.int64)
    a, b, spine, rise = leaf[src], leaf[dst], spine_of[src].copy(), cable_of[src].copy()
    if strands:
        own = np.zeros((plant.leafs, plant.spines), bool)
        strand = np.zeros((plant.leafs, plant.spines), np.int64)
        for (at, above), cable in strands.items():
            own[at, above], strand[at, above] = True, cable
        # A leaf with fewer GPUs of the job has fewer of its spines: what is sent there shares those.
        for flow in np.flatnonzero((spine < 0) | ~own[a, spine] | ~own[b, spine]).tolist():
            common = np.flatnonzero(own[a[flow]] & own[b[flow]])
            spine[flow] = common[src[flow] % len(common)] if len(common) else -1
            rise[flow] = strand[a[flow], spine[flow]]
        fall = strand[b, spine]
    else:
        # The fixed rule goes on downwards: parallel cables are taken by the sender's number too.
        fall = rise % np.maximum(plant.cables[b, spine], 1)
    leads = (spine >= 0) & (alive[a, spine] > rise) & (alive[b, spine] > fall)
    up = np.where(leads, 2 * (plant.first_cable[a, spine] + rise), -1)
    down = np.where(leads, 2 * (plant.first_cable[b, spine] + fall) + 1, -1)
    return up.astype(np.int32), down.astype(np.int32)
