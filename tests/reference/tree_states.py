"""Plants of three tiers, even and odd ones, and states of them, random and adversarial."""

from __future__ import annotations

import numpy as np

from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant


def three_tiers(
    pods: int, leafs: int, lanes: int, cores: int, servers: int, size: int = 1, *, planes: bool = True
) -> Plant:
    """Pods of leafs and spines; every lane has a plane of cores of its own, or all lanes share all cores."""
    lane_cores = np.kron(np.eye(lanes, dtype=int), np.ones((1, cores), int)) if planes else np.ones((lanes, cores), int)
    return Plant(
        f"{pods} pods of {leafs}x{lanes} under {cores} cores",
        size,
        np.repeat(np.arange(pods * leafs), servers),
        np.kron(np.eye(pods, dtype=int), np.ones((leafs, lanes), int)),
        core_cables=np.tile(lane_cores, (pods, 1)),
    )


def rails_below_cores(server_bandwidth: float = 125e9) -> Plant:
    """Two pods of two units with two rails; every rail has spines and planes of its own."""
    of_leaf = np.kron(np.eye(2, dtype=int), np.ones((1, 3), int))  # leaf of rail r: three spines of its pod
    return Plant(
        "rails below cores",
        2,
        np.repeat([0, 2, 4, 6], 3),
        np.kron(np.eye(2, dtype=int), np.tile(of_leaf, (2, 1))),
        server_bandwidth=server_bandwidth,
        rails=2,
        core_cables=np.tile(np.kron(np.eye(6, dtype=int), np.ones((1, 2), int)), (2, 1)),
    )


def odd_tiers(rng: np.random.Generator) -> Plant:
    """Uneven leafs, parallel cables, some cables missing; spines of every pod still reach cores of their plane."""
    pods, leafs, lanes, cores = (int(rng.integers(2, high)) for high in (5, 5, 5, 4))
    plain = three_tiers(pods, leafs, lanes, cores, 1, planes=bool(rng.random() < 0.7))
    cables = plain.cables * np.where(rng.random(plain.cables.shape) < 0.15, rng.integers(0, 4, plain.cables.shape), 1)
    above = plain.core_cables
    above = above * np.where(rng.random(above.shape) < 0.1, rng.integers(1, 4, above.shape), 1)
    # The first leaf and the first spine keep a pod in one piece.
    first = np.arange(0, pods * leafs, leafs)
    cables[first] = np.maximum(cables[first], plain.cables[first])
    lead = np.arange(0, pods * lanes, lanes)
    cables[:, lead] = np.maximum(cables[:, lead], plain.cables[:, lead])
    servers = rng.integers(1, 4, pods * leafs)
    size = int(rng.integers(1, 3))
    return Plant("odd tiers", size, np.repeat(np.arange(pods * leafs), servers), cables, core_cables=above)


def some_drained(rng: np.random.Generator, plant: Plant, share: float) -> Drained:
    """Servers, links of both tiers, now and then a switch."""
    below, above = np.nonzero(plant.cables), np.nonzero(plant.core_cables)
    links = [(int(a), int(b)) for a, b in zip(*below, strict=True) if rng.random() < share]
    core_links = [(int(a), int(b)) for a, b in zip(*above, strict=True) if rng.random() < share]
    return Drained(
        servers=np.flatnonzero(rng.random(plant.servers) < 0.6 * share).tolist(),
        links=links,
        core_links=core_links,
        cores=np.flatnonzero(rng.random(plant.cores) < 0.1 * share).tolist(),
        spines=np.flatnonzero(rng.random(plant.spines) < 0.1 * share).tolist(),
    )


def tree_state(seed: int) -> tuple[Occupancy, int, int, int]:
    """A state of a plant, and a shape (pods, leafs, spines) to ask it for."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        plant = odd_tiers(rng)
    else:
        pods, leafs, lanes, cores = (int(rng.integers(2, high)) for high in (6, 6, 6, 5))
        servers = int(rng.integers(1, lanes + 1))
        plant = three_tiers(pods, leafs, lanes, cores, servers, int(rng.integers(1, 3)), planes=seed % 3 == 1)
    state = Occupancy(plant)
    state.drain(some_drained(rng, plant, rng.uniform(0.0, 0.45)))
    asked = int(rng.integers(2, plant.tiers.pods + 1, 2).min())
    leafs = int(
        rng.integers(
            1, max(2, min(int(np.diff(plant.tiers.first_leaf).max()), plant.tiers.cores_per_lane) + 1), 2
        ).min()
    )
    most = max(1, min(plant.tiers.lanes, int(plant.gpus_per_leaf.max())) // plant.gpus_per_server)
    return state, asked, leafs, plant.gpus_per_server * int(rng.integers(1, most + 1, 2).min())
