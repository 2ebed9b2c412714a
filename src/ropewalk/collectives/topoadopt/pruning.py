"""Few trees: a linear program over all trees found gives the best rate that they allow, then the fewest it finds.

A corner of the program has at most as many trees as there are full arcs and equations. Among corners with the same
rate, those with few and shallow trees are found by asking again for the least sum of rates over what the rates were
before (Candes, Wakin and Boyd 2008): trees that were small become expensive, and disappear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack

from ropewalk.arrays import Floats, Ints
from ropewalk.collectives.optimum.linear_program import largest_first_variable
from ropewalk.collectives.topoadopt.problem import PackingProblem

_ROUNDS = 4
_NOTHING = 1e-7
"""A tree with a smaller part of the rate does not count; linear programs are solved about as precisely."""


@dataclass(frozen=True, eq=False)
class Corner:
    """The best rate over the trees found."""

    unit: float
    """The unit of rates, as a part of the largest capacity."""
    total: float
    price: Floats
    """What a unit more of each arc's capacity would gain."""


def best_corner(problem: PackingProblem[Any], known: float) -> tuple[Corner, Floats]:
    """The best rate, which is above one that is known, and the rates of trees at one corner that has it."""
    graph, equations = problem.graph, problem.equations()
    upper = csr_array(hstack([csr_array((len(graph.capacity), 1)), problem.use()]))
    subject = f"trees on {problem.network.fabric.name}"
    # Solvers work to an absolute precision, so the unit is a rate near the answer.
    solution = largest_first_variable(subject, upper, graph.capacity / known, equations, np.zeros(equations.shape[0]))
    total = float(solution.values[0])
    return Corner(known, total, np.maximum(solution.upper_price, 0.0)), _without_dust(solution.values[1:], total)


def few_trees(problem: PackingProblem[Any], corner: Corner, rate: Floats) -> Floats:
    """Rates with the same sum on fewer trees, or on shallower ones."""
    use, equations = problem.use(), problem.equations()
    right = -corner.total * equations[:, [0]].toarray()[:, 0]
    equations = equations[:, 1:]
    depths = problem.depths()
    weight, best = depths / depths.max(), rate
    solve: Any = linprog  # its annotations know no sparse rows
    for _ in range(_ROUNDS):
        limit = problem.graph.capacity / corner.unit
        result = solve(weight, A_ub=use, b_ub=limit, A_eq=equations, b_eq=right, bounds=(0, None), method="highs")
        if result.status != 0:
            # The rate is at the very edge of what is feasible; rounding may put it beyond. What is known stays good.
            break
        rate = _without_dust(result.x, corner.total)
        if _size(rate, depths) < _size(best, depths):
            best = rate
        weight = depths / depths.max() / (rate / corner.total + 1e-3)
    return best


def _without_dust(rate: Floats, total: float) -> Floats:
    return np.where(rate > _NOTHING * total, rate, 0.0)


def _size(rate: Floats, depths: Ints) -> tuple[int, float]:
    return int(np.count_nonzero(rate)), float(rate @ depths)
