"""vClos allocation: one server, else the best-fitting leaf, else l leafs × s spines, else the reason to wait.

Jobs over several leafs get whole idle servers, the same number of GPUs on every leaf, and one spine for each GPU of a
leaf even if few of them ever send at a time: the rule that sends GPU i to spine i is static. Under it such a job cannot
meet another one, nor itself in any collective that `contention_free` proves for equal leafs. There is no rounding: a
number of GPUs that no equal shape holds waits for a single leaf, or for ever.
"""

from __future__ import annotations

from functools import lru_cache

from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import first_stages, over_idle_servers, under_one_leaf
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policy import Allocate
from ropewalk.tenancy.vclos.compact import BRANCH_BUDGET, decide_leafs
from ropewalk.tenancy.vclos.explain import Attempt, no_common_spines
from ropewalk.tenancy.vclos.search import NODE_BUDGET, Found, Nothing, Undecided, common_spines, search_leafs
from ropewalk.tenancy.vclos.shapes import Shapes, doubling


def vclos(shapes: Shapes = doubling, *, node_budget: int = NODE_BUDGET, branch_budget: int = BRANCH_BUDGET) -> Allocate:
    """The policy with an order of shapes, and with limits on the search and on the integer program behind it.

    >>> from ropewalk.tenancy.plant import plant
    >>> found = vclos()(Occupancy(plant("leaf-spine:8x8x8", gpus_per_server=4)), "a", 16)
    >>> found.stage, found.leafs, found.spines, len(found.links)
    ('clos', (0, 1), (0, 1, 2, 3, 4, 5, 6, 7), 16)
    """

    def find(state: Occupancy, leafs: int, spines: int) -> Found | Nothing | Undecided:
        found = search_leafs(state, leafs, spines, node_budget=node_budget)
        if isinstance(found, Undecided):
            return decide_leafs(state, leafs, spines, branch_budget=branch_budget)
        return found

    def attempts(state: Occupancy, gpus: int) -> Found | list[Attempt]:
        failed = []
        for leafs, spines in shapes(state.plant, gpus):
            found = find(state, leafs, spines)
            if isinstance(found, Found):
                return found
            failed.append(Attempt(leafs, spines, isinstance(found, Nothing)))
        return failed

    @lru_cache(maxsize=4096)
    def never(plant: Plant, gpus: int) -> bool:
        empty = Occupancy(plant)
        return under_one_leaf(empty, "", gpus) is None and not isinstance(attempts(empty, gpus), Found)

    def allocate(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
        early = first_stages(state, job, gpus)
        if early is not None:
            return early
        found = attempts(state, gpus)
        if isinstance(found, Found):
            return clos_allocation(state, job, gpus, found.leafs)
        return no_common_spines(state, gpus, found, never=never(state.plant, gpus))

    return allocate


def clos_allocation(state: Occupancy, job: str, gpus: int, leafs: tuple[int, ...]) -> Allocation:
    """The allocation of equal numbers of GPUs on leafs that are known to share enough free spines."""
    share = gpus // len(leafs)
    spines = common_spines(state, leafs, share)
    links = tuple((leaf, spine) for leaf in leafs for spine in spines)
    return Allocation(
        job=job,
        gpus=tuple(gpu for leaf in leafs for gpu in over_idle_servers(state, leaf, share)),
        stage="clos",
        leafs=leafs,
        spines=spines,
        links=links,
        spine_of_gpu=spines * len(leafs),
        leaf_of_gpu=tuple(leaf for leaf in leafs for _ in range(share)),
        cables=tuple(state.first_free_cable(leaf, spine) for leaf, spine in links),
    )
