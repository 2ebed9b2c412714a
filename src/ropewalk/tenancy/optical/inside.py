"""OCS-vClos inside the pods of three tiers: circuits between leafs and spines, cables between spines and cores.

Stages: one leaf; one pod over circuits that stand for its cables; one pod as with two tiers; p pods with l virtual
leafs and s lanes in each, over such home circuits or any others. A lane is the spine at one place of every pod, which
reaches the same cores; every lane gets l cores, and its cables to them are reserved. Running jobs are never touched: a
new one only gets fibres and cables that are free. Two leafs always meet in a spine: none are joined straight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.tenancy.allocation import Allocation, Reason, Stage, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import first_stages, servers_needed, under_one_leaf
from ropewalk.tenancy.optical.allocate import with_circuits
from ropewalk.tenancy.optical.clos import spine_room
from ropewalk.tenancy.optical.cover import cheapest_cover
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.pod_fibres import free_pod_fibres, home_switches, inside_pods, of_pod, with_home_cables
from ropewalk.tenancy.optical.pod_lanes import LeafPart, PodLanes, exact_pod_lanes, quick_pod_lanes
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.optical.programs import ProgramUndecided
from ropewalk.tenancy.vclos.compact import BRANCH_BUDGET, decide_leafs
from ropewalk.tenancy.vclos.search import NODE_BUDGET, Found, Undecided, search_leafs
from ropewalk.tenancy.vclos.shapes import doubling, over_pods
from ropewalk.tenancy.vclos.subtree import FoundTree, search_subtree
from ropewalk.tenancy.vclos.tree_allocation import tree_allocation

OVER_PODS: Stage = "ocs-pods"


def ocs_vclos_pods(state: Occupancy, job: str, gpus: int) -> Allocation | Waiting:
    """Try the stages in their order; the first that holds the job is taken.

    >>> from ropewalk.tenancy.plant import plant
    >>> state = Occupancy(PodOpticalPlant.of_plant(plant("fat-tree:4", gpus_per_server=2)))
    >>> got = ocs_vclos_pods(state, "a", 8)
    >>> got.stage, got.leafs, got.spines, len(got.links), len(got.core_links)
    ('ocs-pods', (0, 1, 2, 3), (0, 1, 2, 3), 8, 8)
    """
    plant = inside_pods(state)
    early = first_stages(state, job, gpus)
    if early is not None:
        return early
    found = _with_circuits(state, job, gpus)
    if isinstance(found, Allocation):
        return found
    return _explained(plant, gpus, found, never=not _fits_when_empty(plant, gpus))


def _with_circuits(state: Occupancy, job: str, gpus: int) -> Allocation | ProgramUndecided | None:
    plant, fibres = inside_pods(state), free_pod_fibres(state)
    cabled, undecided = with_home_cables(state, fibres), None
    for leafs, spines in doubling(plant, gpus):
        found = search_leafs(cabled, leafs, spines, node_budget=NODE_BUDGET)
        if isinstance(found, Undecided):
            found = decide_leafs(cabled, leafs, spines, branch_budget=BRANCH_BUDGET)
        if isinstance(found, Found):
            return _over_home(plant, tree_allocation(cabled, job, gpus, (found.leafs,)))
    for pod in _pods_with(state, servers_needed(state, gpus)):
        placed = _in_a_pod(state, fibres, pod, job, gpus)
        if isinstance(placed, Allocation):
            return placed
        undecided = undecided or placed
    for pods, leafs, lanes in over_pods(plant, gpus, doubling):
        tree = search_subtree(cabled, pods, leafs, lanes, node_budget=NODE_BUDGET)
        if isinstance(tree, FoundTree):
            return _over_home(plant, tree_allocation(cabled, job, gpus, tree.leafs))
        laid = _over_pods(state, fibres, job, pods, leafs, lanes)
        if isinstance(laid, Allocation):
            return laid
        undecided = undecided or laid
    return undecided


def _over_home(plant: PodOpticalPlant, held: Allocation) -> Allocation:
    """What vClos found on cables, over the circuits that stand for them; links above spines in the order of ranks."""
    home = home_switches(plant)
    switch = [int(home[leaf, spine, cable]) for (leaf, spine), cable in zip(held.links, held.cables, strict=True)]
    cable_of = dict(zip(held.core_links, held.core_cables, strict=True))
    above = tuple(zip(held.spine_of_gpu, held.core_of_gpu, strict=True)) if held.core_of_gpu else ()
    return replace(
        held,
        stage=OVER_PODS if above else "ocs",
        cables=tuple(switch),
        core_links=above,
        core_cables=tuple(cable_of[link] for link in above),
    )


def _pods_with(state: Occupancy, servers: int) -> list[int]:
    """Pods with so many idle servers, the fullest first."""
    idle = np.add.reduceat(state.idle_servers, state.plant.tiers.first_leaf[:-1])
    order = np.argsort(idle, kind="stable")
    return [int(pod) for pod in order if idle[pod] >= servers]


def _in_a_pod(
    state: Occupancy, fibres: FreeFibres, pod: int, job: str, gpus: int
) -> Allocation | ProgramUndecided | None:
    """As OCS-vClos with two tiers, in the numbers of the pod, and back."""
    plant = inside_pods(state)
    leaf, spine = int(plant.tiers.first_leaf[pod]), int(plant.tiers.first_spine[pod])
    first, last = plant.first_server[[leaf, int(plant.tiers.first_leaf[pod + 1])]].tolist()
    idle = np.where(state.free_in_server[first:last] > 0, state.free_gpus[first:last], 0)
    found = with_circuits(
        Occupancy.of_free(plant.pods[pod], idle), of_pod(plant, fibres, pod), job, gpus, False, straight=False
    )
    if not isinstance(found, Allocation):
        return found
    return replace(
        found,
        gpus=tuple(gpu + first * plant.gpus_per_server for gpu in found.gpus),
        leafs=tuple(one + leaf for one in found.leafs),
        spines=tuple(one + spine for one in found.spines),
        links=tuple((below + leaf, above + spine) for below, above in found.links),
        spine_of_gpu=tuple(one + spine for one in found.spine_of_gpu),
        leaf_of_gpu=tuple(one + leaf for one in found.leaf_of_gpu),
    )


def _over_pods(
    state: Occupancy, fibres: FreeFibres, job: str, pods: int, leafs: int, lanes: int
) -> Allocation | ProgramUndecided | None:
    """One shape: pods that fit best, then those with most free lanes; circuits by chains, then by the program."""
    tried = list(_choices(state, fibres, pods, leafs, lanes))
    for chosen, parts, candidates in tried:
        laid = quick_pod_lanes(parts, candidates, lanes)
        if laid is not None:
            return _allocation(state, job, chosen, parts, laid, leafs)
    undecided = None
    for chosen, parts, candidates in tried:
        decided = exact_pod_lanes(parts, candidates, lanes)
        if isinstance(decided, PodLanes):
            return _allocation(state, job, chosen, parts, decided, leafs)
        undecided = undecided or decided
    return undecided


def _choices(
    state: Occupancy, fibres: FreeFibres, pods: int, leafs: int, lanes: int
) -> Iterator[tuple[list[int], list[LeafPart], Ints]]:
    """(pods, their leafs, lanes that all of them could use): enough of each."""
    plant, tiers = inside_pods(state), state.plant.tiers
    fitting: list[tuple[int, int, LeafPart, Ints]] = []
    for pod in range(tiers.pods):
        first, last = tiers.first_leaf[pod : pod + 2].tolist()
        own, idle = of_pod(plant, fibres, pod), state.idle_servers[first:last]
        servers = lanes // plant.gpus_per_server
        cover = cheapest_cover(np.minimum(idle // servers, own.of_leaf // lanes), idle, leafs)
        if cover is not None:
            able = np.zeros(tiers.lanes, bool)
            able[: len(own.spine)] = spine_room(own, cover) > 0
            if able.sum() >= lanes:
                fitting.append((int(idle[cover > 0].sum()), pod, LeafPart(own, cover), able))
    best = sorted(fitting, key=lambda one: one[:2])
    for order in (best, sorted(best, key=lambda one: -int(one[3].sum()))):
        words = np.full((tiers.lanes, state.core_links.words.shape[1]), ~np.uint64(0))
        common, taken = np.ones(tiers.lanes, bool), []
        for one in order:
            spine = int(tiers.first_spine[one[1]]) + np.arange(tiers.lanes)
            spine = np.minimum(spine, plant.spines - 1)  # where a pod has fewer lanes, they are not able either
            shared = words & state.core_links.words[spine]
            left = common & one[3] & (np.bitwise_count(shared).sum(axis=1) >= leafs)
            if left.sum() < lanes:
                continue
            words, common = shared, left
            taken.append(one)
            if len(taken) == pods:
                taken.sort(key=lambda one: one[1])
                parts, candidates = [one[2] for one in taken], np.flatnonzero(common)
                free = sum(part.fibres.of_spine[candidates] for part in parts)
                yield [one[1] for one in taken], parts, candidates[np.argsort(free, kind="stable")]
                break


def _allocation(
    state: Occupancy, job: str, pods: list[int], parts: list[LeafPart], laid: PodLanes, leafs: int
) -> Allocation:
    """Rank (pod, virtual leaf, lane) sends over the spine of its lane and the core of its virtual leaf there."""
    from ropewalk.tenancy.vclos import _clos_kernel as kernel

    tiers, size = state.plant.tiers, state.plant.gpus_per_server
    lanes = len(laid.lanes)
    spines = np.stack([int(tiers.first_spine[pod]) + laid.lanes for pod in pods])
    above = state.core_links
    cores = kernel.emptied_cores(spines, above.words, above.ports_above, tiers.first_core, tiers.end_core, leafs)
    gpus: list[int] = []
    rows: list[int] = []
    switches: list[int] = []
    for pod, part, own in zip(pods, parts, laid.switches, strict=True):
        first = int(tiers.first_leaf[pod])
        left = {ends: iter(some) for ends, some in own.items()}
        for leaf in np.flatnonzero(part.leafs).tolist():
            servers = state.idle_servers_of(first + leaf)[: int(part.leafs[leaf]) * lanes // size].tolist()
            gpus += [server * size + place for server in servers for place in range(size)]
            for _ in range(int(part.leafs[leaf])):
                rows.append(first + leaf)
                switches += [next(left[leaf, lane]) for lane in laid.lanes.tolist()]
    leaf_of_gpu = np.repeat(rows, lanes)
    # [pod, virtual leaf, lane]
    spine_of_gpu = np.broadcast_to(spines[:, None, :], (len(pods), leafs, lanes)).ravel()
    core_of_gpu = np.broadcast_to(cores.T[None], (len(pods), leafs, lanes)).ravel()
    cable = state.core_links.first_free(np.ascontiguousarray(spine_of_gpu), np.ascontiguousarray(core_of_gpu))
    return Allocation(
        job=job,
        gpus=tuple(gpus),
        stage=OVER_PODS,
        leafs=tuple(dict.fromkeys(rows)),
        spines=tuple(spines.ravel().tolist()),
        links=tuple(zip(leaf_of_gpu.tolist(), spine_of_gpu.tolist(), strict=True)),
        spine_of_gpu=tuple(spine_of_gpu.tolist()),
        leaf_of_gpu=tuple(leaf_of_gpu.tolist()),
        cables=tuple(switches),
        core_links=tuple(zip(spine_of_gpu.tolist(), core_of_gpu.tolist(), strict=True)),
        core_of_gpu=tuple(core_of_gpu.tolist()),
        core_cables=tuple(cable.tolist()),
    )


def _explained(plant: PodOpticalPlant, gpus: int, undecided: ProgramUndecided | None, *, never: bool) -> Waiting:
    """Why no pods hold the job."""
    said = ", ".join(f"{pods}×{leafs}×{lanes}" for pods, leafs, lanes in list(over_pods(plant, gpus, doubling))[:4])
    if never or not said:
        text = f"{gpus} GPUs have no equal split over leafs and pods of {plant.name}"
        return Waiting(Reason.NETWORK_FRAGMENTATION, text + (", even when it is empty" if never else ""), never=never)
    text = (
        f"no circuits inside one pod join {gpus} GPUs, and no pods have the leafs, fibres and cores of a shape "
        f"(pods×leafs×spines: {said})"
    )
    if undecided:
        text += " that was tried, and an integer program was too large or stopped at its limit"
    return Waiting(Reason.NETWORK_FRAGMENTATION, text, tier="spine")


@lru_cache(maxsize=4096)
def _fits_when_empty(plant: PodOpticalPlant, gpus: int) -> bool:
    empty = Occupancy(plant)
    if under_one_leaf(empty, "", gpus) is not None:
        return True
    return isinstance(_with_circuits(empty, "", gpus), Allocation)
