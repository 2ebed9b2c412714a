"""A small integer program for the same question, asked where the search gives up: is there anything at all?

With sum y_j = s, the constraint sum_j F_ij y_j >= s x_i says that a used leaf reaches every used spine. So cables need
no variables: L + S of them instead of L·S. Its relaxation is weaker than that of the published program, but a node of
its branch and bound is cheap, so that a limit on nodes also limits the time.
"""

from __future__ import annotations

import numpy as np

from ropewalk.tenancy import highs
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.vclos.search import Found, Nothing, Undecided

BRANCH_BUDGET = 300
"""Nodes of the branch and bound of HiGHS. A count, not a clock: the same state gives the same answer everywhere."""


def decide_leafs(
    state: Occupancy, leafs: int, spines: int, *, branch_budget: int = BRANCH_BUDGET
) -> Found | Nothing | Undecided:
    """The cheapest l leafs that share s free spines and have s GPUs each in idle servers, or the best one found."""
    from scipy.optimize import LinearConstraint

    plant = state.plant
    free = (state.cables_free > 0).astype(np.float64)
    matrix = np.block(
        [
            [np.ones((1, plant.leafs)), np.zeros((1, plant.spines))],
            [np.zeros((1, plant.leafs)), np.ones((1, plant.spines))],
            [-spines * np.eye(plant.leafs), free],
            [free.T, -leafs * np.eye(plant.spines)],
        ]
    )
    low = np.concatenate([[leafs, spines], np.zeros(plant.leafs + plant.spines)])
    high = np.concatenate([[leafs, spines], np.full(plant.leafs + plant.spines, np.inf)])
    fits = state.idle_servers * plant.gpus_per_server >= spines
    answer = highs.solve(
        np.concatenate([state.ports_of_leaf, np.zeros(plant.spines)]),
        np.concatenate([fits, np.ones(plant.spines)]),
        LinearConstraint(matrix, low, high),
        gap=0.0,
        node_limit=branch_budget,
    )
    if answer.status == highs.INFEASIBLE:
        return Nothing()
    if answer.x is None:
        return Undecided()
    chosen = np.flatnonzero(np.round(answer.x[: plant.leafs]).astype(int))
    return Found(tuple(chosen.tolist()), answer.status == highs.SOLVED)
