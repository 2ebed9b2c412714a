"""A linear program with sparse rows, solved by HiGHS: the values, and what each row is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ropewalk.arrays import Floats
from ropewalk.errors import PhysicsError

SIMPLEX_UP_TO = 6_000
"""Variables up to which the simplex method is used; beyond, interior points are faster. Both end in a corner."""


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """An optimal corner."""

    values: Floats
    upper_price: Floats
    """What the objective gains by a unit more on the right of each inequality."""
    equal_price: Floats
    """Minus what it gains by a unit more on the right of each equation."""


def largest_first_variable(
    subject: str, upper: csr_array[Any], limit: Floats, equal: csr_array[Any], right: Floats
) -> LinearSolution:
    """Maximise variable 0 of non-negative variables with `upper @ x <= limit` and `equal @ x == right`.

    >>> rows = csr_array(np.array([[1.0, 1.0]]))
    >>> largest_first_variable("sum", rows, np.array([3.0]), csr_array((0, 2)), np.zeros(0)).values.tolist()
    [3.0, 0.0]
    """
    objective = np.zeros(upper.shape[1])
    objective[0] = -1.0
    solve: Any = linprog  # its annotations know no sparse rows
    method = "highs" if upper.shape[1] <= SIMPLEX_UP_TO else "highs-ipm"
    equations = {"A_eq": equal, "b_eq": right} if equal.shape[0] else {}
    result = solve(objective, A_ub=upper, b_ub=limit, bounds=(0, None), method=method, **equations)
    if result.status != 0:
        raise PhysicsError(f"linear program of {subject}: {result.message}")
    return LinearSolution(
        values=np.asarray(result.x, np.float64),
        upper_price=-np.asarray(result.ineqlin.marginals, np.float64),
        equal_price=np.asarray(result.eqlin.marginals, np.float64),
    )
