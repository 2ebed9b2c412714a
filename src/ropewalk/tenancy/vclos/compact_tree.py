"""The small integer program for sub-trees over several pods, asked where the search gives up.

Lanes are the same in all pods, so spines need no variables: a leaf that is used reaches all s lanes that are used, and
a pod that is used has all l cores of each of those lanes. With z pods, x leafs, w lanes and c cores of a lane:
sum x over a pod = l z, sum w = s on every rail, sum F w >= s x, sum c over a lane = l w, sum G c >= l (w + z - 1).
"""

from __future__ import annotations

import numpy as np

from ropewalk.tenancy import highs
from ropewalk.tenancy.linear_rows import ConstraintRows as Constraints
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.vclos.compact import BRANCH_BUDGET
from ropewalk.tenancy.vclos.rows import LeafRows, servers_of
from ropewalk.tenancy.vclos.search import Nothing, Undecided
from ropewalk.tenancy.vclos.subtree import FoundTree


def decide_subtree(
    state: Occupancy, pods: int, leafs: int, spines: int, *, branch_budget: int = BRANCH_BUDGET
) -> FoundTree | Nothing | Undecided:
    """The cheapest l leafs in each of p pods with s lanes and l cores in each, or the best one found."""
    plant, tiers = state.plant, state.plant.tiers
    units, all_pods, lanes, wide = plant.units, tiers.pods, tiers.lanes, tiers.cores_per_lane
    rows, rails = LeafRows.of(state), plant.rails
    x, z = np.arange(units), units + np.arange(all_pods)
    # Below cores every spine belongs to one rail, but lanes of a rail are counted for each rail by itself.
    w = units + all_pods + np.arange(rails * lanes).reshape(rails, lanes)
    c = units + all_pods + rails * lanes + np.arange(rails * lanes * wide).reshape(rails, lanes, wide)
    program = Constraints(int(c.max()) + 1)
    pod = np.repeat(np.arange(all_pods), np.diff(rows.first))
    program.add([pods], [pods], (np.zeros(all_pods), z, 1.0))
    program.add(np.zeros(all_pods), 0.0, (pod, x, 1.0), (np.arange(all_pods), z, -leafs))
    for rail in range(rails):
        program.add([spines], [spines], (np.zeros(lanes), w[rail], 1.0))
        leaf, lane = np.nonzero(_leaf_reaches(state, rail, lanes))
        program.add(np.zeros(units), np.inf, (leaf, w[rail, lane], 1.0), (np.arange(units), x, -spines))
        place = np.repeat(np.arange(lanes), wide)
        program.add(np.zeros(lanes), 0.0, (place, c[rail].ravel(), 1.0), (np.arange(lanes), w[rail], -leafs))
        which, lane, core = np.nonzero(_pod_reaches(state, lanes, wide))
        number = np.arange(all_pods * lanes)
        program.add(
            np.full(all_pods * lanes, -leafs),
            np.inf,
            (which * lanes + lane, c[rail, lane, core], 1.0),
            (number, w[rail, number % lanes], -leafs),
            (number, z[number // lanes], -leafs),
        )
    cost = np.zeros(int(c.max()) + 1)
    cost[x] = rows.ports
    most = np.ones(len(cost))
    most[x] = state.idle_servers >= servers_of(state, spines)
    answer = highs.solve(cost, most, program.constraint(), gap=0.0, node_limit=branch_budget)
    if answer.status == highs.INFEASIBLE:
        return Nothing()
    if answer.x is None:
        return Undecided()
    chosen = np.flatnonzero(np.round(answer.x[x]).astype(int)).reshape(pods, leafs)
    return FoundTree(tuple(tuple(row) for row in chosen.tolist()), answer.status == highs.SOLVED)


def _leaf_reaches(state: Occupancy, rail: int, lanes: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """[unit, lane]: has the leaf of a rail a free cable to the spine in that lane?"""
    words = state.spine_words[rail :: state.plant.rails]
    return np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little")[:, :lanes] > 0


def _pod_reaches(state: Occupancy, lanes: int, cores: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """[pod, lane, core]: has the spine in that lane of a pod a free cable to that core of its plane?"""
    words = state.core_links.words
    of_spine = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little")[:, :cores] > 0
    tiers = state.plant.tiers
    reaches = np.zeros((tiers.pods, lanes, cores), bool)
    reaches[tiers.pod_of_spine, tiers.lane_of_spine()] = of_spine
    return reaches
