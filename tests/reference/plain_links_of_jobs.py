"""Allocation over several leafs in plain Python: what the kernels of vClos and LaaS must answer, word for word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from plain_seats_of_jobs import first_stages, over_idle_servers, under_one_leaf

from ropewalk.tenancy.allocation import Allocation, Reason, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.vclos import _biclique_kernel as kernel
from ropewalk.tenancy.vclos.attempt import Attempt
from ropewalk.tenancy.vclos.compact import decide_leafs
from ropewalk.tenancy.vclos.explain import MOST_NAMED, Nearest
from ropewalk.tenancy.vclos.laas import NODE_BUDGET as SPLIT_BUDGET
from ropewalk.tenancy.vclos.search import NODE_BUDGET, Found, Nothing, Undecided
from ropewalk.tenancy.vclos.shapes import doubling


def candidate_leafs(state: Occupancy, gpus_per_leaf: int) -> NDArray[np.int64]:
    """Leafs with enough idle servers and enough free cables to different spines, those with fewest cables first."""
    servers = gpus_per_leaf // state.plant.gpus_per_server
    reach = np.bitwise_count(state.spine_words).sum(axis=1, dtype=np.int64)
    leafs = np.flatnonzero((state.idle_servers >= servers) & (reach >= gpus_per_leaf))
    return leafs[np.argsort(state.ports_of_leaf[leafs], kind="stable")]


def search_leafs(
    state: Occupancy, leafs: int, spines: int, *, node_budget: int = NODE_BUDGET
) -> Found | Nothing | Undecided:
    """The best fit: of all l leafs with s GPUs in idle servers and s common spines, those with fewest free cables.

    Leafs with few free cables share few spines. Where the budget ends before anything was found among them, a second
    search begins with the freest leafs instead and asks only whether there is anything at all.
    """
    rows = candidate_leafs(state, spines)
    if len(rows) < leafs:
        return Nothing()
    words, ports = state.spine_words[rows], state.ports_of_leaf[rows]
    status, nodes, chosen = kernel.cheapest_leafs(words, ports, leafs, 1, spines, node_budget, kernel.ANYTHING)
    if status == kernel.UNKNOWN:
        rows = rows[::-1]
        status, more, chosen = kernel.cheapest_leafs(
            words[::-1].copy(), np.zeros_like(ports), leafs, 1, spines, node_budget, kernel.ANYTHING
        )
        status = kernel.FOUND if status == kernel.BEST else status
        nodes += more
    if status == kernel.NONE:
        return Nothing(nodes)
    if status == kernel.UNKNOWN:
        return Undecided(nodes)
    return Found(tuple(sorted(rows[chosen].tolist())), status == kernel.BEST, nodes)


def common_spines(state: Occupancy, leafs: tuple[int, ...], spines: int) -> tuple[int, ...]:
    """Of the spines that all the leafs reach, those with the fewest free cables; in the order of their numbers."""
    shared = np.flatnonzero((state.cables_free[list(leafs)] > 0).all(axis=0))
    fullest = shared[np.argsort(state.ports_of_spine[shared], kind="stable")][:spines]
    return tuple(sorted(fullest.tolist()))


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


def attempts(state: Occupancy, gpus: int) -> Found | list[Attempt]:
    failed = []
    for leafs, spines in doubling(state.plant, gpus):
        found = search_leafs(state, leafs, spines)
        if isinstance(found, Undecided):
            found = decide_leafs(state, leafs, spines)
        if isinstance(found, Found):
            return found
        failed.append(Attempt(leafs, spines, isinstance(found, Nothing)))
    return failed


def vclos(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
    early = first_stages(state, job, gpus)
    if early is not None:
        return early
    found = attempts(state, gpus)
    if isinstance(found, Found):
        return clos_allocation(state, job, gpus, found.leafs)
    empty = Occupancy(state.plant)
    never = under_one_leaf(empty, "", gpus) is None and not isinstance(attempts(empty, gpus), Found)
    return no_common_spines(state, gpus, found, never=never)


def no_common_spines(state: Occupancy, gpus: int, attempts: list[Attempt], *, never: bool) -> Waiting:
    """Network fragmentation, told for the shape that came nearest."""
    plant = state.plant
    if never:
        return Waiting(Reason.NETWORK_FRAGMENTATION, _never(plant, gpus), never=True)
    servers = -(-gpus // plant.gpus_per_server)
    alone = f"no leaf has {servers} idle servers"
    if not attempts:
        return Waiting(
            Reason.NETWORK_FRAGMENTATION,
            f"{alone}, and {gpus} GPUs cannot be split over leafs into equal whole servers of {plant.gpus_per_server}",
        )
    blocked = [(attempt, nearest(state, attempt.leafs, attempt.spines)) for attempt in attempts]
    told = [(attempt, near) for attempt, near in blocked if near is not None]
    tried = ", ".join(f"{attempt.leafs}×{attempt.spines}" for attempt in attempts[:MOST_NAMED])
    limits = "" if all(attempt.proved for attempt in attempts) else "; the search reached its limits undecided"
    if not told:
        return Waiting(
            Reason.NETWORK_FRAGMENTATION,
            f"{alone}, and no shape ({tried}) has enough leafs with idle servers and free links{limits}",
        )
    attempt, near = min(told, key=lambda pair: pair[0].spines - pair[1].shared)
    names = ", ".join(plant.spine_names[spine] for spine in near.blocking[:MOST_NAMED])
    more = len(near.blocking) - MOST_NAMED
    return Waiting(
        Reason.NETWORK_FRAGMENTATION,
        f"{alone}, and no shape ({tried}) has enough spines in common; closest are {attempt.leafs} leafs "
        f"({', '.join(plant.leaf_names[leaf] for leaf in near.leafs[:MOST_NAMED])}"
        f"{', …' if len(near.leafs) > MOST_NAMED else ''}) that share {near.shared} of {attempt.spines} spines: "
        f"links to {names}{f' and {more} more' if more > 0 else ''} are taken or drained{limits}",
        near.blocking,
        nearest_leafs=near.leafs,
    )


def nearest(state: Occupancy, leafs: int, spines: int) -> Nearest | None:
    """Of the leafs that have the servers, a greedy choice with many spines in common; None if there are too few leafs.

    Blocking are the spines to which all of them have a cable, but not all of them a free one.
    """
    rows = np.flatnonzero(state.idle_servers * state.plant.gpus_per_server >= spines)
    if len(rows) < leafs:
        return None
    reach = state.cables_free[rows] > 0
    first = int(np.argmax(reach.sum(axis=1)))
    chosen, shared = [first], reach[first]
    while len(chosen) < leafs:
        overlap = (reach & shared).sum(axis=1)
        overlap[chosen] = -1
        chosen.append(int(np.argmax(overlap)))
        shared = shared & reach[chosen[-1]]
    picked = np.sort(rows[chosen])
    wired = (state.plant.cables[picked] > 0).all(axis=0)
    return Nearest(tuple(picked.tolist()), int(shared.sum()), tuple(np.flatnonzero(wired & ~shared).tolist()))


def _never(plant: Plant, gpus: int) -> str:
    size, most = plant.gpus_per_server, int(plant.gpus_per_leaf.max())
    up = [sum(row) for row in plant.cables.tolist()]
    if sum(up) < gpus or max(up) < size:
        return (
            f"{gpus} GPUs do not fit one leaf of {most}, and over several every GPU needs an uplink of its own: leafs "
            f"of {plant.name} have {max(up)}, {sum(up)} in all, and servers {size} GPUs; with shared "
            "links (ecmp) it starts"
        )
    whole = all(row >= most for row, most in zip(up, plant.gpus_per_leaf.tolist(), strict=True))
    return (
        f"{gpus} GPUs do not fit one leaf of {most} and have no equal split into whole servers of {size} over "
        f"the leafs of {plant.name}, even when it is empty{'; laas takes it' * whole}"
    )


@dataclass(frozen=True)
class Split:
    """R leafs with A GPUs each, and one with B; `rest` is -1 where B is 0."""

    full: tuple[int, ...]
    rest: int
    per_leaf: int
    remainder: int
    shared: int
    """Spines, as bits, that the full leafs and, in as many as it needs, the last one share."""


def split(state: Occupancy, gpus: int) -> Split | None:
    found = (_find(state, gpus, per_leaf, SPLIT_BUDGET) for per_leaf in _sizes(state, gpus))
    return next((one for one in found if one is not None), None)


def laas(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
    early = first_stages(state, job, gpus)
    if early is not None:
        return early
    found = split(state, gpus)
    if found is not None:
        return _allocation(state, job, found)
    empty = Occupancy(state.plant)
    never = under_one_leaf(empty, "", gpus) is None and split(empty, gpus) is None
    return _waiting(state, gpus, never=never)


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
        f"whose leafs share A free spines, B of them with the last leaf{', even when it is empty' * never}",
        blocking,
        never=never,
        nearest_leafs=near.leafs if near is not None else (),
    )
