"""Circuits between pods as an integer program word for word, and all choices of a small plant."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product

import numpy as np
from optical_reference import Program

from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.pods import free_core_fibres
from ropewalk.tenancy.vclos.shapes import Shapes, over_pods


def lanes_program(fibres: FreeFibres, spines: np.ndarray, cores: int) -> bool:
    """Can every lane, a row of `spines`, have so many virtual cores? One variable for each circuit that could be.

    b[v, j]: virtual core v is in core j; s[v, k]: it is a circuit through switch k, straight between two spines;
    x[v, a, j, k]: the a-th spine of its lane is joined with it in core j through switch k.
    """
    program = Program()
    lanes, pods = spines.shape
    all_cores, switches = fibres.spine.shape
    virtual = list(product(range(lanes), range(cores)))
    for v in virtual:
        for j in range(all_cores):
            program.variable(("b", v, j), 1)
            for a, k in product(range(pods), range(switches)):
                program.variable(("x", v, a, j, k), 1)
        for k in range(switches):
            program.variable(("s", v, k), 1 if pods == 2 else 0)
    for v in virtual:
        places = [("b", v, j) for j in range(all_cores)] + [("s", v, k) for k in range(switches)]
        program.row(dict.fromkeys(places, 1.0), 1, 1)
        for a, j in product(range(pods), range(all_cores)):
            circuits = {("x", v, a, j, k): 1.0 for k in range(switches)}
            program.row({**circuits, ("b", v, j): -1.0}, 0, 0)
    for spine, k in product(range(len(fibres.leaf)), range(switches)):
        mine = [(v, a) for v in virtual for a in range(pods) if spines[v[0], a] == spine]
        terms = {("x", v, a, j, k): 1.0 for v, a in mine for j in range(all_cores)}
        terms |= {("s", v, k): 1.0 for v, _ in mine}
        if terms:
            program.row(terms, 0, int(fibres.leaf[spine, k]))
    for j, k in product(range(all_cores), range(switches)):
        terms = {("x", v, a, j, k): 1.0 for v in virtual for a in range(pods)}
        program.row(terms, 0, int(fibres.spine[j, k]))
    return program.best() is not None


def could_start(state: Occupancy, gpus: int, shapes: Shapes) -> bool:
    """Over pods: some choice of pods, leafs, spines and their order has circuits. All of them are tried."""
    fibres = free_core_fibres(state)
    return any(
        lanes_program(fibres, spines, leafs)
        for pods, leafs, width in over_pods(state.plant, gpus, shapes)
        for spines in _choices(state, pods, leafs, width)
    )


def _choices(state: Occupancy, pods: int, leafs: int, width: int) -> Iterator[np.ndarray]:
    """[lane, pod] of every choice of spines that some leafs of every pod share."""
    tiers, servers = state.plant.tiers, width // state.plant.gpus_per_server
    able: list[list[tuple[int, ...]]] = []
    for pod in range(tiers.pods):
        rows = range(tiers.first_leaf[pod], tiers.first_leaf[pod + 1])
        mine = range(tiers.first_spine[pod], tiers.first_spine[pod + 1])
        fits = [leaf for leaf in rows if state.idle_servers[leaf] >= servers]
        sets = {
            spines
            for chosen in combinations(fits, leafs)
            for spines in combinations([s for s in mine if (state.cables_free[list(chosen), s] > 0).all()], width)
        }
        able.append(sorted(sets))
    for some in combinations(range(tiers.pods), pods):
        for first, *others in product(*(able[pod] for pod in some)):
            for orders in product(*(permutations(other) for other in others)):
                yield np.array([first, *orders], np.int64).T
