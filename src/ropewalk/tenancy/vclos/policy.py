"""vClos allocation: one server, else the best-fitting leaf, else l leafs × s spines, else the reason to wait.

Jobs over several leafs get whole idle servers, the same number of GPUs on every leaf, and one spine for each GPU of a
leaf even if few of them ever send at a time: the rule that sends GPU i to spine i is static. Under it such a job cannot
meet another one, nor itself in any collective that `contention_free` proves for equal leafs. There is no rounding: a
number of GPUs that no equal shape holds waits for a single leaf, or for ever.

With three tiers a job that no pod holds gets the same in p pods, in the same lanes, and as many cores in every lane as
it has leafs in a pod: a tree of its own, in which every GPU has a path of its own to the top.
"""

from __future__ import annotations

from functools import lru_cache

from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import first_stages, under_one_leaf
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policy import Allocate
from ropewalk.tenancy.vclos.attempt import Attempt
from ropewalk.tenancy.vclos.compact import BRANCH_BUDGET, decide_leafs
from ropewalk.tenancy.vclos.compact_tree import decide_subtree
from ropewalk.tenancy.vclos.explain import no_common_spines
from ropewalk.tenancy.vclos.explain_pods import no_common_cores
from ropewalk.tenancy.vclos.search import NODE_BUDGET, Found, Nothing, Undecided, search_leafs
from ropewalk.tenancy.vclos.shapes import Shapes, doubling, over_pods
from ropewalk.tenancy.vclos.subtree import FoundTree, search_subtree
from ropewalk.tenancy.vclos.tree_allocation import tree_allocation

Tree = tuple[tuple[int, ...], ...]
"""Leafs, or on rails units, of every pod."""


def vclos(shapes: Shapes = doubling, *, node_budget: int = NODE_BUDGET, branch_budget: int = BRANCH_BUDGET) -> Allocate:
    """The policy with an order of shapes, and with limits on the search and on the integer program behind it.

    >>> from ropewalk.tenancy.plant import plant
    >>> found = vclos()(Occupancy(plant("leaf-spine:8x8x8", gpus_per_server=4)), "a", 16)
    >>> found.stage, found.leafs, found.spines, len(found.links)
    ('clos', (0, 1), (0, 1, 2, 3, 4, 5, 6, 7), 16)
    >>> found = vclos()(Occupancy(plant("fat-tree:4", gpus_per_server=2)), "a", 8)
    >>> found.leafs, found.spines, found.cores, len(found.links), len(found.core_links)
    ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3), 8, 8)
    """

    def in_a_pod(state: Occupancy, leafs: int, spines: int) -> Found | Nothing | Undecided:
        found = search_leafs(state, leafs, spines, node_budget=node_budget)
        if isinstance(found, Undecided):
            return decide_leafs(state, leafs, spines, branch_budget=branch_budget)
        return found

    def in_pods(state: Occupancy, pods: int, leafs: int, spines: int) -> FoundTree | Nothing | Undecided:
        found = search_subtree(state, pods, leafs, spines, node_budget=node_budget)
        if isinstance(found, Undecided):
            return decide_subtree(state, pods, leafs, spines, branch_budget=branch_budget)
        return found

    @lru_cache(maxsize=4096)
    def tried(plant: Plant, gpus: int) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int, int], ...]]:
        return tuple(shapes(plant, gpus)), tuple(over_pods(plant, gpus, shapes))

    def attempts(state: Occupancy, gpus: int) -> Tree | list[Attempt]:
        failed = []
        inside, over = tried(state.plant, gpus)
        for leafs, spines in inside:
            found = in_a_pod(state, leafs, spines)
            if isinstance(found, Found):
                return (found.leafs,)
            failed.append(Attempt(leafs, spines, isinstance(found, Nothing)))
        for pods, leafs, spines in over:
            tree = in_pods(state, pods, leafs, spines)
            if isinstance(tree, FoundTree):
                return tree.leafs
            failed.append(Attempt(leafs, spines, isinstance(tree, Nothing), pods))
        return failed

    @lru_cache(maxsize=4096)
    def never(plant: Plant, gpus: int) -> bool:
        empty = Occupancy(plant)
        return under_one_leaf(empty, "", gpus) is None and isinstance(attempts(empty, gpus), list)

    def allocate(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
        early = first_stages(state, job, gpus)
        if early is not None:
            return early
        found = attempts(state, gpus)
        if isinstance(found, tuple):
            return tree_allocation(state, job, gpus, found)
        explain = no_common_cores if state.plant.cores else no_common_spines
        return explain(state, gpus, found, never=never(state.plant, gpus))

    return allocate
