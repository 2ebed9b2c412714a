"""The published integer program carried to three tiers, solved by HiGHS: the oracle of the search over pods.

Variables: z_P pod P is used, x_u leaf u is used, s_u servers taken there, y_Pq the spine in lane q of pod P is used,
w_q the lane is, c_qk core k of its plane is, and one variable for every free cable: e_uq between leaf and spine, f_Pqk
between spine and core. The equalities say that reserved cables form complete bipartite graphs in both tiers, with
the same lanes in all pods and the same cores for all spines of a lane.
"""

from __future__ import annotations

import numpy as np

from ropewalk.errors import PhysicsError
from ropewalk.tenancy import highs
from ropewalk.tenancy.linear_rows import ConstraintRows
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.vclos.search import Nothing
from ropewalk.tenancy.vclos.subtree import FoundTree


class Columns:
    """Numbers of variables, block by block."""

    def __init__(self) -> None:
        self.count = 0

    def block(self, size: int) -> np.ndarray:
        first = self.count
        self.count += size
        return np.arange(first, self.count)


def solve_tree(state: Occupancy, pods: int, leafs: int, spines: int) -> FoundTree | Nothing:
    """The cheapest l leafs in each of p pods with s lanes in common and l cores in each; without rails."""
    plant, tiers = state.plant, state.plant.tiers
    lane = tiers.lane_of_spine()
    leaf, spine = np.nonzero(state.links.count)
    below, core = np.nonzero(state.core_links.count)
    cores_of_lane = {(int(lane[a]), int(b)) for a, b in zip(below, core, strict=True)}
    seat = {pair: number for number, pair in enumerate(sorted(cores_of_lane))}

    made = Columns()
    z, x, y = made.block(tiers.pods), made.block(plant.leafs), made.block(plant.spines)
    w, c = made.block(tiers.lanes), made.block(len(seat))
    servers, e, f = made.block(plant.leafs), made.block(len(leaf)), made.block(len(below))
    rows = ConstraintRows(made.count)
    every = np.arange
    rows.add([pods], [pods], (np.zeros(tiers.pods), z, 1.0))
    rows.add([spines], [spines], (np.zeros(tiers.lanes), w, 1.0))
    rows.add(np.zeros(tiers.pods), 0.0, (tiers.pod_of_leaf, x, 1.0), (every(tiers.pods), z, -leafs))
    rows.add(np.zeros(tiers.pods), 0.0, (tiers.pod_of_spine, y, 1.0), (every(tiers.pods), z, -spines))
    rows.add(np.zeros(tiers.lanes), 0.0, (lane, y, 1.0), (every(tiers.lanes), w, -pods))
    # Cables between leafs and spines: all between what is used, none elsewhere.
    rows.add(np.full(len(e), -1.0), 0.0, (every(len(e)), e, 1.0), (every(len(e)), x[leaf], -1.0))
    rows.add(np.full(len(e), -1.0), 0.0, (every(len(e)), e, 1.0), (every(len(e)), y[spine], -1.0))
    rows.add(np.zeros(plant.leafs), 0.0, (leaf, e, 1.0), (every(plant.leafs), x, -spines))
    rows.add(np.zeros(plant.spines), 0.0, (spine, e, 1.0), (every(plant.spines), y, -leafs))
    # The same between spines and cores.
    at = np.array([seat[int(lane[a]), int(b)] for a, b in zip(below, core, strict=True)], np.int64)
    rows.add(np.full(len(f), -1.0), 0.0, (every(len(f)), f, 1.0), (every(len(f)), y[below], -1.0))
    rows.add(np.full(len(f), -1.0), 0.0, (every(len(f)), f, 1.0), (every(len(f)), c[at], -1.0))
    rows.add(np.zeros(plant.spines), 0.0, (below, f, 1.0), (every(plant.spines), y, -leafs))
    rows.add(np.zeros(len(seat)), 0.0, (at, f, 1.0), (every(len(seat)), c, -pods))
    rows.add(
        np.zeros(plant.leafs),
        0.0,
        (every(plant.leafs), servers, plant.gpus_per_server),
        (every(plant.leafs), x, -spines),
    )

    most = np.ones(made.count)
    most[servers] = state.idle_servers
    cost = np.zeros(made.count)
    cost[x] = state.ports_of_leaf
    answer = highs.solve(cost, most, rows.constraint(), gap=0.0)
    if answer.status == highs.INFEASIBLE:
        return Nothing()
    if answer.status != highs.SOLVED or answer.x is None:
        raise PhysicsError(f"HiGHS stopped without an answer on {plant.name}: {answer.message}")
    chosen = np.flatnonzero(np.round(answer.x[x]).astype(int)).reshape(pods, leafs)
    return FoundTree(tuple(tuple(row) for row in chosen.tolist()), cheapest=True)
