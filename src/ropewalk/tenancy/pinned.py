"""Links for GPUs that are chosen already: exact servers, jobs that run, jobs whose links have died.

Ranks stay in the order in which the GPUs are given, which must be leaf by leaf. Where leafs hold equal numbers the
result is a vClos like any other. Where they do not, every leaf gets links to as many spines as the largest has GPUs:
they are the job's own, but rounds of a collective may meet on the way down, and the allocation says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import gcd

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import OWN_LEAF, Allocation, Guarantee, Reason, Stage, Waiting
from ropewalk.tenancy.by_place import way_up
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.clos import exact_network, laid_over, quick_network
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.fibres import free_fibres
from ropewalk.tenancy.optical.inside import circuits_in_a_pod, circuits_on
from ropewalk.tenancy.optical.plant import OpticalPlant
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.optical.pods import circuits_between, free_core_fibres
from ropewalk.tenancy.optical.programs import ProgramUndecided
from ropewalk.tenancy.optical.straight import joined_pair
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.policies import Policy
from ropewalk.tenancy.shards.allocate import shard_of
from ropewalk.tenancy.shards.plant import PanelPlant
from ropewalk.tenancy.vclos.search import common_spines
from ropewalk.tenancy.vclos.tree_allocation import tree_over

MOST_NAMED = 8


def gpus_of_servers(state: Occupancy, servers: Sequence[int], gpus: int) -> list[int] | Waiting:
    """Free GPUs of exactly these servers, as many of each where that is possible; leaf by leaf, else in this order."""
    plant, size = state.plant, state.plant.gpus_per_server
    count = len(servers)
    if gpus > count * size or gpus < count:
        never = f"{gpus} GPUs are not {count} server{'s' * (count != 1)} of 1 to {size}"
        return Waiting(Reason.SERVER_FRAGMENTATION, never, never=True)
    share = gpus // count if gpus % count == 0 else size
    chosen: list[int] = []
    for server in in_rank_order(plant, servers):
        wanted = min(share, gpus - len(chosen))
        free = [place for place in range(size) if int(state.free_gpus[server]) >> place & 1]
        if len(free) < wanted or state.free_in_server[server] < wanted:
            name, left = plant.server_names[server], int(state.free_in_server[server])
            fact = f"server {name} has {left} free GPUs, but {wanted} are requested"
            return Waiting(Reason.SERVER_FRAGMENTATION, fact)
        chosen += [server * size + place for place in free[:wanted]]
    if len(chosen) < gpus or len({gpu // size for gpu in chosen}) < count:
        return Waiting(Reason.SERVER_FRAGMENTATION, f"{gpus} GPUs leave one of {count} servers without any", never=True)
    return chosen


def in_rank_order(plant: Plant, servers: Sequence[int]) -> list[int]:
    """Servers pod by pod and leaf by leaf, in the order in which each is named first."""
    leafs = plant.server_leaf[list(servers)].tolist()
    pods = plant.tiers.pod_of_leaf[leafs].tolist()
    first_leaf = {leaf: place for place, leaf in reversed(list(enumerate(leafs)))}
    first_pod = {pod: place for place, pod in reversed(list(enumerate(pods)))}
    places = [(first_pod[pod], first_leaf[leaf]) for pod, leaf in zip(pods, leafs, strict=True)]
    return [server for _, server in sorted(zip(places, servers, strict=True), key=lambda pair: pair[0])]


def pinned(
    policy: Policy, state: Occupancy, job: str, gpus: Sequence[int], before: Allocation | None = None
) -> Allocation | Waiting:
    """What a policy gives a job on exactly these GPUs, or which links are missing.

    Spines that it had `before` stay in their places where they are free, so that few routes change.

    >>> from ropewalk.tenancy.plant import plant
    >>> from ropewalk.tenancy.policies import POLICIES
    >>> state = Occupancy(plant("leaf-spine:4x8x8", gpus_per_server=4))
    >>> pinned(POLICIES["vclos"], state, "a", [0, 1, 2, 3, 16, 17, 18, 19]).spines
    (0, 1, 2, 3)
    """
    plant = state.plant
    leaf_of_gpu = tuple(plant.leaf_of_gpu[list(gpus)].tolist())
    leafs = tuple(dict.fromkeys(leaf_of_gpu))
    units = [leaf // plant.rails for leaf in leaf_of_gpu]
    turns = sum(a != b for a, b in pairwise(units))
    if turns != len(set(units)) - 1:
        raise ClusterError(f"the GPUs of job {job} return to a leaf: list them leaf by leaf")
    if isinstance(plant, PanelPlant) and len({gpu // plant.gpus_per_server for gpu in gpus}) > 1:
        return shard_of(state, job, gpus)
    if not turns:
        return _under_one_leaf(plant, job, tuple(gpus), leaf_of_gpu)
    if policy.shares:
        return over_shared_links(state, job, gpus)
    if isinstance(plant, OpticalPlant):
        return _over_circuits(state, job, tuple(gpus), leaf_of_gpu)
    if plant.rails > 1 or len(set(plant.tiers.pod_of_leaf[list(leafs)].tolist())) > 1:
        return _over_a_tree(state, job, tuple(gpus), units)
    if isinstance(plant, PodOpticalPlant):
        return _inside_a_pod(state, job, tuple(gpus), leaf_of_gpu)
    return _over_cables(state, job, tuple(gpus), leaf_of_gpu, leafs, before)


def over_shared_links(state: Occupancy, job: str, gpus: Sequence[int]) -> Allocation:
    """The GPUs with no link of their own; each sends up the static spine of its place, among those that are alive."""
    plant = state.plant
    leaf_of_gpu = tuple(plant.leaf_of_gpu[list(gpus)].tolist())
    leafs = tuple(dict.fromkeys(leaf_of_gpu))
    up = state.drained.links_up(plant)
    everywhere = up[list(leafs)].all(axis=0)  # a spine that one of its leafs has lost leads nowhere from the others
    return Allocation(
        job=job,
        gpus=tuple(gpus),
        stage="shared",
        leafs=leafs,
        spines=(),
        links=(),
        spine_of_gpu=_static_spines(plant, list(gpus), up & everywhere if everywhere.any() else up),
        leaf_of_gpu=leaf_of_gpu,
        guarantee="none",
        core_of_gpu=tuple(way_up(plant).core[list(gpus)].tolist()) if plant.cores else (),
    )


def _static_spines(plant: Plant, gpus: list[int], up: NDArray[np.bool_]) -> tuple[int, ...]:
    """The spine of each GPU by its place on its leaf, round the cables that are alive."""
    cables = plant.cables * up
    spine_of_cable = {leaf: np.repeat(np.arange(plant.spines), cables[leaf]) for leaf in {*plant.leaf_of_gpu[gpus]}}
    spines = []
    for gpu in gpus:
        leaf = plant.leaf_of_gpu[gpu]
        place = int(plant.place_on_leaf[gpu])
        ways = spine_of_cable[leaf]
        spines.append(int(ways[place % len(ways)]) if len(ways) else OWN_LEAF)
    return tuple(spines)


def on_what_is_left(state: Occupancy, held: Allocation) -> Allocation | None:
    """A job some of whose links have died, on those of its own that all of its leafs still share; None without any.

    Its GPUs take turns on them, so that it meets itself and still nobody else. That is so in one pod without rails;
    elsewhere every leaf has spines of its own.
    """
    if held.stage != "clos" or held.core_links or state.plant.rails > 1:
        return None
    up = state.drained.links_up(state.plant)
    mine = set(held.links)
    left = [spine for spine in held.spines if all((leaf, spine) in mine and up[leaf, spine] for leaf in held.leafs)]
    if not left:
        return None
    cable_of = dict(zip(held.links, held.cables or (0,) * len(held.links), strict=True))
    links = tuple((leaf, spine) for leaf in held.leafs for spine in left)
    turn: Counter[int] = Counter()
    spines = []
    for leaf in held.leaf_of_gpu:
        spines.append(left[turn[leaf] % len(left)])
        turn[leaf] += 1
    return Allocation(
        job=held.job,
        gpus=held.gpus,
        stage="clos",
        leafs=held.leafs,
        spines=tuple(left),
        links=links,
        spine_of_gpu=tuple(spines),
        leaf_of_gpu=held.leaf_of_gpu,
        guarantee="none",
        cables=tuple(cable_of[link] for link in links),
    )


def _under_one_leaf(plant: Plant, job: str, gpus: tuple[int, ...], leaf_of_gpu: tuple[int, ...]) -> Allocation:
    one = len({gpu // plant.gpus_per_server for gpu in gpus}) == 1
    stage: Stage = "server" if one else "leaf"
    own = (OWN_LEAF,) * len(gpus)
    return Allocation(job, gpus, stage, tuple(dict.fromkeys(leaf_of_gpu)), (), (), own, leaf_of_gpu)


def _over_a_tree(state: Occupancy, job: str, gpus: tuple[int, ...], units: list[int]) -> Allocation | Waiting:
    """Over several pods, or units of rails: equal numbers of leafs in every pod, with equal numbers of GPUs."""
    plant = state.plant
    shares = Counter(units)
    pods = plant.tiers.pod_of_leaf[np.array(list(shares)) * plant.rails]
    kind = "leaf" if plant.rails == 1 else "unit"
    whole = plant.rails == 1 or _in_whole_servers(gpus, plant.gpus_per_server)
    if len(set(shares.values())) > 1 or len(set(Counter(pods.tolist()).values())) > 1 or not whole:
        fact = f"over pods and rails every {kind} gives as many GPUs, in whole servers, and every pod as many {kind}s"
        return Waiting(Reason.NETWORK_FRAGMENTATION, f"{fact}, but these servers do not", never=True)
    if sum(a != b for a, b in pairwise(pods.tolist())) != len(set(pods.tolist())) - 1:
        raise ClusterError(f"the GPUs of job {job} return to a pod: list them pod by pod")
    rows = np.array(list(shares), np.int64).reshape(len(set(pods.tolist())), -1)
    if isinstance(plant, CoreOpticalPlant | PodOpticalPlant):
        return _over_pods(state, job, gpus, rows)
    found = tree_over(state, job, rows, np.array(gpus, np.int64))
    if found is not None:
        return found
    names = ", ".join(plant.unit_names[unit] for unit in list(shares)[:MOST_NAMED])
    return Waiting(
        Reason.NETWORK_FRAGMENTATION,
        f"{kind}s {names} have too few spines and cores free in common for {len(gpus)} GPUs",
        never=tree_over(Occupancy(plant), job, rows, np.array(gpus, np.int64)) is None,
        nearest_leafs=plant.leafs_of(shares),
    )


def _over_pods(state: Occupancy, job: str, gpus: tuple[int, ...], rows: Ints) -> Allocation | Waiting:
    """Over several pods, [pod, leaf], with optical switches in them or between them."""

    def found_on(state: Occupancy) -> Allocation | ProgramUndecided | None:
        if isinstance(state.plant, PodOpticalPlant):
            return circuits_on(state, job, gpus, rows)
        return circuits_between(state, free_core_fibres(state), job, rows, np.array(gpus, np.int64))

    found = found_on(state)
    if isinstance(found, Allocation):
        return found
    fact = f"no circuits connect the spines of {len(rows)} pods for {len(gpus)} GPUs on these servers"
    return Waiting(
        Reason.NETWORK_FRAGMENTATION,
        fact + (", as far as was searched" if found else ""),
        never=found_on(Occupancy(state.plant)) is None,
        nearest_leafs=tuple(rows.ravel().tolist()),
    )


def _in_whole_servers(gpus: tuple[int, ...], size: int) -> bool:
    """Does every server give all its GPUs, one after the other, so that ranks go through the rails in turn?"""
    firsts = gpus[::size]
    return len(gpus) == len(firsts) * size and gpus == tuple(
        first // size * size + place for first in firsts for place in range(size)
    )


def _inside_a_pod(
    state: Occupancy, job: str, gpus: tuple[int, ...], leaf_of_gpu: tuple[int, ...]
) -> Allocation | Waiting:
    """In one pod whose leafs and spines meet in optical switches."""
    found = circuits_in_a_pod(state, job, gpus, leaf_of_gpu)
    if isinstance(found, Allocation):
        return found
    fact = f"no circuits inside the pod connect {len(gpus)} GPUs on these servers"
    return Waiting(Reason.NETWORK_FRAGMENTATION, fact + (", as far as was searched" if found else ""))


def _over_cables(
    state: Occupancy,
    job: str,
    gpus: tuple[int, ...],
    leaf_of_gpu: tuple[int, ...],
    leafs: tuple[int, ...],
    before: Allocation | None,
) -> Allocation | Waiting:
    shares = Counter(leaf_of_gpu)
    width = max(shares.values())
    spines = common_spines(state, leafs, width)
    if before is not None and len(spines) == width:
        spines = _as_before(state, leafs, width, before.spines)
    if len(spines) < width:
        return _missing_spines(state, leafs, len(spines), width)
    links = tuple((leaf, spine) for leaf in leafs for spine in spines)
    guarantee: Guarantee = "contention-free" if min(shares.values()) == width else "rearrangeable"
    return Allocation(
        job=job,
        gpus=gpus,
        stage="clos",
        leafs=leafs,
        spines=spines,
        links=links,
        spine_of_gpu=tuple(spine for leaf in leafs for spine in spines[: shares[leaf]]),
        leaf_of_gpu=leaf_of_gpu,
        guarantee=guarantee,
        cables=tuple(state.first_free_cable(leaf, spine) for leaf, spine in links),
    )


def _as_before(state: Occupancy, leafs: tuple[int, ...], width: int, before: tuple[int, ...]) -> tuple[int, ...]:
    """Spines of before in their places where all leafs still reach them; others for the rest."""
    shared = set(np.flatnonzero((state.cables_free[list(leafs)] > 0).all(axis=0)).tolist())
    kept = [spine if spine in shared else None for spine in before[:width]]
    kept += [None] * (width - len(kept))
    others = iter(spine for spine in common_spines(state, leafs, len(shared)) if spine not in set(kept))
    return tuple(next(others) if spine is None else spine for spine in kept)


def _missing_spines(state: Occupancy, leafs: tuple[int, ...], shared: int, width: int) -> Waiting:
    plant, rows = state.plant, list(leafs)
    wired = (plant.cables[rows] > 0).all(axis=0)
    blocking = np.flatnonzero(wired & ~(state.cables_free[rows] > 0).all(axis=0))
    names = ", ".join(plant.leaf_names[leaf] for leaf in leafs[:MOST_NAMED])
    more = ", …" if len(leafs) > MOST_NAMED else ""
    return Waiting(
        Reason.NETWORK_FRAGMENTATION,
        f"leafs {names}{more} share {shared} free spines, and {width} are needed",
        tuple(blocking.tolist()),
        never=int(wired.sum()) < width,
        nearest_leafs=leafs,
    )


def _over_circuits(
    state: Occupancy, job: str, gpus: tuple[int, ...], leaf_of_gpu: tuple[int, ...]
) -> Allocation | Waiting:
    """Two leafs joined straight where they can be, else virtual leafs as wide as divides every leaf's GPUs."""
    fibres = free_fibres(state)
    straight = joined_pair(state, fibres, job, gpus)
    if straight is not None:
        return straight
    shares = Counter(leaf_of_gpu)
    width = gcd(*shares.values())
    leafs = np.zeros(state.plant.leafs, np.int64)
    for leaf, share in shares.items():
        leafs[leaf] = share // width
    network = quick_network(fibres, leafs, width)
    decided = exact_network(fibres, leafs, width) if network is None else network
    if decided is None or isinstance(decided, ProgramUndecided):
        fact = f"no circuits connect {int(leafs.sum())} virtual leafs of {width} GPUs on these servers"
        return Waiting(Reason.NETWORK_FRAGMENTATION, fact + (", as far as was searched" if decided else ""))
    rows = [leaf for leaf in shares for _ in range(int(leafs[leaf]))]
    return laid_over(job, gpus, rows, decided)
