"""The published integer program of a request for l leafs × s spines, solved by HiGHS: the oracle of the search.

Variables: x_i leaf i is used, y_j spine j is used, s_i servers taken on leaf i, c_ij a cable between them is reserved.
Together the equalities say that the reserved cables form a complete bipartite graph with equal whole servers on every
leaf; the objective prefers leafs with few free cables (best fit).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from ropewalk.cluster.occupancy import Occupancy
from ropewalk.cluster.vclos.search import Found, Nothing
from ropewalk.errors import PhysicsError

_SOLVED, _INFEASIBLE = 0, 2
"""What SciPy's `milp` calls an optimum, and a proof that there is nothing."""


@dataclass
class _Rows:
    """Constraints under construction: low <= sum of coefficient times variable <= high."""

    row: list[NDArray[np.int64]] = field(default_factory=list)
    column: list[NDArray[np.int64]] = field(default_factory=list)
    value: list[NDArray[np.float64]] = field(default_factory=list)
    low: list[NDArray[np.float64]] = field(default_factory=list)
    high: list[NDArray[np.float64]] = field(default_factory=list)
    count: int = 0

    def add(
        self, rows: int, low: float, high: float, *terms: tuple[NDArray[np.int64], NDArray[np.int64], float]
    ) -> None:
        """`rows` constraints at once; a term is (row of each entry, variable of each entry, coefficient)."""
        for row, column, value in terms:
            self.row.append(row + self.count)
            self.column.append(column)
            self.value.append(np.full(len(row), value))
        self.low.append(np.full(rows, low))
        self.high.append(np.full(rows, high))
        self.count += rows

    def constraint(self, variables: int) -> LinearConstraint:
        entries = (np.concatenate(self.value), (np.concatenate(self.row), np.concatenate(self.column)))
        matrix = coo_array(entries, shape=(self.count, variables)).tocsr()
        return LinearConstraint(matrix, np.concatenate(self.low), np.concatenate(self.high))


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

    rows = _Rows()
    rows.add(1, leafs, leafs, (one(x), x, 1.0))
    rows.add(1, spines, spines, (one(y), y, 1.0))
    rows.add(len(cable), -1, 0, (each_cable, cable, 1.0), (each_cable, x[free_leaf], -1.0))
    rows.add(len(cable), -1, 0, (each_cable, cable, 1.0), (each_cable, y[free_spine], -1.0))
    rows.add(plant.leafs, 0, 0, (free_leaf, cable, 1.0), (each_leaf, x, -float(spines)))
    rows.add(plant.spines, 0, 0, (free_spine, cable, 1.0), (each_spine, y, -float(leafs)))
    rows.add(plant.leafs, 0, 0, (each_leaf, servers, float(size)), (each_leaf, x, -float(spines)))
    rows.add(plant.leafs, 0, np.inf, (each_leaf, servers, 1.0), (each_leaf, x, -1.0))
    rows.add(1, leafs * spines, leafs * spines, (one(servers), servers, float(size)))

    most = np.ones(variables)
    most[servers] = state.idle_servers
    cost = np.zeros(variables)
    cost[x] = state.ports_of_leaf
    answer = milp(
        cost,
        integrality=np.ones(variables, np.int64),
        bounds=Bounds(0, most),
        constraints=rows.constraint(variables),
        options={"mip_rel_gap": 0.0},
    )
    if answer.status == _INFEASIBLE:
        return Nothing()
    if answer.status != _SOLVED or answer.x is None:
        raise PhysicsError(f"HiGHS stopped without an answer on {plant.name}: {answer.message}")
    chosen = np.flatnonzero(np.round(answer.x[x]).astype(int))
    return Found(tuple(chosen.tolist()), cheapest=True)
