"""Links as a service: N = R·A + B, R leafs with A GPUs each and one leaf with the remaining B.

A way out for numbers of GPUs that have no equal split. What it guarantees is weaker than vClos: the links of a job are
its own, and enough for every permutation *if* routes were rearranged for it. Under a static rule, jobs with B > 0 may
meet themselves: with three or more unequal leafs rounds of an all-to-all or of halving and doubling collide on the way
down, and with R = 1 the A GPUs of the large leaf share B uplinks. Allocations say so in `guarantee`.
With three tiers a job stays in one pod. (Zahavi et al., "Links as a Service", ANCS 2016.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation, AllocationColumns, CableColumns, Reason, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import first_stages, seats_on, under_one_leaf
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policy import Allocate
from ropewalk.tenancy.vclos.explain import nearest

NODE_BUDGET = 5_000
"""Nodes of the search for one A; then the next A is tried."""


@dataclass(frozen=True, eq=False)
class LeafSplit:
    """R leafs with A GPUs each, and one with B; `rest` is -1 where B is 0."""

    full: NDArray[np.int64]
    rest: int
    per_leaf: int
    remainder: int
    shared: NDArray[np.uint64]
    """Spines, as bits, that the full leafs and, in as many as it needs, the last one share."""


def laas(*, node_budget: int = NODE_BUDGET) -> Allocate:
    """The policy: A from as many GPUs as a leaf holds downward, in whole servers; the first that fits is taken.

    >>> from ropewalk.tenancy.plant import plant
    >>> found = laas()(Occupancy(plant("leaf-spine:8x8x8", gpus_per_server=4)), "a", 20)
    >>> found.leafs, found.gpus_on_leaf(), found.guarantee, len(found.links)
    ((0, 1, 2), (8, 8, 4), 'rearrangeable', 20)
    """

    @lru_cache(maxsize=4096)
    def never(plant: Plant, gpus: int) -> bool:
        empty = Occupancy(plant)
        return under_one_leaf(empty, "", gpus) is None and _find(empty, gpus, node_budget) is None

    def allocate(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
        if state.plant.rails > 1:
            raise ClusterError(f"{state.plant.name} has rails, which laas does not support: use --isolate vclos")
        early = first_stages(state, job, gpus)
        if early is not None:
            return early
        found = _find(state, gpus, node_budget)
        if found is not None:
            return _allocation(state, job, found)
        return _waiting(state, gpus, never=never(state.plant, gpus))

    return allocate


def _find(state: Occupancy, gpus: int, budget: int) -> LeafSplit | None:
    """The largest A that fits, tried in multiples of a server from as many GPUs as a leaf has idle."""
    from ropewalk.tenancy.vclos import _split_kernel as kernel

    per_leaf, full, rest, shared = kernel.first_split(
        gpus,
        state.plant.gpus_per_server,
        state.plant.tiers.first_leaf,
        state.idle_servers,
        state.ports_of_leaf,
        state.spine_words,
        state.spines_of_leaf,
        budget,
    )
    return LeafSplit(full, rest, per_leaf, gpus % per_leaf, shared) if per_leaf else None


def _allocation(state: Occupancy, job: str, split: LeafSplit) -> Allocation:
    """Full leafs first, then the last one, whose spines come first in the order of the job's spines."""
    from ropewalk.tenancy.vclos import _clos_kernel as kernel

    first, pod = state.plant.tiers.first_spine, state.plant.tiers.pod_of_leaf[split.full[0]]
    fullest = first[pod] + kernel.fullest(split.shared, state.ports_of_spine[first[pod] : first[pod + 1]])
    both = state.cables_free[split.rest, fullest] > 0 if split.remainder else np.zeros(len(fullest), bool)
    both &= np.cumsum(both) <= split.remainder
    width = split.per_leaf if len(split.full) > 1 else split.remainder
    spines = np.concatenate([fullest[both], fullest[~both]])[:width]
    leafs, shares = np.sort(split.full), np.full(len(split.full), split.per_leaf)
    links = np.full(len(leafs), len(spines))
    if split.remainder:
        leafs, shares = np.append(leafs, split.rest), np.append(shares, split.remainder)
        links = np.append(links, split.remainder)
    leaf = np.repeat(leafs, links)
    spine = spines[_counting(links)]
    return Allocation.over_links(
        job,
        AllocationColumns(
            seats_on(state, leafs, shares), CableColumns(leaf, spine, state.links.first_free(leaf, spine))
        ),
        leafs=leafs.tolist(),
        spines=spines.tolist(),
        spine_of_gpu=spines[_counting(shares) % np.repeat(links, shares)].tolist(),
        leaf_of_gpu=np.repeat(leafs, shares).tolist(),
        guarantee="rearrangeable" if split.remainder else "contention-free",
    )


def _counting(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, … of every size, one after the other."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _waiting(state: Occupancy, gpus: int, *, never: bool) -> Waiting:
    size = state.plant.gpus_per_server
    most = min(gpus - 1, int(state.idle_servers.max()) * size) // size * size
    told = [(gpus // each, each) for each in range(most, 0, -size) if gpus // each > 1] or [(2, size)]
    near = nearest(state, *told[0])
    blocking = near.blocking if near is not None else ()
    pod = int(np.bincount(state.plant.tiers.pod_of_leaf, state.plant.gpus_per_leaf).max())
    if gpus > pod:
        fact = f"laas keeps a job in one pod, and those of {state.plant.name} have {pod} GPUs, not {gpus}"
        return Waiting(Reason.NETWORK_FRAGMENTATION, fact, never=never)
    where, always = "of one pod " * bool(state.plant.cores), ", even when it is empty" * never
    return Waiting(
        Reason.NETWORK_FRAGMENTATION,
        f"no leaf has {-(-gpus // size)} idle servers, and no R·A + B = {gpus} with A a multiple of {size} was found "
        f"whose leafs {where}share A free spines, B of them with the last leaf{always}",
        blocking,
        never=never,
        nearest_leafs=() if near is None else near.leafs,
    )
