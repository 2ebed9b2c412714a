"""A job of l virtual leafs and s virtual spines with a circuit between every two of them.

First the leafs are chosen, by servers alone (program 5a, solved as a knapsack), then spines and switches (program 5b:
cheapest spines by their ports, circuits laid by alternating chains; where that fails, the integer program).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.cover import cheapest_cover
from ropewalk.tenancy.optical.fibres import FreeFibres, optical
from ropewalk.tenancy.optical.laying import lay_all
from ropewalk.tenancy.optical.programs import Laid, ProgramUndecided, network_program

TRIES = 12
"""Sets of spines that the quick way tries before the integer program is asked."""
MOST_CIRCUITS = 1_000
"""Possible circuits beyond which the integer program is not asked: proving that there is no way takes seconds there."""


@dataclass(frozen=True)
class ClosShape:
    """l virtual leafs with s GPUs each, s virtual spines."""

    leafs: int
    width: int


@dataclass(frozen=True)
class VirtualClos:
    """Spines and switches for the virtual leafs of a job."""

    spines: NDArray[np.int64]
    """Virtual spines on every spine."""
    switches: dict[tuple[int, int], list[int]]
    """(leaf, spine): switches of the circuits between the two."""


def virtual_leafs(
    state: Occupancy, fibres: FreeFibres, shape: ClosShape, *, emptiest: bool = False
) -> NDArray[np.int64] | None:
    """How many virtual leafs every leaf takes (program 5a): the used leafs have the fewest idle servers together."""
    servers = shape.width // state.plant.gpus_per_server
    idle = state.idle_servers
    room = np.minimum(idle // servers, fibres.of_leaf // shape.width)
    return cheapest_cover(room, int(idle.max()) + 1 - idle if emptiest else idle, shape.leafs)


def quick_network(
    fibres: FreeFibres,
    leafs: NDArray[np.int64],
    width: int,
    usable: NDArray[np.bool_] | None = None,
    *,
    emptiest: bool = False,
) -> VirtualClos | None:
    """Spines with few free ports, circuits by alternating chains; a spine that cannot be joined holds one less.

    `emptiest`: spines with many free ports instead, where circuits are easier to lay.
    """
    room = spine_room(fibres, leafs)
    cost = int(fibres.of_spine.max(initial=0)) + 1 - fibres.of_spine if emptiest else fibres.of_spine
    if usable is not None:
        room = np.where(usable, room, 0)
    for _ in range(TRIES):
        spines = cheapest_cover(room, cost, width)
        if spines is None:
            return None
        laid = lay_all(fibres, leafs, spines)
        if not isinstance(laid, int):
            return VirtualClos(spines, laid)
        room[laid] = spines[laid] - 1
    return None


def exact_network(
    fibres: FreeFibres, leafs: NDArray[np.int64], width: int, usable: NDArray[np.bool_] | None = None
) -> VirtualClos | ProgramUndecided | None:
    """The integer program; spines that hold no virtual spine at all are left out of it."""
    room = spine_room(fibres, leafs)
    if usable is not None:
        room = np.where(usable, room, 0)
    if room.sum() < width:
        return None
    if fibres.common[np.ix_(leafs > 0, room > 0)].sum() > MOST_CIRCUITS:
        return ProgramUndecided()
    laid = network_program(fibres, leafs, width, usable=room > 0)
    return VirtualClos(laid.spines, laid.switches()) if isinstance(laid, Laid) else laid


def spine_room(fibres: FreeFibres, leafs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most virtual spines that every spine could hold, by its ports and by what each leaf can reach of them."""
    rows = np.flatnonzero(leafs)
    reachable = np.minimum(fibres.spine, fibres.leaf[rows].sum(axis=0)).sum(axis=1)
    by_ports = np.minimum(reachable, fibres.of_spine) // int(leafs.sum())
    by_leaf = (fibres.common_of(rows) // leafs[rows][:, None]).min(axis=0)
    return np.asarray(np.minimum(by_ports, by_leaf), np.int64)


def over_clos(
    state: Occupancy,
    fibres: FreeFibres,
    job: str,
    shape: ClosShape,
    *,
    usable: NDArray[np.bool_] | None = None,
) -> Allocation | ProgramUndecided | None:
    """Place a job in one shape: best-fit leafs, then the emptiest ones, then the integer program for the best fit."""
    best = virtual_leafs(state, fibres, shape)
    if best is None:
        return None
    choices = [best]
    emptiest = virtual_leafs(state, fibres, shape, emptiest=True)
    if emptiest is not None and not np.array_equal(best, emptiest):
        choices.append(emptiest)
    for leafs in choices:
        network = quick_network(fibres, leafs, shape.width, usable)
        if network is not None:
            return clos_allocation(state, job, leafs, network)
    undecided = None
    for leafs in choices:
        decided = exact_network(fibres, leafs, shape.width, usable)
        if isinstance(decided, VirtualClos):
            return clos_allocation(state, job, leafs, decided)
        undecided = undecided or decided
    return undecided


def over_whole_leafs(state: Occupancy, fibres: FreeFibres, job: str, gpus: int) -> Allocation | None:
    """Large jobs take empty leafs and untouched spines whole, so that what is broken up already stays the rest's.

    Nothing is assumed of the size of these groups: a job gives back what it holds, by name.
    """
    plant = optical(state)
    per_leaf = int(plant.gpus_per_leaf.max())
    if gpus % per_leaf or gpus == per_leaf:
        return None
    leafs = np.flatnonzero(
        (state.idle_servers == plant.servers_per_leaf)
        & (plant.gpus_per_leaf == per_leaf)
        & (fibres.of_leaf >= per_leaf)
    )[: gpus // per_leaf]
    if len(leafs) < gpus // per_leaf:
        return None
    one_each = np.zeros(plant.leafs, np.int64)
    one_each[leafs] = 1
    network = quick_network(fibres, one_each, per_leaf, fibres.of_spine == plant.ports_per_spine)
    return None if network is None else clos_allocation(state, job, one_each, network)


def clos_allocation(state: Occupancy, job: str, leafs: NDArray[np.int64], network: VirtualClos) -> Allocation:
    """Deal idle servers to virtual leafs, in the order of leafs."""
    size, width = state.plant.gpus_per_server, int(network.spines.sum())
    gpus: list[int] = []
    rows: list[int] = []
    for leaf in np.flatnonzero(leafs).tolist():
        servers = state.idle_servers_of(leaf)[: int(leafs[leaf]) * width // size].tolist()
        gpus += [server * size + place for server in servers for place in range(size)]
        rows += [leaf] * int(leafs[leaf])
    return laid_over(job, tuple(gpus), rows, network)


def laid_over(job: str, gpus: tuple[int, ...], rows: list[int], network: VirtualClos) -> Allocation:
    """Deal circuits to virtual leafs, given by the leaf of each, in the order of spines."""
    spines = np.repeat(np.arange(len(network.spines)), network.spines).tolist()
    widths = [(spine, int(network.spines[spine])) for spine in np.flatnonzero(network.spines).tolist()]
    cables: list[int] = []
    dealt: Counter[int] = Counter()
    for leaf in rows:
        for spine, width in widths:
            cables += network.switches[leaf, spine][dealt[leaf] * width : (dealt[leaf] + 1) * width]
        dealt[leaf] += 1
    return Allocation(
        job=job,
        gpus=gpus,
        stage="ocs",
        leafs=tuple(dict.fromkeys(rows)),
        spines=tuple(spines),
        links=tuple((leaf, spine) for leaf in rows for spine in spines),
        spine_of_gpu=tuple(spines) * len(rows),
        leaf_of_gpu=tuple(leaf for leaf in rows for _ in spines),
        cables=tuple(cables),
    )
