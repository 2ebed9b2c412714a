"""The published integer program of a request for l leafs × s spines, solved by HiGHS: the oracle of the search.

Variables: x_i leaf i is used, y_j spine j is used, s_i servers taken on leaf i, c_ij a cable between them is reserved.
Together the equalities say that the reserved cables form a complete bipartite graph with equal whole servers on every
leaf; the objective prefers leafs with few free cables (best fit).
"""

from __future__ import annotations

import numpy as np

from ropewalk.errors import PhysicsError
from ropewalk.tenancy import highs
from ropewalk.tenancy.linear_rows import ConstraintRows
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.vclos.search import Found, Nothing


def solve_leafs(state: Occupancy, leafs: int, spines: int) -> Found | Nothing:
    """The cheapest l leafs that share s free spines and have s GPUs each in idle servers.

    It has no limit and takes as long as it takes: for states of the size of tests and benchmarks.
    """
    plant = state.plant
    size = plant.gpus_per_server
    free_leaf, free_spine = np.nonzero(state.cables_free)
    x = np.arange(plant.leafs)
    y = x[-1] + 1 + np.arange(plant.spines)
    servers = plant.leafs + plant.spines + x
    cable = 2 * plant.leafs + plant.spines + np.arange(len(free_leaf))
    variables = 2 * plant.leafs + plant.spines + len(cable)
    one, each_leaf, each_spine, each_cable = np.zeros_like, x, np.arange(plant.spines), np.arange(len(cable))

    rows = ConstraintRows(variables)
    rows.add([leafs], [leafs], (one(x), x, 1.0))
    rows.add([spines], [spines], (one(y), y, 1.0))
    rows.add(np.full(len(cable), -1.0), 0.0, (each_cable, cable, 1.0), (each_cable, x[free_leaf], -1.0))
    rows.add(np.full(len(cable), -1.0), 0.0, (each_cable, cable, 1.0), (each_cable, y[free_spine], -1.0))
    rows.add(np.zeros(plant.leafs), 0.0, (free_leaf, cable, 1.0), (each_leaf, x, -spines))
    rows.add(np.zeros(plant.spines), 0.0, (free_spine, cable, 1.0), (each_spine, y, -leafs))
    rows.add(np.zeros(plant.leafs), 0.0, (each_leaf, servers, size), (each_leaf, x, -spines))
    rows.add(np.zeros(plant.leafs), np.inf, (each_leaf, servers, 1.0), (each_leaf, x, -1.0))
    rows.add([leafs * spines], [leafs * spines], (one(servers), servers, size))

    most = np.ones(variables)
    most[servers] = state.idle_servers
    cost = np.zeros(variables)
    cost[x] = state.ports_of_leaf
    answer = highs.solve(cost, most, rows.constraint(), gap=0.0)
    if answer.status == highs.INFEASIBLE:
        return Nothing()
    if answer.status != highs.SOLVED or answer.x is None:
        raise PhysicsError(f"HiGHS stopped without an answer on {plant.name}: {answer.message}")
    chosen = np.flatnonzero(np.round(answer.x[x]).astype(int))
    return Found(tuple(chosen.tolist()), cheapest=True)
