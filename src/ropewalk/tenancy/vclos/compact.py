"""A small integer program for the same question, asked where the search gives up: is there anything at all?

With sum y_j = s, the constraint sum_j F_ij y_j >= s x_i says that a used leaf reaches every used spine. So cables need
no variables: L + S of them instead of L·S. Its relaxation is weaker than that of the published program, but a node of
its branch and bound is cheap, so that a limit on nodes also limits the time.
"""

from __future__ import annotations

import numpy as np

from ropewalk.tenancy import highs
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.vclos.rows import servers_of
from ropewalk.tenancy.vclos.search import Found, Nothing, Undecided

BRANCH_BUDGET = 300
"""Nodes of the branch and bound of HiGHS. A count, not a clock: the same state gives the same answer everywhere."""


def decide_leafs(
    state: Occupancy, leafs: int, spines: int, *, branch_budget: int = BRANCH_BUDGET
) -> Found | Nothing | Undecided:
    """The cheapest l leafs that share s free spines and have s GPUs each in idle servers, or the best one found."""
    from scipy.optimize import LinearConstraint

    plant, rails = state.plant, state.plant.rails
    # A block of columns for the units, which are leafs where there are no rails, and one for the spines of each rail.
    columns = plant.units + rails * plant.spines
    unit, spine = np.eye(plant.units, columns), np.arange(plant.spines)
    blocks = [unit.sum(axis=0, keepdims=True)]
    low, high = [np.array([leafs])], [np.array([leafs])]
    for rail in range(rails):
        free = np.zeros((plant.units, columns))
        free[:, plant.units + rail * plant.spines + spine] = state.cables_free[rail::rails] > 0
        own = np.eye(plant.spines, columns, plant.units + rail * plant.spines)
        reach = np.zeros((plant.spines, columns))
        reach[:, : plant.units] = (state.cables_free[rail::rails] > 0).T
        blocks += [own.sum(axis=0, keepdims=True), free - spines * unit, reach - leafs * own]
        low += [np.array([spines]), np.zeros(plant.units + plant.spines)]
        high += [np.array([spines]), np.full(plant.units + plant.spines, np.inf)]
    fits = state.idle_servers >= servers_of(state, spines)
    ports = state.ports_of_leaf.reshape(plant.units, rails).sum(axis=1)
    answer = highs.solve(
        np.concatenate([ports, np.zeros(rails * plant.spines)]),
        np.concatenate([fits, np.ones(rails * plant.spines)]),
        LinearConstraint(np.vstack(blocks), np.concatenate(low), np.concatenate(high)),
        gap=0.0,
        node_limit=branch_budget,
    )
    if answer.status == highs.INFEASIBLE:
        return Nothing()
    if answer.x is None:
        return Undecided()
    chosen = np.flatnonzero(np.round(answer.x[: plant.units]).astype(int))
    return Found(tuple(chosen.tolist()), answer.status == highs.SOLVED)
