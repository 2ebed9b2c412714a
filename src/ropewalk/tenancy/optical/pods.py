"""OCS-vClos on three tiers: leafs and spines of pods as under vClos, and circuits between pods for every job.

Stages: one leaf; one pod, over its cables; p pods with l leafs and s spines in each, where any s spines of a pod will
do, because circuits lead from any to any: the i-th spines of all pods are lane i, with l virtual cores of its own.
Circuits that stand for the cables of the plant come first (`home.py`).
Running jobs are never touched: a new one only gets fibres that are free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.errors import ClusterError, Findings, PhysicsError
from ropewalk.tenancy.allocation import Allocation, AllocationColumns, CableColumns, Reason, Stage, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.one_leaf import first_stages, seats_on, under_one_leaf
from ropewalk.tenancy.optical.core_plant import CoreOpticalPlant
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.home import over_home_circuits
from ropewalk.tenancy.optical.lanes import STRAIGHT, CoreLanes, exact_lanes, quick_lanes
from ropewalk.tenancy.optical.programs import ProgramUndecided
from ropewalk.tenancy.vclos.compact import BRANCH_BUDGET, decide_leafs
from ropewalk.tenancy.vclos.explain import never_fits
from ropewalk.tenancy.vclos.rows import servers_of
from ropewalk.tenancy.vclos.search import NODE_BUDGET, Found, search_leafs
from ropewalk.tenancy.vclos.search import Undecided as Unsearched
from ropewalk.tenancy.vclos.shapes import Shapes, over_pods
from ropewalk.tenancy.vclos.tree_allocation import tree_allocation
from ropewalk.tenancy.words import words_of

STAGE: Stage = "ocs-core"


def behind_cores(state: Occupancy) -> CoreOpticalPlant:
    """The plant of a state, if its spines and cores meet in optical switches."""
    if not isinstance(state.plant, CoreOpticalPlant):
        raise ClusterError(
            f"{state.plant.name} has no optical switches below cores: put them in with CoreOpticalPlant.of_plant"
        )
    return state.plant


def allocate_over_pods(state: Occupancy, job: str, gpus: int, shapes: Shapes) -> Allocation | Waiting:
    """Try one leaf, one pod, then pods with circuits between them; the first that holds the job is taken.

    >>> from ropewalk.tenancy.plant import plant
    >>> from ropewalk.tenancy.vclos.shapes import doubling
    >>> state = Occupancy(CoreOpticalPlant.of_plant(plant("fat-tree:4", gpus_per_server=2)))
    >>> got = allocate_over_pods(state, "a", 8, doubling)
    >>> got.stage, got.leafs, got.spines, len(got.links), len(got.core_links)
    ('ocs-core', (0, 1, 2, 3), (0, 1, 2, 3), 8, 8)
    """
    plant = behind_cores(state)
    early = first_stages(state, job, gpus)
    if early is not None:
        return early
    found = _with_circuits(state, job, gpus, shapes)
    if isinstance(found, Allocation):
        return found
    return _explained(state, gpus, shapes, found, never=not _fits_when_empty(plant, gpus, shapes))


def free_core_fibres(state: Occupancy) -> FreeFibres:
    """Fibres of spines (as if they were leafs) and of cores (as if spines) that a new job may use."""
    plant = behind_cores(state)
    cores = plant.core_fibres.astype(np.int64) - fibres_taken(state)
    down = sorted(int(number) for number in state.drained.cores)
    cores[[number - plant.switches for number in down if number >= plant.switches]] = 0
    cores[:, [number for number in down if number < plant.switches]] = 0
    return FreeFibres(state.core_links.count[:, : plant.switches] > 0, cores)


def fibres_taken(state: Occupancy) -> Ints:
    """[packet core, switch]: circuits there; more than there are fibres is a bug."""
    plant = behind_cores(state)
    taken = np.zeros(plant.core_fibres.shape, np.int64)
    for held in (*state.jobs.values(), *state.releasing.values()):
        if held.stage == STAGE:
            core, switch = np.array(held.core_of_gpu), np.array(held.core_links)[:, 1]
            over = core >= plant.switches
            np.add.at(taken, (core[over] - plant.switches, switch[over]), 1)
    findings = Findings(PhysicsError, f"circuits of {plant.name}")
    for at, number in np.argwhere(taken > plant.core_fibres).tolist():
        findings.add(
            f"{plant.core_names[plant.switches + at]} has {plant.core_fibres[at, number]} fibres to switch {number} "
            f"and {taken[at, number]} circuits there"
        )
    findings.raise_if_any()
    return taken


def _with_circuits(state: Occupancy, job: str, gpus: int, shapes: Shapes) -> Allocation | ProgramUndecided | None:
    for leafs, spines in shapes(state.plant, gpus):
        found = search_leafs(state, leafs, spines, node_budget=NODE_BUDGET)
        if isinstance(found, Unsearched):
            found = decide_leafs(state, leafs, spines, branch_budget=BRANCH_BUDGET)
        if isinstance(found, Found):
            return tree_allocation(state, job, gpus, (found.leafs,))
    fibres, undecided = free_core_fibres(state), None
    for pods, leafs, spines in over_pods(state.plant, gpus, shapes):
        placed = _over_pods(state, fibres, job, pods, leafs, spines)
        if isinstance(placed, Allocation):
            return placed
        undecided = undecided or placed
    return undecided


def _over_pods(
    state: Occupancy, fibres: FreeFibres, job: str, pods: int, leafs: int, spines: int
) -> Allocation | ProgramUndecided | None:
    """One shape: as with cables where that is free; else the leafs of the pods that fit best, with any spines."""
    home = over_home_circuits(state, behind_cores(state), fibres, pods, leafs, spines)
    if home is not None:
        seats = seats_on(state, home[0].ravel(), np.full(home[0].size, spines))
        return _allocation(state, job, *home, seats)
    chosen = leafs_of_pods(state, fibres, leafs, spines)
    if len(chosen) < pods:
        return None
    rows = np.array(sorted(chosen[:pods]), np.int64)
    seats = seats_on(state, rows.ravel(), np.full(rows.size, spines))
    return circuits_between(state, fibres, job, rows, seats)


def circuits_between(
    state: Occupancy, fibres: FreeFibres, job: str, rows: Ints, gpus: Ints
) -> Allocation | ProgramUndecided | None:
    """Circuits for GPUs that are chosen already, equally many on every leaf; `rows` are their leafs, [pod, leaf].

    Spines with few free fibres are tried, then with many, then the integer program is asked.
    """
    leafs, width = rows.shape[1], len(gpus) // rows.size
    tried = list(_spines(state, fibres, rows, width))
    for lanes in tried:
        laid = quick_lanes(fibres, lanes, leafs)
        if laid is not None:
            return _allocation(state, job, rows, lanes, laid, gpus)
    undecided = None
    for lanes in tried:
        decided = exact_lanes(fibres, lanes, leafs)
        if isinstance(decided, CoreLanes):
            return _allocation(state, job, rows, lanes, decided, gpus)
        undecided = undecided or decided
    return undecided


def leafs_of_pods(state: Occupancy, fibres: FreeFibres, leafs: int, spines: int) -> list[tuple[int, ...]]:
    """For every pod that has such: l leafs with s spines in common that have l fibres each; the best fit first."""
    from ropewalk.tenancy.vclos import _biclique_kernel as kernel
    from ropewalk.tenancy.vclos import _clos_kernel as choices

    tiers, ports = state.plant.tiers, state.ports_of_leaf
    words = state.spine_words & _able(state, fibres, leafs)[tiers.pod_of_leaf]
    reached = np.bitwise_count(words).sum(axis=1).astype(np.int64)
    fit = state.idle_servers, reached, ports, tiers.first_leaf, servers_of(state, spines), spines
    rows, start = choices.candidates(*fit, False)
    found = []
    for pod in range(tiers.pods):
        mine = rows[start[pod] : start[pod + 1]]
        shape = np.array([0, len(mine)]), leafs, 1, spines, NODE_BUDGET
        status, _, chosen = kernel.cheapest_in_a_pod(words, ports, mine, *shape)
        if status in (kernel.BEST, kernel.FOUND):
            found.append((int(ports[chosen].sum()), tuple(sorted(chosen.tolist()))))
    return [chosen for _, chosen in sorted(found)]


def _able(state: Occupancy, fibres: FreeFibres, cores: int) -> NDArray[np.uint64]:
    """[pod, word]: spines with so many free fibres, as bits."""
    tiers = state.plant.tiers
    padded = np.zeros((tiers.pods, 64 * state.spine_words.shape[1]), bool)
    padded[tiers.pod_of_spine, tiers.lane_of_spine()] = fibres.of_leaf >= cores
    return words_of(padded)


def _spines(state: Occupancy, fibres: FreeFibres, rows: Ints, spines: int) -> Iterator[Ints]:
    """[lane, pod]: s spines that the leafs of every pod share; those with fewest free fibres, then with most.

    Nothing where a pod has fewer.
    """
    tiers, leafs = state.plant.tiers, rows.shape[1]
    for sign in (1, -1):
        lanes = []
        for pod_rows in rows:
            pod = int(tiers.pod_of_leaf[pod_rows[0]])
            first, last = int(tiers.first_spine[pod]), int(tiers.first_spine[pod + 1])
            shared = (state.cables_free[pod_rows, first:last] > 0).all(axis=0)
            able = first + np.flatnonzero(shared & (fibres.of_leaf[first:last] >= leafs))
            lanes.append(np.sort(able[np.argsort(sign * fibres.of_leaf[able], kind="stable")][:spines]))
        if min(map(len, lanes)) == spines:
            yield np.stack(lanes, axis=1)


def _allocation(state: Occupancy, job: str, rows: Ints, lanes: Ints, laid: CoreLanes, seats: Ints) -> Allocation:
    """Rank (pod, leaf, place) sends over the spine of its lane, and over the virtual core of its leaf in that lane."""
    plant = behind_cores(state)
    pods, leafs = rows.shape
    width = len(lanes)
    # [pod, leaf, lane]
    shape = pods, leafs, width
    leaf = np.broadcast_to(rows[:, :, None], shape).ravel()
    spine = np.broadcast_to(lanes.T[:, None, :], shape).ravel()
    switch = laid.switch.transpose(2, 1, 0).ravel()
    core = np.broadcast_to(laid.core.T[None], shape).ravel()
    links = CableColumns(leaf, spine, state.links.first_free(leaf, spine))
    fibres = CableColumns(spine, switch, np.zeros(len(spine), np.int64))
    made = Allocation.over_links(
        job,
        AllocationColumns(seats, links, fibres),
        leafs=rows.ravel().tolist(),
        spines=lanes.T.ravel().tolist(),
        spine_of_gpu=spine.tolist(),
        leaf_of_gpu=leaf.tolist(),
        core_of_gpu=np.where(core == STRAIGHT, switch, plant.switches + core).tolist(),
    )
    return replace(made, stage=STAGE).knowing(made.columns)


def _explained(
    state: Occupancy, gpus: int, shapes: Shapes, undecided: ProgramUndecided | None, *, never: bool
) -> Waiting:
    """Why no pods hold the job: leafs and spines, or circuits between them."""
    reason, plant = Reason.NETWORK_FRAGMENTATION, behind_cores(state)
    told = list(over_pods(plant, gpus, shapes))
    if never:
        return Waiting(reason, never_fits(plant, gpus), never=True)
    if not told:
        return Waiting(reason, f"{gpus} GPUs have no equal split over leafs and pods of {plant.name}")
    fibres = free_core_fibres(state)
    for pods, leafs, spines in told:
        if len(leafs_of_pods(state, fibres, leafs, spines)) >= pods:
            short = tuple((plant.switches + np.flatnonzero(fibres.of_spine < pods)).tolist())
            fact = "no choice of switches joins their spines"
            if undecided:
                fact += " that was tried, and the integer program was too large or stopped at its limit"
            text = f"{pods} pods have {leafs} leafs with {spines} spines, but {fact}: circuits of others are in the way"
            return Waiting(reason, text, tier="core", blocking_cores=short)
    said = ", ".join(f"{pods}×{leafs}×{spines}" for pods, leafs, spines in told[:4])
    text = f"no pod holds {gpus} GPUs, and no pods have the leafs and spines of a shape (pods×leafs×spines: {said})"
    return Waiting(reason, text, tier="spine")


@lru_cache(maxsize=4096)
def _fits_when_empty(plant: CoreOpticalPlant, gpus: int, shapes: Shapes) -> bool:
    empty = Occupancy(plant)
    if under_one_leaf(empty, "", gpus) is not None:
        return True
    return isinstance(_with_circuits(empty, "", gpus, shapes), Allocation)


def check_core_circuits(state: Occupancy) -> None:
    """Prove of a state that no fibre is in two circuits, and that every virtual core is joined with all its pods."""
    plant = behind_cores(state)
    fibres_taken(state)
    findings = Findings(PhysicsError, f"circuits of {plant.name}")
    pod_of_leaf = plant.tiers.pod_of_leaf
    for held in state.jobs.values():
        if held.stage != STAGE:
            continue
        pods = len(set(pod_of_leaf[list(held.leafs)].tolist()))
        leafs = len(held.leafs) // pods
        shape = pods, leafs, held.size // len(held.leafs)
        core = np.array(held.core_of_gpu).reshape(shape)
        ends = np.array(held.core_links)
        if [*held.spine_of_gpu] != ends[:, 0].tolist():
            findings.add(f"a rank of job {held.job} sends over another spine than that of its circuit")
        if (core != core[:1]).any():
            findings.add(f"ranks at one place of the pods of job {held.job} have different virtual cores")
        straight = core[0] < plant.switches
        if straight.any() and (pods != 2 or (ends[:, 1].reshape(shape)[:, straight] != core[:, straight]).any()):
            findings.add(f"a straight circuit of job {held.job} does not join two spines")
        spine = ends[:, 0].reshape(shape)
        if (spine != spine[:, :1]).any():
            findings.add(f"leafs of a pod of job {held.job} have different spines in one lane")
    findings.raise_if_any()
