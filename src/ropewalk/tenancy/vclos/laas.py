"""Links as a service: N = R·A + B, R leafs with A GPUs each and one leaf with the remaining B.

A way out for numbers of GPUs that have no equal split. What it guarantees is weaker than vClos: the links of a job are
its own, and enough for every permutation *if* routes were rearranged for it. Under a static rule, jobs with B > 0 may
meet themselves: with three or more unequal leafs rounds of an all-to-all or of halving and doubling collide on the way
down, and with R = 1 the A GPUs of the large leaf share B uplinks. Allocations say so in `guarantee`.
(Zahavi et al., "Links as a Service", ANCS 2016.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ropewalk.tenancy.allocation import Allocation, Reason, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import first_stages, over_idle_servers, under_one_leaf
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policy import Allocate
from ropewalk.tenancy.vclos.explain import nearest

NODE_BUDGET = 5_000
"""Nodes of the search for one A; then the next A is tried."""


@dataclass(frozen=True)
class Split:
    """R leafs with A GPUs each, and one with B; `rest` is -1 where B is 0."""

    full: tuple[int, ...]
    rest: int
    per_leaf: int
    remainder: int
    shared: int
    """Spines, as bits, that the full leafs and, in as many as it needs, the last one share."""


def laas(*, node_budget: int = NODE_BUDGET) -> Allocate:
    """The policy: A from as many GPUs as a leaf holds downward, in whole servers; the first that fits is taken.

    >>> from ropewalk.tenancy.plant import plant
    >>> found = laas()(Occupancy(plant("leaf-spine:8x8x8", gpus_per_server=4)), "a", 20)
    >>> found.leafs, found.gpus_on_leaf(), found.guarantee, len(found.links)
    ((0, 1, 2), (8, 8, 4), 'rearrangeable', 20)
    """

    def split(state: Occupancy, gpus: int) -> Split | None:
        found = (_find(state, gpus, per_leaf, node_budget) for per_leaf in _sizes(state, gpus))
        return next((one for one in found if one is not None), None)

    @lru_cache(maxsize=4096)
    def never(plant: Plant, gpus: int) -> bool:
        empty = Occupancy(plant)
        return under_one_leaf(empty, "", gpus) is None and split(empty, gpus) is None

    def allocate(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
        early = first_stages(state, job, gpus)
        if early is not None:
            return early
        found = split(state, gpus)
        if found is not None:
            return _allocation(state, job, found)
        return _waiting(state, gpus, never=never(state.plant, gpus))

    return allocate


def _sizes(state: Occupancy, gpus: int) -> Iterator[int]:
    size = state.plant.gpus_per_server
    most = min(gpus - 1, int(state.idle_servers.max()) * size)
    yield from range(most // size * size, 0, -size)


def _masks(state: Occupancy) -> list[int]:
    """Free spines of every leaf as the bits of one number."""
    return [int.from_bytes(row.tobytes(), "little") for row in state.spine_words.astype("<u8")]


def _find(state: Occupancy, gpus: int, per_leaf: int, budget: int) -> Split | None:
    """Depth first over leafs with few free cables first; a full house must also leave a leaf for the remainder."""
    full, rest = divmod(gpus, per_leaf)
    size = state.plant.gpus_per_server
    masks = _masks(state)
    common = per_leaf if full > 1 else rest  # one full leaf alone needs links only for what it sends to the last
    idle = state.idle_servers * size
    order = np.argsort(state.ports_of_leaf, kind="stable").tolist()
    rows = [leaf for leaf in order if idle[leaf] >= per_leaf and masks[leaf].bit_count() >= common]
    last = [leaf for leaf in order if idle[leaf] >= rest and masks[leaf].bit_count() >= rest] if rest else []
    nodes = 0

    def extend(start: int, chosen: tuple[int, ...], shared: int) -> Split | None:
        nonlocal nodes
        if len(chosen) == full:
            if not rest:
                return Split(chosen, -1, per_leaf, 0, shared)
            return next(
                (
                    Split(chosen, leaf, per_leaf, rest, shared)
                    for leaf in last
                    if leaf not in chosen and (shared & masks[leaf]).bit_count() >= rest
                ),
                None,
            )
        for place in range(start, len(rows) - (full - len(chosen)) + 1):
            narrowed = shared & masks[rows[place]]
            if narrowed.bit_count() < common:
                continue
            nodes += 1
            if nodes > budget:
                return None
            found = extend(place + 1, (*chosen, rows[place]), narrowed)
            if found is not None:
                return found
        return None

    return extend(0, (), (1 << state.plant.spines) - 1)


def _allocation(state: Occupancy, job: str, split: Split) -> Allocation:
    """Full leafs first, then the last one, whose spines come first in the order of the job's spines."""
    shared = [spine for spine in range(state.plant.spines) if split.shared >> spine & 1]
    fullest = sorted(shared, key=lambda spine: (int(state.ports_of_spine[spine]), spine))
    towards_rest = [s for s in fullest if split.rest >= 0 and state.cables_free[split.rest, s]][: split.remainder]
    width = split.per_leaf if len(split.full) > 1 else split.remainder
    spines = (*towards_rest, *[s for s in fullest if s not in towards_rest][: width - len(towards_rest)])
    full = tuple(sorted(split.full))
    shares = [(leaf, split.per_leaf, spines) for leaf in full]
    if split.rest >= 0:
        shares.append((split.rest, split.remainder, spines[: split.remainder]))
    links = tuple((leaf, spine) for leaf, _, own in shares for spine in own)
    return Allocation(
        job=job,
        gpus=tuple(gpu for leaf, share, _ in shares for gpu in over_idle_servers(state, leaf, share)),
        stage="clos",
        leafs=tuple(leaf for leaf, _, _ in shares),
        spines=spines,
        links=links,
        spine_of_gpu=tuple(own[place % len(own)] for _, share, own in shares for place in range(share)),
        leaf_of_gpu=tuple(leaf for leaf, share, _ in shares for _ in range(share)),
        guarantee="rearrangeable" if split.remainder else "contention-free",
        cables=tuple(state.first_free_cable(leaf, spine) for leaf, spine in links),
    )


def _waiting(state: Occupancy, gpus: int, *, never: bool) -> Waiting:
    size = state.plant.gpus_per_server
    sizes = list(_sizes(state, gpus))
    told = [(gpus // each, each) for each in sizes if gpus // each > 1] or [(2, size)]
    near = nearest(state, *told[0])
    blocking = near.blocking if near is not None else ()
    return Waiting(
        Reason.NETWORK_FRAGMENTATION,
        f"no leaf has {-(-gpus // size)} idle servers, and no R·A + B = {gpus} with A a multiple of {size} was found "
        f"whose leafs share A free spines, B of them with the last leaf",
        blocking,
        never=never,
    )
