"""Circuits inside several pods as an integer program word for word, and all choices of a small plant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np
from optical_reference import Program

from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.pod_fibres import free_pod_fibres, inside_pods, of_pod
from ropewalk.tenancy.optical.pod_lanes import LeafPart
from ropewalk.tenancy.vclos.shapes import doubling, over_pods


def pod_lanes_program(parts: Sequence[LeafPart], candidates: Sequence[int], count: int) -> bool:
    """Can so many of the lanes be joined with every virtual leaf? One variable for each circuit that could be.

    y[j]: lane j is taken, in all pods; c[p, i, a, j, k]: virtual leaf a of leaf i in pod p is joined with the spine of
    lane j through switch k.
    """
    program = Program()
    for j in candidates:
        program.variable(("y", j), 1)
    program.row({("y", j): 1.0 for j in candidates}, count, count)
    for p, part in enumerate(parts):
        switches = range(part.fibres.leaf.shape[1])
        virtual = [(i, a) for i in range(len(part.leafs)) for a in range(int(part.leafs[i]))]
        for (i, a), j, k in product(virtual, candidates, switches):
            program.variable((p, i, a, j, k), 1)
        for (i, a), j in product(virtual, candidates):
            program.row({**{(p, i, a, j, k): 1.0 for k in switches}, ("y", j): -1.0}, 0, 0)
        for i, k in product(sorted({i for i, _ in virtual}), switches):
            there = {(p, i, a, j, k): 1.0 for leaf, a in virtual if leaf == i for j in candidates}
            program.row(there, 0, int(part.fibres.leaf[i, k]))
        for j, k in product(candidates, switches):
            program.row({(p, i, a, j, k): 1.0 for i, a in virtual}, 0, int(part.fibres.spine[j, k]))
    return program.best() is not None


def could_start(state: Occupancy, gpus: int) -> bool:
    """Over pods: some choice of pods, virtual leafs and lanes has circuits and cores. All of them are tried."""
    return any(
        pod_lanes_program(parts, lanes, width)
        for pods, leafs, width in over_pods(state.plant, gpus, doubling)
        for parts, lanes in _choices(state, pods, leafs, width)
        if len(lanes) >= width
    )


def _choices(state: Occupancy, pods: int, leafs: int, width: int) -> Iterator[tuple[list[LeafPart], list[int]]]:
    plant, fibres = inside_pods(state), free_pod_fibres(state)
    first, spines = plant.tiers.first_leaf, plant.tiers.first_spine
    for some in combinations(range(plant.tiers.pods), pods):
        free = state.core_links.count > 0
        lanes = [
            lane
            for lane in range(int(np.diff(spines)[list(some)].min()))
            if np.count_nonzero(free[[int(spines[pod]) + lane for pod in some]].all(axis=0)) >= leafs
        ]
        able = [
            [LeafPart(of_pod(plant, fibres, pod), np.array(held, np.int64)) for held in _held(room, leafs)]
            for pod in some
            for room in [state.idle_servers[first[pod] : first[pod + 1]] // (width // plant.gpus_per_server)]
        ]
        for parts in product(*able):
            yield list(parts), lanes


def _held(room: np.ndarray, leafs: int) -> list[tuple[int, ...]]:
    """All ways to deal so many virtual leafs to leafs with room for some."""
    return [held for held in product(*(range(int(most) + 1) for most in room)) if sum(held) == leafs]


def random_parts(seed: int, pods: int, virtual: Sequence[int], lanes: int, switches: int) -> list[LeafPart]:
    """Pods with fibres free at random, and as many virtual leafs on the leafs of each."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(pods):
        leaf = rng.random((len(virtual), switches)) < rng.uniform(0.5, 1.0)
        spine = rng.binomial(2, rng.uniform(0.4, 1.0), (lanes, switches)).astype(np.int64)
        found.append(LeafPart(FreeFibres(leaf, spine), rng.permutation(np.array(virtual, np.int64))))
    return found
