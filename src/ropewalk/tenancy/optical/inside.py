"""OCS-vClos inside the pods of three tiers: circuits between leafs and spines, cables between spines and cores.

Stages: one leaf; one pod over circuits that stand for its cables; one pod as with two tiers; p pods with l virtual
leafs and s lanes in each, over such home circuits or any others. A lane is the spine at one place of every pod, which
reaches the same cores; every lane gets l cores, and its cables to them are reserved. Running jobs are never touched: a
new one only gets fibres and cables that are free. Two leafs always meet in a spine: none are joined straight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.tenancy.allocation import Allocation, Reason, Stage, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import first_stages, servers_needed, under_one_leaf
from ropewalk.tenancy.optical.allocate import with_circuits
from ropewalk.tenancy.optical.clos import exact_network, laid_over, quick_network
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.pod_choice import PodChoice, choice_of, choices
from ropewalk.tenancy.optical.pod_fibres import free_pod_fibres, inside_pods, of_pod, with_home_cables
from ropewalk.tenancy.optical.pod_lanes import PodLanes, exact_pod_lanes, quick_pod_lanes
from ropewalk.tenancy.optical.pod_plant import PodOpticalPlant
from ropewalk.tenancy.optical.programs import ProgramUndecided
from ropewalk.tenancy.vclos.compact import BRANCH_BUDGET, decide_leafs
from ropewalk.tenancy.vclos.explain import never_fits
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
    home = plant.home_switch
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
    first, last = plant.first_server[plant.tiers.first_leaf[pod : pod + 2]].tolist()
    idle = np.where(state.free_in_server[first:last] > 0, state.free_gpus[first:last], 0)
    found = with_circuits(
        Occupancy.of_free(plant.pods[pod], idle), of_pod(plant, fibres, pod), job, gpus, False, straight=False
    )
    if not isinstance(found, Allocation):
        return found
    seats = tuple(gpu + first * plant.gpus_per_server for gpu in found.gpus)
    return replace(_in_the_plant(plant, pod, found), gpus=seats)


def _in_the_plant(plant: PodOpticalPlant, pod: int, found: Allocation) -> Allocation:
    """Leafs and spines that were numbered in a pod, in the numbers of the plant."""
    leaf, spine = int(plant.tiers.first_leaf[pod]), int(plant.tiers.first_spine[pod])
    return replace(
        found,
        leafs=tuple(one + leaf for one in found.leafs),
        spines=tuple(one + spine for one in found.spines),
        links=tuple((below + leaf, above + spine) for below, above in found.links),
        spine_of_gpu=tuple(one + spine for one in found.spine_of_gpu),
        leaf_of_gpu=tuple(one + leaf for one in found.leaf_of_gpu),
    )


def _over_pods(
    state: Occupancy, fibres: FreeFibres, job: str, pods: int, leafs: int, lanes: int
) -> Allocation | ProgramUndecided | None:
    """One shape over the pods of each choice: circuits by chains, then by the integer program."""
    tried = choices(state, fibres, pods, leafs, lanes)
    undecided = next((one for one in tried if isinstance(one, ProgramUndecided)), None)
    chosen = [one for one in tried if isinstance(one, PodChoice)]
    for one in chosen:
        laid = quick_pod_lanes(one.parts, one.candidates, lanes)
        if laid is not None:
            return _allocation(state, one, laid, _on_idle_servers(state, job, one, lanes))
    for one in chosen:
        decided = exact_pod_lanes(one.parts, one.candidates, lanes)
        if isinstance(decided, PodLanes):
            return _allocation(state, one, decided, _on_idle_servers(state, job, one, lanes))
        undecided = undecided or decided
    return undecided


@dataclass(frozen=True)
class _Seated:
    """A job on its GPUs: leafs of every pod of a choice, in the order in which ranks visit them."""

    job: str
    gpus: tuple[int, ...]
    leafs: tuple[tuple[int, ...], ...]


def _on_idle_servers(state: Occupancy, job: str, chosen: PodChoice, lanes: int) -> _Seated:
    tiers, size = state.plant.tiers, state.plant.gpus_per_server
    gpus: list[int] = []
    rows = []
    for pod, part in zip(chosen.pods, chosen.parts, strict=True):
        first, used = int(tiers.first_leaf[pod]), np.flatnonzero(part.leafs).tolist()
        rows.append(tuple(first + leaf for leaf in used))
        for leaf in used:
            servers = state.idle_servers_of(first + leaf)[: int(part.leafs[leaf]) * lanes // size].tolist()
            gpus += [server * size + place for server in servers for place in range(size)]
    return _Seated(job, tuple(gpus), tuple(rows))


def circuits_on(state: Occupancy, job: str, gpus: Sequence[int], rows: Ints) -> Allocation | ProgramUndecided | None:
    """Circuits and cores for GPUs that are chosen already, equally many on every leaf; `rows` are leafs, [pod, leaf].

    A leaf is one virtual one if there are as many lanes as it has GPUs of the job, else several.
    """
    plant, share = inside_pods(state), len(gpus) // rows.size
    seated, undecided = _Seated(job, tuple(gpus), tuple(tuple(row) for row in rows.tolist())), None
    fibres = free_pod_fibres(state)
    for each in (one for one in range(1, share + 1) if share % one == 0 and share // one <= plant.tiers.lanes):
        chosen = choice_of(state, fibres, rows, each)
        laid = quick_pod_lanes(chosen.parts, chosen.candidates, share // each)
        decided = laid or exact_pod_lanes(chosen.parts, chosen.candidates, share // each)
        if isinstance(decided, PodLanes):
            return _allocation(state, chosen, decided, seated)
        undecided = undecided or decided
    return undecided


def circuits_in_a_pod(
    state: Occupancy, job: str, gpus: Sequence[int], leaf_of_gpu: Sequence[int]
) -> Allocation | ProgramUndecided | None:
    """The same for GPUs of one pod: virtual leafs as wide as divides what every leaf gives."""
    plant, shares = inside_pods(state), Counter(leaf_of_gpu)
    pod, width = int(plant.tiers.pod_of_leaf[leaf_of_gpu[0]]), gcd(*shares.values())
    fibres, first = of_pod(plant, free_pod_fibres(state), pod), int(plant.tiers.first_leaf[pod])
    leafs = np.zeros(len(fibres.leaf), np.int64)
    for leaf, share in shares.items():
        leafs[leaf - first] = share // width
    decided = quick_network(fibres, leafs, width) or exact_network(fibres, leafs, width)
    if decided is None or isinstance(decided, ProgramUndecided):
        return decided
    rows = [leaf - first for leaf in shares for _ in range(int(leafs[leaf - first]))]
    return replace(_in_the_plant(plant, pod, laid_over(job, tuple(gpus), rows, decided)), gpus=tuple(gpus))


def _allocation(state: Occupancy, chosen: PodChoice, laid: PodLanes, seated: _Seated) -> Allocation:
    """Rank (pod, virtual leaf, lane) sends over the spine of its lane and the core of its virtual leaf there."""
    from ropewalk.tenancy.vclos import _clos_kernel as kernel

    tiers, leafs = state.plant.tiers, int(chosen.parts[0].leafs.sum())
    lanes, pods = len(laid.lanes), chosen.pods
    spines = np.stack([int(tiers.first_spine[pod]) + laid.lanes for pod in pods])
    above = state.core_links
    cores = kernel.emptied_cores(spines, above.words, above.ports_above, tiers.first_core, tiers.end_core, leafs)
    rows: list[int] = []
    switches: list[int] = []
    for pod, used, part, own in zip(pods, seated.leafs, chosen.parts, laid.switches, strict=True):
        first = int(tiers.first_leaf[pod])
        left = {ends: iter(some) for ends, some in own.items()}
        for leaf in used:
            for _ in range(int(part.leafs[leaf - first])):
                rows.append(leaf)
                switches += [next(left[leaf - first, lane]) for lane in laid.lanes.tolist()]
    leaf_of_gpu = np.repeat(rows, lanes)
    # [pod, virtual leaf, lane]
    spine_of_gpu = np.broadcast_to(spines[:, None, :], (len(pods), leafs, lanes)).ravel()
    core_of_gpu = np.broadcast_to(cores.T[None], (len(pods), leafs, lanes)).ravel()
    cable = state.core_links.first_free(np.ascontiguousarray(spine_of_gpu), np.ascontiguousarray(core_of_gpu))
    return Allocation(
        job=seated.job,
        gpus=seated.gpus,
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
    if never:
        return Waiting(Reason.NETWORK_FRAGMENTATION, never_fits(plant, gpus), never=True)
    if not said:
        fact = f"{gpus} GPUs have no equal split over leafs and pods of {plant.name}"
        return Waiting(Reason.NETWORK_FRAGMENTATION, fact)
    text = (
        f"no circuits inside one pod join {gpus} GPUs, and no pods were found with the leafs, fibres and cores of a "
        f"shape (pods×leafs×spines: {said})"
    )
    if undecided:
        text += "; a search or an integer program was too large or stopped at its limit"
    return Waiting(Reason.NETWORK_FRAGMENTATION, text, tier="spine")


@lru_cache(maxsize=4096)
def _fits_when_empty(plant: PodOpticalPlant, gpus: int) -> bool:
    empty = Occupancy(plant)
    if under_one_leaf(empty, "", gpus) is not None:
        return True
    return isinstance(_with_circuits(empty, "", gpus), Allocation)
